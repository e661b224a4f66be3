#!/bin/bash
# format.sh - every C file is as clang-format writes it; `./dev format` rewrites them.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

c_files | xargs -d '\n' -P "$(nproc)" -n 20 clang-format --dry-run -Werror || finding "format" "run ./dev format"

finish
