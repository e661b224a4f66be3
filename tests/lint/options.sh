#!/bin/bash
# options.sh - README.md names only options that exist, and every command that exists. Usage: options.sh [BIN-DIR]
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

bin=${1:-build/dev/bin}
[ -x "$bin/xferctl" ] || {
    echo "no $bin/xferctl: build first (./dev build dev)"
    exit 1
}

# The commands that xferctl's help lists: two spaces, a name, its summary; headings end with a colon.
commands=$("$bin/xferctl" --help | awk '
    /^[A-Z].*:$/ { is_commands = /^(Jobs|Fleet|Here):/ }
    is_commands && /^  [a-z]/ { print $1 }' | LC_ALL=C sort -u)

known=$({
    for program in xferctl xfer-agent xfer-coordinator; do
        "$bin/$program" --help
    done
    for command in $commands; do
        "$bin/xferctl" "$command" --help
    done
} | grep -oE -- '--[a-z][a-z-]*' | LC_ALL=C sort -u)

while IFS=: read -r line option; do
    grep -qxF -- "$option" <<<"$known" ||
        finding "README.md:$line" "$option is an option of no program"
done < <(grep -noE -- '--[a-z][a-z-]*' README.md)

# The first cells of the table below "## Commands": names between backquotes, before their arguments.
listed=$(sed -n '/^## Commands/,/^## Operating/p' README.md | awk -F ' [|] ' '/^[|] `/ { print $1 }' |
    grep -oE '`[a-z]+' | tr -d '`' | LC_ALL=C sort -u)
while read -r command; do
    finding README.md "the table of commands and xferctl --help differ: $command"
done < <(comm -3 <(printf '%s\n' "$commands") <(printf '%s\n' "$listed"))

finish
