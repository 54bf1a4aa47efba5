#!/usr/bin/env bash
# docker-engine.sh LOG COMMAND...: runs COMMAND with a Docker engine of its own, as
# root on Linux, where none runs and none should be left running.
#
# The engine lives in fresh namespaces (network, mounts, processes, cgroups) with
# its files in memory: when COMMAND ends everything is gone, containers included.
# There is no network to the outside. LOG gets what the engine says. Exit status:
# that of COMMAND, or 75 if no engine came up.
set -euo pipefail
# Where Debian keeps the commands of root.
PATH=$PATH:/usr/sbin:/sbin

# mount_cgroups: this namespace's own view of the hierarchies of the machine. One
# that the machine does not give away is left out: the engine does without.
mount_cgroups() {
    local controllers name pid
    if [[ -e /sys/fs/cgroup/cgroup.controllers || $(cut -d: -f1 /proc/self/cgroup) == 0 ]]; then
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
        # A group that hands controllers down must hold no process itself.
        mkdir -p /sys/fs/cgroup/init
        while read -r pid; do
            echo "$pid" >/sys/fs/cgroup/init/cgroup.procs || true
        done </sys/fs/cgroup/cgroup.procs
        return
    fi
    mount -t tmpfs cgroups /sys/fs/cgroup
    while IFS=: read -r _ controllers _; do
        if [[ -z $controllers ]]; then
            continue
        fi
        name=${controllers#name=}
        mkdir -p "/sys/fs/cgroup/$name"
        mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/$name" 2>/dev/null || rmdir "/sys/fs/cgroup/$name"
    done </proc/self/cgroup
}

# inside PARENT LOG COMMAND...: the first process of the namespaces. PARENT is the
# cgroup for the containers.
inside() {
    local parent=$1 log=$2 engine
    shift 2
    mount --make-rprivate /
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount_cgroups
    mount -t tmpfs run /run
    mkdir /run/data
    ip link set lo up
    export DOCKER_HOST=unix:///run/docker.sock
    dockerd --host "$DOCKER_HOST" --data-root /run/data --exec-root /run/docker --pidfile /run/docker.pid \
        --cgroup-parent "$parent" >"$log" 2>&1 &
    engine=$!
    for _ in {1..300}; do
        if docker version >/dev/null 2>&1; then
            exec_status=0
            "$@" || exec_status=$?
            kill "$engine" # so that it takes down what COMMAND has left
            wait "$engine" || true
            exit "$exec_status"
        fi
        kill -0 "$engine" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 5 "$log" >&2
    exit 75
}

if [[ ${1:-} == --inside ]]; then
    shift
    inside "$@"
fi
if [[ $# -lt 2 ]]; then
    sed -n '2,3s/^# //p' "$0" >&2
    exit 2
fi
if ! unshare --net --mount --pid --cgroup --ipc --fork true; then
    exit 75
fi
parent=subak-engine-$$
status=0
unshare --net --mount --pid --cgroup --ipc --fork --kill-child "$0" --inside "/$parent" "$@" || status=$?
# The engine's groups hold nothing any more. Deepest first.
find /sys/fs/cgroup -depth -type d -path "*/$parent*" -exec rmdir {} + 2>/dev/null || true
exit "$status"
