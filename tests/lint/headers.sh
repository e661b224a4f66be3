#!/bin/bash
# headers.sh - each header compiles alone, twice.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

export xml_flags
xml_flags=$(pkg-config --cflags libxml-2.0)

check_header() {
    local flags
    read -ra flags <<<"$xml_flags"
    printf '#include "%s"\n#include "%s"\nstruct xf_not_empty;\n' "$1" "$1" |
        gcc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. "${flags[@]}" \
            -x c - || {
        printf '%s: does not compile alone\n' "$1"
        return 1
    }
}
export -f check_header

c_files | grep '[.]h$' | xargs -d '\n' -P "$(nproc)" -n 1 bash -c 'check_header "$1"' check ||
    finding "headers" "see above"

finish
