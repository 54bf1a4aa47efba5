#!/usr/bin/env bash
# golden.sh: the allocation must give the same bits on every build. Runs the
# golden tests on amd64 v1, amd64 v3 and 386; arm64 is cross-compiled and, where
# an emulator is installed, run.
set -euo pipefail
run() {
    echo "golden: $*"
    env "$@" CGO_ENABLED=0 go test -count=1 -run Golden ./allocator/...
}
run GOARCH=amd64 GOAMD64=v1
built="amd64 v1"
if grep -q avx2 /proc/cpuinfo && grep -q bmi2 /proc/cpuinfo && grep -q fma /proc/cpuinfo; then
    run GOARCH=amd64 GOAMD64=v3
    built+=", amd64 v3"
elif [[ ${CI:-} == true ]]; then
    echo "golden: FAILED, this CPU cannot run GOAMD64=v3"
    exit 1
fi
run GOARCH=386
built+=", 386"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
GOARCH=arm64 CGO_ENABLED=0 go test -c -o "$dir/golden.test" ./allocator
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if [[ -n $emulator ]]; then
    (cd allocator && "$emulator" "$dir/golden.test" -test.run Golden -test.count=1)
    built+=", arm64 (emulated)"
else
    built+=", arm64 (compiled only: no emulator installed)"
fi
echo "golden: ok, same bits on $built"
