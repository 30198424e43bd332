# How the scripts configure and build; everything is said on stderr. Sourced, needs $root.
# shellcheck shell=bash
: "${root:?}"

# Eight sources are compiled at a time, as headers take most of it. Where one is worked on and little else: OFF.
# shellcheck disable=SC2034 # for those who source this
together=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=8)

# source_of DIRECTORY: the checkout that a build tree was configured for; nothing where it was not configured.
source_of() {
  [[ -f $1/CMakeCache.txt ]] || return 0
  sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' -- "$1/CMakeCache.txt"
}

# configure DIRECTORY CMAKE_ARGUMENTS...: once; afterwards ninja itself notices changes of the CMake files. A build tree
# that was copied or moved along with its checkout still builds the old one: it is configured anew.
configure() {
  local directory=$1 log source
  local again=()
  shift
  source=$(source_of "$directory")
  if [[ -n $source && $(readlink -m -- "$source") != $(readlink -m -- "$root") ]]; then
    echo "tangram: $directory was made for $source; it is configured for $root and built anew" >&2
    again=(--fresh)
  elif [[ -f $directory/build.ninja ]]; then
    return
  fi
  log=$(mktemp)
  if ! cmake "${again[@]}" -S "$root" -B "$directory" -G Ninja "$@" >"$log" 2>&1; then
    cat -- "$log" >&2
    rm -f -- "$log"
    return 1
  fi
  rm -f -- "$log"
}

# skipped_tests DIRECTORY: a line for each test that the last run of ctest skipped, with the reason that it printed.
skipped_tests() {
  awk '/^[0-9]+\/[0-9]+ Test: / { sub(/^[0-9]+\/[0-9]+ Test: /, ""); name = $0 }
       /^skipped: / { sub(/^skipped: /, ""); printf "skipped: %s: %s\n", name, $0 }' "$1/Testing/Temporary/LastTest.log"
}

# up_to_date DIRECTORY [TARGETS...]
up_to_date() {
  local directory=$1
  shift
  [[ $(ninja -C "$directory" -n "$@" 2>&1) == *'no work to do'* ]]
}
