# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Source this in scripts that try commands. It counts in `failures` the commands that did not do what was expected; the
# script tests that at its end.
#
# expect STATUS TEXT COMMAND...: runs the command without input. STATUS is its exit status, or "failure" for any but 0;
# TEXT is a regular expression that its output, stderr included, has to match.
failures=0
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
