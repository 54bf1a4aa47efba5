#!/usr/bin/env bash
# bench-peers.sh [flags of bench-peers]: build subak and the benchmark, measure
# ours beside others, and keep the report. Exits with 1 where a claim falls short.
# With "test" first: the tests of the benchmark itself, whose module is its own,
# and a smoke run.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
out=${REPORTS:-bin/reports}/bench-peers
if [[ ${1:-} == test ]]; then
    shift
    (cd testbed/peers && "$go" vet ./... && "$go" test -race -shuffle=on ./...)
    set -- --smoke "$@"
    out=$out-smoke
fi
CGO_ENABLED=0 "$go" build -trimpath -ldflags '-s -w' -o bin/subak-peers ./cmd/node
(cd testbed/peers && CGO_ENABLED=0 "$go" build -trimpath -ldflags '-s -w' -o ../../bin/bench-peers .)
exec bin/bench-peers --node bin/subak-peers --repo . --out "$out" "$@"
