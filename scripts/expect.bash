# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# For scripts that try commands: what is expected of one, and how many were otherwise. To be sourced.

failures=0
# expect STATUS TEXT COMMAND...: an exit status (0, or "failure"), and what is printed.
expect() {
    local status=$1 text=$2 result=0 printed
    shift 2
    printed=$("$@" 2>&1 </dev/null) || result=$?
    if [[ $printed =~ $text ]] && { [ "$status" = "$result" ] || { [ "$status" = failure ] && [ "$result" != 0 ]; }; }; then
        echo "as expected: $*"
    else
        printf 'FAILED (%d): %s\n%s\nexpected: %s\n' "$result" "$*" "$(tail -n 40 <<<"$printed")" "$text"
        failures=$((failures + 1))
    fi
}
