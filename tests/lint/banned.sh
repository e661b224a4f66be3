#!/bin/bash
# banned.sh - calls and forms that are not used here, each with what to use instead.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

none='^$'

# The code as lines FILE:LINE:TEXT, without the inside of comments and strings.
code=$(c_files | xargs -d '\n' awk '
    FNR == 1 { inside = 0 }
    {
        text = $0
        out = ""
        while (text != "") {
            at = index(text, inside ? "*/" : "/*")
            if (at == 0) {
                out = out (inside ? "" : text)
                break
            }
            out = out (inside ? "" : substr(text, 1, at - 1))
            text = substr(text, at + 2)
            inside = !inside
        }
        gsub(/"([^"\\]|\\.)*"/, "\"\"", out)
        print FILENAME ":" FNR ":" out
    }')

# ban REGEX EXCEPT-FILES-REGEX TEXT: in code.
ban() {
    local hits
    hits=$(grep -E ":[0-9]+:(.*[^A-Za-z0-9_.>])?$1" <<<"$code" | grep -vE "$2" | cut -c1-160) || true
    [ -z "$hits" ] || found "$3" <<<"$hits"
}

# ban_text REGEX TEXT: in comments too.
ban_text() {
    local hits
    hits=$(c_files | xargs -d '\n' grep -nHE "$1" | cut -c1-160) || true
    [ -z "$hits" ] || found "$2" <<<"$hits"
}

# call NAMES: a regular expression of a call to one of them.
call() {
    printf '(%s)[[:space:]]*\\(' "$1"
}

ban "$(call 'strcpy|strcat|strncpy|strncat|sprintf|vsprintf|gets')" "$none" "use struct xf_buf"
ban "$(call 'strtok|strtok_r|strsep')" "$none" "use xf_str_cut"
ban "$(call 'atoi|atol|atoll|atof')" "$none" "use xf_str_u64 or xf_str_i64"
ban "$(call 'strerror|perror')" "$none" "use xf_errno_text"
ban "$(call 'localtime|gmtime|ctime|asctime')" "$none" "use common/base/clock.h"
ban "$(call 'rand|srand|random|drand48')" "$none" "use struct xf_rng"
ban "$(call 'system|popen')" "$none" "start a program with an argument list"
ban "$(call 'sleep|usleep|nanosleep|clock_nanosleep')" "$none" "wait for a condition with a deadline"
ban "$(call 'alloca')" "$none" "no stack memory of a variable size"
ban "$(call 'malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf|vasprintf')" \
    '^(common/base/mem|tests/lib/fuzz_replay)[.]c:' "use common/base/mem.h"
ban 'XF_AUTO[A-Z_]*(\([a-z0-9_]+\))?[[:space:]][^=;(]*;' "$none" \
    "what is cleaned up at every return has a value from its first line on: = {0}, = NULL, = -1"
ban 'typedef[[:space:]]+(struct|enum|union)' "$none" "no typedef of a struct or enum"
ban '#[[:space:]]*if[[:space:]]+0' "$none" "dead code is removed"
ban '//([[:space:]]|$)' "$none" "comments are /* */"
ban_text 'NOLINT(NEXTLINE)?(\([a-z0-9.,*-]*\))?[[:space:]]*(\*/|$)' "NOLINT needs a reason behind it"

finish
