# lib.sh - sourced by the lint scripts: the files to look at, and how a finding is counted.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "$0")/../.."

findings=0

# c_files: the project's C files, sorted, one a line.
c_files() {
    local folders=() folder
    for folder in common proto coordinator agent ctl tests; do
        [ ! -d "$folder" ] || folders+=("$folder")
    done
    find "${folders[@]}" -type f -name '*.[ch]' | LC_ALL=C sort
}

# text_files: every text file of the project, one a line.
text_files() {
    find . \( -path ./build -o -path ./.git -o -path ./.ci \) -prune -o -type f -print0 |
        xargs -0 grep -IlE '' | LC_ALL=C sort
}

# finding FILE:LINE TEXT
finding() {
    printf '%s: %s\n' "$1" "$2"
    findings=$((findings + 1))
}

# found PREFIX-TEXT: each line of stdin is a finding.
found() {
    local line
    while IFS= read -r line; do
        finding "$line" "$1"
    done
}

finish() {
    if [ "$findings" -gt 0 ]; then
        printf '%d findings\n' "$findings"
        exit 1
    fi
    echo "clean"
}
