#!/usr/bin/env bash
# fuzz.sh TIME: run every fuzz target of the module for TIME (5s or 20000x) each.
set -euo pipefail
time=${1:-20000x}
n=0
while IFS=: read -r file name; do
    echo "fuzz $(dirname "$file") $name"
    go test "./$(dirname "$file")" -run '^$' -fuzz "^$name\$" -fuzztime "$time" >/tmp/fuzz.$$ 2>&1 || {
        cat /tmp/fuzz.$$
        rm -f /tmp/fuzz.$$
        echo "fuzz-smoke: FAILED at $name in $file"
        exit 1
    }
    grep '^fuzz: elapsed' /tmp/fuzz.$$ | tail -n 1
    n=$((n + 1))
done < <(git ls-files '*_test.go' | xargs grep -oE '^func Fuzz[A-Za-z0-9_]+' | sed -E 's/:func /:/' | sort)
rm -f /tmp/fuzz.$$
echo "fuzz-smoke: ok, $n targets, $time each"
