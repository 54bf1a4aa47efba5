#!/usr/bin/env bash
# docker-smoke.sh: the compose cluster as a check. It builds the image from a binary
# built here (no base image, no registry), brings up five PoPs, origin and clients,
# cuts, kills and pauses by docker/chaos.sh, and takes the origin's verdict. With
# Debian's prometheus at hand it also proves that every panel of the dashboard shows
# something and that the alerts notice a partition.
#
# Engine: the one that answers, else one of our own by docker-engine.sh, installed
# by setup.sh where missing. Nothing is left of either.
# The last line is "docker: ok, ...", "docker: skipped, REASON" or "docker: FAILED,
# REASON"; only the last has exit status 1. SMOKE_LOGS=DIR keeps the logs.
set -euo pipefail
cd "$(dirname "$0")/.."
# Where Debian keeps the commands of root.
PATH=$PATH:/usr/sbin:/sbin

chaos=docker/chaos.sh
export SUBAK_PROJECT=subak-smoke COMPOSE_PROJECT_NAME=subak-smoke SUBAK_IMAGE=subak-smoke
export SUBAK_TARGET=prebuilt SUBAK_CYCLE=30s DOCKER_BUILDKIT=0

# clock: seconds since the start, in tenths.
clock() {
    local now=${EPOCHREALTIME//[.,]/}
    echo "$(((now - SMOKE_BEGAN) / 1000000)).$(((now - SMOKE_BEGAN) / 100000 % 10))"
}

step() {
    printf '%6.1f s  %s\n' "$(clock)" "$1"
}

detail() {
    printf '%10s%s\n' '' "$1"
}

# skip REASON: where the test cannot run. In CI what it needs must be there.
skip() {
    if [[ ${CI:-} == true ]]; then
        echo "docker: FAILED, skipped in CI: $1"
        exit 1
    fi
    echo "docker: skipped, $1"
    exit 0
}

# fail REASON: ends the test; the reason is for the last line.
fail() {
    echo "$1" >"$dir/failure"
    exit 1
}

# compose ARG...: whichever of the two versions is there.
compose() {
    if docker compose version >/dev/null 2>&1; then
        docker compose -f docker/compose.yaml "$@"
    else
        docker-compose -f docker/compose.yaml "$@"
    fi
}

# quietly NAME COMMAND...: what it says goes to a log, the end of which is shown if
# it fails.
quietly() {
    local log=$dir/logs/$1.log
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 30 "$log"
        return 1
    }
}

# ---- the test, with an engine that answers: docker-smoke.sh --run DIR ----------

# await GROUPS: until the nodes are ready, see just their group, and admit.
await() {
    printf '%10s%s: ' '' "${1:-all together}"
    $chaos await --serving --timeout 40s ${1:+--groups "$1"} || fail "the nodes never got there: ${1:-all together}"
}

# start_prometheus: it scrapes what the compose file publishes on this machine.
start_prometheus() {
    sed -e 's/ams:7947/127.0.0.1:7951/; s/fra:7947/127.0.0.1:7952/; s/iad:7947/127.0.0.1:7953/' \
        -e 's/gru:7947/127.0.0.1:7954/; s/sin:7947/127.0.0.1:7955/' \
        -e 's/origin:8081/127.0.0.1:7961/; s/load:8081/127.0.0.1:7962/' docker/prometheus/prometheus.yml >"$dir/prometheus.yml"
    cp docker/prometheus/alerts.yml "$dir/alerts.yml"
    prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" --web.listen-address=127.0.0.1:7963 \
        --log.level=warn >"$dir/logs/prometheus.log" 2>&1 &
    prometheus=$!
}

bring_up() {
    step "engine $(docker version --format '{{.Server.Version}}'): image and containers"
    quietly up compose up --build --detach
    docker image inspect --format '{{.Size}} {{.Config.User}}' "$SUBAK_IMAGE" |
        awk -v node="$(stat -c %s bin/image/subak)" '{printf "%10simage: %.1f MB as user %s; %.1f MB without the test traffic\n", "", $1/1e6, $2, node/1e6}'
    if command -v prometheus >/dev/null; then
        start_prometheus
    fi
    await
    $chaos reset
    $chaos status
    step "load"
    sleep 5
}

faults() {
    step "two cut off: ams and fra"
    $chaos partition ams,fra
    await ams,fra/iad,gru,sin
    sleep 6
    $chaos heal
    await

    step "one off the network: iad"
    $chaos isolate iad
    await iad/ams,fra,gru,sin
    sleep 5
    $chaos heal
    await

    step "gru does not hear sin, and everybody loses a fifth"
    $chaos oneway sin gru
    $chaos loss 20
    sleep 5
    $chaos heal
    await

    step "kill -9 of fra, and back"
    $chaos kill fra
    await ams,iad,gru,sin
    sleep 3
    $chaos start fra
    await

    step "sin stands still for 4 s"
    $chaos pause sin
    sleep 4
    $chaos resume sin
    await
}

take_verdict() {
    local status=0 healthy=0
    step "the verdict"
    $chaos verdict >"$dir/logs/verdict.log" || status=$?
    sed 's/^/          /' "$dir/logs/verdict.log"
    [[ $status -eq 0 ]] || fail "$(tail -n 1 "$dir/logs/verdict.log")"
    # The engine holds a node that was paused for unhealthy until its next probe.
    for _ in {1..30}; do
        healthy=$(docker ps --filter "label=com.docker.compose.project=$SUBAK_PROJECT" --filter health=healthy --quiet | wc -l)
        if [[ $healthy -eq 5 ]]; then
            detail "and all five health checks pass"
            return
        fi
        sleep 0.5
    done
    fail "$healthy of 5 nodes are healthy by their health check"
}

# observed: asks a real Prometheus for all that the dashboard and the alerts ask.
observed() {
    step "dashboard and alerts"
    "$dir/observe" --prometheus http://127.0.0.1:7963 --dashboard docker/grafana/dashboards/subak.json \
        --rules docker/prometheus/alerts.yml --noticed SubakPeerSilent,SubakIsolated,SubakNodeDown --silent SubakOverBudget ||
        fail "the dashboard or the alerts are not as they should be"
}

# finish: stops and removes everything, whatever happened.
finish() {
    local status=$? label="label=com.docker.compose.project=$SUBAK_PROJECT" left
    trap - EXIT
    set +e # the first failure is the one to tell of
    if [[ $status -ne 0 ]]; then
        docker ps --all --filter "$label"
        compose logs --no-color >"$dir/logs/containers.log" 2>&1
    fi
    if [[ -n $prometheus ]]; then
        kill "$prometheus" 2>/dev/null
        wait "$prometheus"
    fi
    step "down"
    compose down --volumes --timeout 15 >"$dir/logs/down.log" 2>&1
    docker image rm --force "$SUBAK_IMAGE" >/dev/null 2>&1
    left=$(
        docker ps --all --quiet --filter "$label"
        docker volume ls --quiet --filter "$label"
        docker network ls --quiet --filter "$label"
    )
    if [[ $status -eq 0 && -n $left ]]; then
        fail "containers, volumes or networks are left"
    fi
    exit "$status"
}

if [[ ${1:-} == --run ]]; then
    dir=$2
    prometheus=""
    trap finish EXIT
    bring_up
    faults
    take_verdict
    if [[ -n $prometheus ]]; then
        observed
    fi
    exit
fi

# ---- from the outside ----------------------------------------------------------

SMOKE_BEGAN=${EPOCHREALTIME//[.,]/}
export SMOKE_BEGAN
[[ $(uname) == Linux ]] || skip "the faults need Linux"
[[ $(id -u) -eq 0 ]] || skip "cutting containers off needs root"
have="chromium qemu" # needs of other tests
engine=our
if docker info >/dev/null 2>&1; then
    engine=the
    have+=" engine"
fi
if docker compose version >/dev/null 2>&1; then
    have+=" compose"
fi
SETUP_WITH=docker SETUP_SKIP=$have scripts/setup.sh || skip "packages cannot be installed"
for command in docker nft nsenter unshare ip; do
    command -v "$command" >/dev/null || skip "there is no $command"
done
docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null || skip "there is no docker compose"
[[ $engine == the ]] || command -v dockerd >/dev/null || skip "there is no engine"

dir=$(mktemp -d "${TMPDIR:-/tmp}/subak-smoke-XXXXXX")
told="" # the last line has been printed
trap '[[ -n $told ]] || echo "docker: FAILED, see above"; rm -rf "$dir"' EXIT
mkdir -p "$dir/logs" bin/image
SMOKE_BEGAN=${EPOCHREALTIME//[.,]/} # what was installed does not count
step "binaries"
version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$version" -o bin/image/subak ./cmd/node
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/image/traffic ./docker/traffic
go build -o "$dir/observe" ./docker/observe
if command -v promtool >/dev/null; then
    quietly promtool promtool check config docker/prometheus/prometheus.yml
    quietly promtool-test promtool test rules docker/prometheus/alerts_test.yml
    detail "promtool: $(grep -c 'alert:' docker/prometheus/alerts.yml) alerts; their tests pass"
fi
status=0
if [[ $engine == the ]]; then
    "$0" --run "$dir" || status=$?
else
    scripts/docker-engine.sh "$dir/logs/dockerd.log" "$0" --run "$dir" || status=$?
fi
if [[ -n ${SMOKE_LOGS:-} ]]; then
    mkdir -p "$SMOKE_LOGS"
    cp "$dir"/logs/*.log "$SMOKE_LOGS/"
fi
told=yes
case $status in
0) echo "docker: ok, $(tail -n 1 "$dir/logs/verdict.log"), $(clock) s" ;;
75) skip "an engine does not start here" ;;
*)
    echo "docker: FAILED, $(cat "$dir/failure" 2>/dev/null || echo "see above")"
    exit 1
    ;;
esac
