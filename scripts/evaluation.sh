#!/usr/bin/env bash
# evaluation.sh [--check]: runs every command that docs/evaluation.md names in a line
# "<!-- output of: COMMAND -->" and puts what it prints between that line and
# "<!-- end of output -->". With --check nothing is written, and a difference fails.
set -euo pipefail
cd "$(dirname "$0")/.."
doc=docs/evaluation.md
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
started=$SECONDS commands=0 inside=
while IFS= read -r line; do
    case $line in
    '<!-- output of: subak '*' -->')
        arguments=${line#'<!-- output of: subak '}
        arguments=${arguments%' -->'}
        printf '%s\n\n' "$line"
        # shellcheck disable=SC2086 # words of a command
        bin/subak $arguments || { echo "evaluation: FAILED, subak $arguments exits with $?" >&2; exit 1; }
        printf '\n'
        commands=$((commands + 1)) inside=yes
        ;;
    '<!-- end of output -->')
        printf '%s\n' "$line"
        inside=
        ;;
    *) [[ -n $inside ]] || printf '%s\n' "$line" ;;
    esac
done <"$doc" >"$fresh"
if [[ $commands -eq 0 ]]; then
    echo "evaluation: FAILED, $doc names no command"
    exit 1
fi
if [[ ${1:-} == --check ]]; then
    if ! diff -u "$doc" "$fresh"; then
        echo "evaluation: FAILED, $doc is not what the commands print: run make evaluation"
        exit 1
    fi
    echo "evaluation: ok, $doc is what $commands commands print, $((SECONDS - started)) s"
else
    cat "$fresh" >"$doc"
    echo "evaluation: ok, $commands commands, $((SECONDS - started)) s, written to $doc"
fi
