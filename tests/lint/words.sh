#!/bin/bash
# words.sh - nothing left to do by its own word, and no path or word of the place where it was written.
# The patterns are written so that they do not match themselves.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

# forbid REGEX TEXT
forbid() {
    local hits
    hits=$(text_files | tr '\n' '\0' | xargs -0 -r grep -nHE "$1" | cut -c1-160) || true
    [ -z "$hits" ] || found "$2" <<<"$hits"
}

forbid '(^|[^A-Za-z])(TO[D]O|FIX[M]E|X[X]X|HAC[K])([^A-Za-z]|$)' "finish it, or write an issue"
forbid '[Nn]ot implement[e]d' "refuse as not supported, or build it"
forbid '/(wor[k]|far[m]|hom[e])/[a-z.]' "a path of one machine"
forbid 'bash_job[s]|subagen[t]|before-sto[p]|developers. sessio[n]|issue #?[0-9]+([^0-9]|$)' \
    "a word of the place where it was written"

finish
