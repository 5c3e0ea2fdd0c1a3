#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# check_wrapper_completion.sh <completion file> <mpixcc> <compiler>: bash offers the wrapper's options and the compiler's.
set -euo pipefail
# shellcheck disable=SC1090
. "$1"
wrapper=$2

offered() { # mpixcc with a word to complete
    COMP_WORDS=("$wrapper" "$1")
    COMP_CWORD=1
    _mpixcc
    printf '%s\n' "${COMPREPLY[@]}"
}
expect() { # <word> <one of those that are offered>
    local all
    all=$(offered "$1")
    grep -qxF -- "$2" <<<"$all" || { printf '%s: %s is not offered, but:\n%s\n' "$1" "$2" "$all"; exit 1; }
}

expect --showme: --showme:link
expect -sh -show
[ -z "$(offered prog)" ] # files, by bash
if [ "$3" = GNU ]; then expect -fopenm -fopenmp; fi
[ "$(complete -p mpixfort)" = "complete -o default -F _mpixcc mpixfort" ]
