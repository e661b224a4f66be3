#!/bin/bash
# tidy.sh - clang-tidy over every file that the build compiles. Usage: tidy.sh [BUILD-DIR [FILE ...]]
#
# A clean result is remembered under a hash of the preprocessed file with its comments, the flags and
# the settings, so that only what changed is analysed again. XF_TIDY_CACHE names the folder.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

build=${1:-build/dev}
shift || true
database=$build/compile_commands.json
[ -f "$database" ] || {
    echo "no $database: configure first (cmake --preset dev)"
    exit 1
}

export database_dir=$build cache settings
cache=${XF_TIDY_CACHE:-${XDG_CACHE_HOME:-${HOME:-$PWD/build}/.cache}/xfer/tidy}
mkdir -p "$cache"
settings=$({
    clang-tidy --version
    find . -path ./build -prune -o -name .clang-tidy -print0 | LC_ALL=C sort -z | xargs -0 cat
} | sha256sum)

# tidy_one FILE FLAGS...
tidy_one() {
    local file=$1 key
    shift
    key=$({
        printf '%s\n' "$file" "$settings" "$*"
        clang "$@" -E -C -P "$file"
    } | sha256sum | cut -d ' ' -f 1)
    [ ! -e "$cache/$key" ] || return 0
    if clang-tidy --quiet -p "$database_dir" "$file" 2>/dev/null; then
        : >"$cache/$key"
    else
        return 1
    fi
}

# tidy_line LINE: the same from one line of list_commands.
tidy_line() {
    local words
    read -ra words <<<"$1"
    tidy_one "${words[@]}"
}
export -f tidy_one tidy_line

# Each line: the file relative to the root, then its definitions and include folders.
list_commands() {
    jq -r --arg root "$PWD/" '.[] | .file as $f
        | [ ($f | ltrimstr($root)) ]
          + [ .command | gsub("-isystem +"; "-isystem") | splits(" +")
              | select(test("^-(D|I|isystem|std=)")) | gsub($root; "./")
              | gsub("=\"?\\./.*"; "") | gsub("\\\\\""; "\"") ]
        | join(" ")' "$database" | LC_ALL=C sort -u
}

wanted=$(printf '%s\n' "$@")
list_commands | while IFS= read -r line; do
    file=${line%% *}
    if [ -z "$wanted" ] || grep -qxF -- "$file" <<<"$wanted"; then
        printf '%s\n' "$line"
    fi
done | tr '\n' '\0' | xargs -0 -r -P "$(nproc)" -n 1 bash -c 'tidy_line "$1"' tidy ||
    finding "clang-tidy" "see above"

finish
