# How the scripts configure and build; everything is said on stderr. Sourced, needs $root.
# shellcheck shell=bash
: "${root:?}"

# Eight sources are compiled at a time, as headers take most of it. Where one is worked on and little else: OFF.
# shellcheck disable=SC2034 # for those who source this
together=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=8)

# configure DIRECTORY CMAKE_ARGUMENTS...: once; afterwards ninja itself notices changes of the CMake files.
configure() {
  local directory=$1 log
  shift
  [[ -f $directory/build.ninja ]] && return
  log=$(mktemp)
  if ! cmake -S "$root" -B "$directory" -G Ninja "$@" >"$log" 2>&1; then
    cat -- "$log" >&2
    rm -f -- "$log"
    return 1
  fi
  rm -f -- "$log"
}

# up_to_date DIRECTORY [TARGETS...]
up_to_date() {
  local directory=$1
  shift
  [[ $(ninja -C "$directory" -n "$@" 2>&1) == *'no work to do'* ]]
}
