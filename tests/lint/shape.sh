#!/bin/bash
# shape.sh - each file opens by saying what it is, headers are guarded, and sizes stay within bounds.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

c_max=800
h_max=200

while IFS= read -r file; do
    name=${file##*/}
    # One line, or a block whose second line begins with the file's name: "name - what it is".
    opening=$(head -n 2 "$file" | tr '\n' ' ')
    [[ "$opening" =~ ^/\*\ (\ \*\ )?"$name"(:|\ -)\ . ]] ||
        finding "$file:1" "must open with a comment '$name - what it is'"
    lines=$(wc -l <"$file")
    case "$name" in
    *.c) [ "$lines" -le $c_max ] || finding "$file:$lines" "more than $c_max lines" ;;
    *.h)
        [ "$lines" -le $h_max ] || finding "$file:$lines" "a header of more than $h_max lines"
        stem=${name%.h}
        grep -qE "^#ifndef XF_[A-Z0-9_]*${stem^^}_H\$" "$file" ||
            finding "$file:1" "no include guard XF_<FOLDER>_${stem^^}_H"
        ;;
    esac
    case "$name" in
    util.[ch] | utils.[ch] | misc.[ch] | helper.[ch] | helpers.[ch] | common.[ch])
        finding "$file:1" "name the file for what it holds"
        ;;
    esac
done <<<"$(c_files)"

# A guard cleans up on every way out: a buffer that was not begun would free what lies on the stack.
hits=$(c_files | xargs -d '\n' awk '
    FNR == 1 || /^}/ { delete open }
    { for (v in open) {
        if ($0 ~ "&" v "[,)]") delete open[v]
        else if ($0 ~ /[^a-z_]return[ ;]|XF_TRY\(/) { print FILENAME ":" open[v]; delete open[v] }
    } }
    /^ +XF_AUTO_BUF [a-z_0-9]+;$/ { v = $2; sub(";", "", v); open[v] = FNR }
')
[ -z "$hits" ] || found "the function may end before this is begun: say = {0}" <<<"$hits"

finish
