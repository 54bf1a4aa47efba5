#!/usr/bin/env bash
# demo.sh BINARY FLAG...: the demo as a check. A broken bound fails at once. A run
# without a verdict (this machine was too busy to offer the load on time) shows
# nothing, so it is run once more.
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bin=$1
shift
for try in 1 2; do
    "$bin" demo --plain "$@" | tee "$log"
    rc=${PIPESTATUS[0]}
    if [[ $rc -eq 0 ]]; then
        exit 0
    fi
    if ! grep -q '^no verdict' "$log"; then
        echo "demo $*: FAILED"
        exit 1
    fi
    echo "demo $*: try $try had no verdict"
done
exit 1
