#!/bin/bash
# banned.sh - calls and forms that are not used here, each with what to use instead.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

none='^$'

# ban REGEX EXCEPT-FILES-REGEX TEXT
ban() {
    local hits
    hits=$(c_files | grep -vE "$2" | tr '\n' '\0' | xargs -0 -r grep -nHE "$1" | cut -c1-160) || true
    [ -z "$hits" ] || found "$3" <<<"$hits"
}

# call NAMES: a regular expression of a call to one of them that is not a member or part of a name.
call() {
    printf '(^|[^A-Za-z0-9_.>])(%s)[[:space:]]*\\(' "$1"
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
    '^(common/base/mem[.]c|tests/lib/fuzz_replay[.]c)$' "use common/base/mem.h"
ban '^[[:space:]]*typedef[[:space:]]+(struct|enum|union)' "$none" "no typedef of a struct or enum"
ban '(^|[;{}),[:space:]])//([[:space:]]|$)' "$none" "comments are /* */"
ban '#[[:space:]]*if[[:space:]]+0' "$none" "dead code is removed"
ban 'NOLINT(NEXTLINE)?([[:space:]]*\*/|\([a-z0-9.,*-]*\)[[:space:]]*\*/)' "$none" "NOLINT needs a reason behind it"

finish
