#!/bin/bash
# includes.sh - who may include what: layers, third-party headers, own header first, no cycles.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

# Layer of a file: its two first folders below common and tests, else the first one.
# Layer and the layers it may include; its own is always allowed.
edges='
common/base
common/rt common/base
common/net common/base common/rt
common/s3 common/base common/rt
common/job common/base common/s3
proto common/base
coordinator common/base common/rt common/net common/s3 common/job proto
agent common/base common/rt common/net common/s3 common/job proto
ctl common/base common/rt common/net common/s3 common/job proto coordinator agent
tests/lib common/base common/rt common/net common/s3 common/job proto
tests/s3d common/base common/rt
'

# Third-party header (start of its name) and the files that may include it, as one regular expression.
third_party='
nng/ ^common/net/
curl/ ^(common/s3/|tests/bench/compare/floor[.]c$)
libxml/ ^(common/s3/|tests/s3d/xml[.]c$)
openssl/ ^(common/(s3/|base/hash[.]c$)|tests/s3d/digest[.]h$)
msgpack ^proto/codec[.]c$
sqlite3 ^(coordinator/store[a-z_]*|tests/fault/coordinator/store_vfs)[.][ch]$
zstd ^coordinator/store[a-z_]*[.][ch]$
zlib ^(common/base/hash[.]c$|tests/s3d/(digest|gzip)[.]c$)
jansson ^common/base/json[.]c$
microhttpd ^common/net/httpd[.]c$
systemd/ ^common/rt/daemon[.]c$
cmocka ^tests/lib/test[.]h$
'

# One line an include: file, line number, form ("" or <>), name.
list_includes() {
    c_files -print0 | tr '\n' '\0' | tr -s '\0' | sort -zu | xargs -0 -r awk '
        match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">]*[">]/) {
            s = substr($0, RSTART, RLENGTH)
            sub(/^[^"<]*/, "", s)
            print FILENAME, FNR, substr(s, 1, 1), substr(s, 2, length(s) - 2)
        }'
}

report=$(list_includes | awk -v edges="$edges" -v third="$third_party" '
    function layer(path, p) {
        split(path, p, "/")
        return (p[1] == "common" || p[1] == "tests") ? p[1] "/" p[2] : p[1]
    }
    function exists(path) {
        return (getline junk < path) >= 0 && (close(path) >= 0)
    }
    BEGIN {
        n = split(edges, row, "\n")
        for (i = 1; i <= n; i++) {
            m = split(row[i], word, " ")
            for (k = 1; k <= m; k++) {
                allowed[word[1], word[k]] = 1
                known[word[1]] = 1
            }
        }
        n = split(third, row, "\n")
        for (i = 1; i <= n; i++) {
            if (split(row[i], word, " ") == 2) {
                where[word[1]] = word[2]
            }
        }
    }
    {
        first = !($1 in seen)
        seen[$1] = 1
        own = $1
        sub(/[.]c$/, ".h", own)
        if (first && $1 ~ /[.]c$/ && $1 !~ /\/main[.]c$/ && exists(own) && $4 != own) {
            print $1 ":" $2 ": the own header must be the first include"
        }
    }
    $3 == "<" {
        for (name in where) {
            if (index($4, name) == 1 && $1 !~ where[name]) {
                print $1 ":" $2 ": <" $4 "> is not for this file; it belongs to " where[name]
            }
        }
        next
    }
    {
        from = layer($1)
        to = layer($4)
        if ($4 ~ /[.]c$/) {
            print $1 ":" $2 ": a .c file is never included"
        } else if ($4 !~ /\// || $4 ~ /^[.]/) {
            print $1 ":" $2 ": \"" $4 "\" does not start at the root"
        } else if (to != from && !((from, to) in allowed) && (from in known || from !~ /^tests\//)) {
            print $1 ":" $2 ": " from " must not include " to
        }
    }')
if [ -n "$report" ]; then
    found "include edge" <<<"$report"
fi

# Modules must not include each other in a circle; tsort prints the circles. A module is a .c with its
# .h, and the files of the same folder named after it: store_schema.c belongs to store.
circles=$(list_includes | awk '
    function module(path, stem, owner) {
        stem = path
        sub(/[.][ch]$/, "", stem)
        owner = stem
        while (sub(/_[a-z0-9]*$/, "", owner)) {
            if ((getline junk < (owner ".h")) >= 0) {
                close(owner ".h")
                stem = owner
            }
        }
        return stem
    }
    $3 == "\"" {
        a = module($1)
        b = module($4)
        if (a != b) {
            print a, b
        }
    }' | tsort 2>&1 >/dev/null | sed 's/^tsort: //; s/^-: input contains a loop:/circle:/' || true)
if [ -n "$circles" ]; then
    found "modules include each other in a circle" <<<"$circles"
fi

finish
