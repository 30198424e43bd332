# How the scripts configure and build; everything is said on stderr. Sourced, needs $root.
# shellcheck shell=bash
: "${root:?}"

# Sixteen sources are compiled at a time, as headers take most of it. Where one is worked on and little else: OFF.
# shellcheck disable=SC2034 # for those who source this
together=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16)

# source_of DIRECTORY: the checkout that a build tree was configured for; nothing where it was not configured.
source_of() {
  [[ -f $1/CMakeCache.txt ]] || return 0
  sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' -- "$1/CMakeCache.txt"
}

# Warnings are errors where the code is worked on: in continuous integration, which sets CI, and for who sets
# TANGRAM_DEVELOPER. Everybody else may have a compiler that warns of what ours does not know.
if [[ -n ${CI:-}${TANGRAM_DEVELOPER:-} ]]; then
  together+=(-DTANGRAM_WERROR=ON)
fi

# cached DIRECTORY NAME: what a build tree was configured with; nothing where it does not say.
cached() {
  [[ -f $1/CMakeCache.txt ]] || return 0
  sed -n "s/^$2:[A-Z]*=//p" -- "$1/CMakeCache.txt"
}

# configured DIRECTORY CMAKE_ARGUMENTS...: the build tree is complete and has every option of ours as it is asked for.
configured() {
  local directory=$1 argument name
  shift
  [[ -f $directory/build.ninja ]] || return 1
  for argument in "$@"; do
    [[ $argument == -DTANGRAM_*=* ]] || continue
    name=${argument%%=*}
    [[ $(cached "$directory" "${name#-D}") == "${argument#*=}" ]] || return 1
  done
}

# configure DIRECTORY CMAKE_ARGUMENTS...: where it is not configured so; ninja itself notices changes of the CMake files.
# A build tree that was copied or moved along with its checkout still builds the old one: it is configured anew.
configure() {
  local directory=$1 log source
  local again=()
  shift
  source=$(source_of "$directory")
  if [[ -n $source && $(readlink -m -- "$source") != $(readlink -m -- "$root") ]]; then
    echo "tangram: $directory was made for $source; it is configured for $root and built anew" >&2
    again=(--fresh)
  elif configured "$directory" "$@"; then
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

# failed_tests DIRECTORY: each test that failed in the last run of ctest, with the end of what it printed.
failed_tests() {
  awk -v lines=20 '
    /^[0-9]+\/[0-9]+ Test: / { sub(/^[0-9]+\/[0-9]+ Test: /, ""); name = $0; count = 0; next }
    /^Output:$/ { getline; printing = 1; next } # and the line below it
    /^<end of output>$/ { printing = 0; next }
    printing { kept[count++ % lines] = $0 }
    /^Test (Failed|Timeout)/ {
      printf "failed: %s\n", name
      for (i = count > lines ? count - lines : 0; i < count; i++) print "  " kept[i % lines]
    }' "$1/Testing/Temporary/LastTest.log"
}

# alone_in DIRECTORY: until the shell ends, or "exec 9>&-", no other script builds there.
alone_in() {
  mkdir -p -- "$1"
  exec 9>"$1/.lock"
  flock 9
}

# up_to_date DIRECTORY [TARGETS...]
up_to_date() {
  local directory=$1
  shift
  [[ $(ninja -C "$directory" -n "$@" 2>&1) == *'no work to do'* ]]
}
