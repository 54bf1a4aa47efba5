#!/usr/bin/env bash
# golden.sh: the allocation, the demand traces and the emulated delays must be the
# same bits on every build. Runs the golden tests on amd64 v1, amd64 v3 and 386;
# arm64 is cross-compiled and, where an emulator is installed, run.
set -euo pipefail
packages=(allocator internal/contention testbed/topology)
run() {
    echo "golden: $*"
    env "$@" CGO_ENABLED=0 go test -count=1 -run Golden "${packages[@]/#/./}"
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
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
for package in "${packages[@]}"; do
    GOARCH=arm64 CGO_ENABLED=0 go test -c -o "$dir/golden.test" "./$package"
    if [[ -n $emulator ]]; then
        (cd "$package" && "$emulator" "$dir/golden.test" -test.run Golden -test.count=1)
    fi
done
if [[ -n $emulator ]]; then
    built+=", arm64 (emulated)"
else
    built+=", arm64 (compiled only: no emulator installed)"
fi
echo "golden: ok, same bits on $built"
