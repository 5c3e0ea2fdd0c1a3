#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# check_completion.sh <completion file> <mpix_info>: what bash offers is what mpix_info knows.
set -euo pipefail
# shellcheck disable=SC1090
. "$1"
info=$2

offered() { # the words of the line; the last one is completed
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _mpix_info
    printf '%s\n' "${COMPREPLY[@]}" | sort
}
expect() { # <what> <expected> <offered>
    if [ "$2" != "$3" ]; then
        printf '%s: expected:\n%s\noffered:\n%s\n' "$1" "$2" "$3"
        exit 1
    fi
}

usage=$("$info" --help)
expect "options" "$( (echo --help; grep -oE -- '--[a-z]+' <<<"$usage") | sort -u)" "$(offered mpix_info '')"
expect "an option" "--partitions" "$(offered mpix_info --pairs --part)"
known() { sed -n "s/.*$1 //p" <<<"$2" | tr -d ',' | tr ' ' '\n' | sort; }
abilities=$(known 'that --require knows:' "$("$info" --require '?' 2>&1 || true)")
expect "--require" "$abilities" "$(offered mpix_info --require '')"
expect "--require, a second name" "shm,ucx" "$(offered mpix_info --require shm,u)"
paths=$(known 'it takes one of' "$("$info" --check --path '?' 2>&1 || true)")
expect "--path" "$paths" "$(offered mpix_info --check --path '')"
expect "a number" "" "$(offered mpix_info --pairs --bytes '')"
[ "$(complete -p mpix_info)" = "complete -F _mpix_info mpix_info" ]
[ -n "$paths" ] && [ -n "$abilities" ]
