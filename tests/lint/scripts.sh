#!/bin/bash
# scripts.sh - shellcheck over every shell script; every Python script compiles.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

list=$({
    text_files | tr '\n' '\0' | xargs -0 awk 'FNR == 1 && /^#!.*(bash|\/sh)/ { print FILENAME }'
    find . -path ./build -prune -o -name '*.sh' -print
    echo .ci/run
} | LC_ALL=C sort -u)
xargs -d '\n' shellcheck --external-sources <<<"$list" || finding "shellcheck" "see above"

find tests -name '*.py' -print0 | xargs -0 /usr/bin/python3 -c '
import sys
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as f:
        compile(f.read(), name, "exec")
' || finding "python" "see above"

finish
