#!/bin/bash
# scripts.sh - shellcheck over every shell script.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

list=$({
    text_files | tr '\n' '\0' | xargs -0 awk 'FNR == 1 && /^#!.*(bash|\/sh)/ { print FILENAME }'
    find . -path ./build -prune -o -name '*.sh' -print
    echo .ci/run
} | LC_ALL=C sort -u)
xargs -d '\n' shellcheck --external-sources <<<"$list" || finding "shellcheck" "see above"

finish
