#!/usr/bin/env bash
# chaos.sh: faults for the cluster of docker/compose.yaml, and what came of them.
#
#   isolate NODES             take each of NODES off the WAN (docker network disconnect)
#   partition A,B[/C,D]       cut the WAN between groups; nodes that are not named
#                             are one more group                          (nft)
#   oneway FROM TO            what FROM sends no longer reaches TO         (nft)
#   loss PERCENT [NODES]      lose that much of what reaches NODES         (nft)
#   heal                      mend all of these, and resume what was paused
#   kill | stop | start | restart | pause | resume NODES
#   status                    ask every node
#   await [FLAG...]           wait until it is so: traffic await --help
#   reset                     the origin forgets what it saw
#   verdict                   was the budget kept since? 0 yes, 1 no, 4 cannot tell
#
# NODES is a list such as ams,fra, or all. A restarted node has lost its nft rules.
# nft works inside of a container's network namespace: on Linux, as root, where the
# engine runs. Environment: SUBAK_PROJECT, the compose project (default subak).
set -euo pipefail

project=${SUBAK_PROJECT:-subak}
all=(ams fra iad gru sin)
table="inet subak_chaos"

die() {
    echo "chaos: $*" >&2
    exit 2
}

usage() {
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
}

# address NODE: on the WAN, as compose.yaml fixes it.
address() {
    case $1 in
    ams) echo 10.207.7.11 ;;
    fra) echo 10.207.7.12 ;;
    iad) echo 10.207.7.13 ;;
    gru) echo 10.207.7.14 ;;
    sin) echo 10.207.7.15 ;;
    *) die "there is no node $1; the nodes are ${all[*]}" ;;
    esac
}

# nodes LIST: one name a line, checked.
nodes() {
    local list=${1:-} name
    if [[ -z $list ]]; then
        die "name nodes, such as ams,fra, or all"
    fi
    if [[ $list == all ]]; then
        printf '%s\n' "${all[@]}"
        return
    fi
    for name in ${list//,/ }; do
        address "$name" >/dev/null
        echo "$name"
    done
}

# container SERVICE: its id, whether it runs or not.
container() {
    local id
    id=$(docker ps -aq --filter "label=com.docker.compose.project=$project" --filter "label=com.docker.compose.service=$1")
    if [[ -z $id ]]; then
        die "no container of $1 in project $project; is the cluster up?"
    fi
    echo "$id"
}

containers() {
    local list name
    list=$(nodes "$1") || return
    for name in $list; do
        container "$name"
    done
}

state() {
    docker inspect --format '{{.State.Status}}' "$(container "$1")"
}

# on_wan NODE: is it connected?
on_wan() {
    [[ -n $(docker inspect --format "{{with index .NetworkSettings.Networks \"${project}_wan\"}}yes{{end}}" "$(container "$1")") ]]
}

# inside NODE NFT-COMMANDS: runs them in the node's network namespace.
inside() {
    local pid
    pid=$(docker inspect --format '{{.State.Pid}}' "$(container "$1")")
    if [[ $pid == 0 ]]; then
        die "$1 does not run"
    fi
    if ! command -v nft >/dev/null || ! command -v nsenter >/dev/null; then
        die "needs nft and nsenter (Debian: nftables util-linux)"
    fi
    nsenter --target "$pid" --net nft "$2"
}

# drop NODE MATCH: the node no longer hears what matches. Dropping it on arrival
# leaves the sender none the wiser, as a cut in the middle does.
drop() {
    inside "$1" "add table $table; add chain $table in { type filter hook input priority -10; }; add rule $table in $2 drop"
}

isolate() {
    local list name
    list=$(nodes "$1")
    for name in $list; do
        if on_wan "$name"; then
            docker network disconnect "${project}_wan" "$(container "$name")"
        fi
    done
}

# group_of NODE GROUP...: which of them it is in; 0 for none.
group_of() {
    local name=$1 i=0 group
    shift
    for group in "$@"; do
        i=$((i + 1))
        if [[ ",$group," == *",$name,"* ]]; then
            echo "$i"
            return
        fi
    done
    echo 0
}

partition() {
    local groups group from to
    IFS=/ read -ra groups <<<"$1"
    for group in "${groups[@]}"; do
        nodes "$group" >/dev/null
    done
    for to in "${all[@]}"; do
        if [[ $(state "$to") != running ]]; then
            continue # it hears nobody, and its rules would be gone when it starts
        fi
        for from in "${all[@]}"; do
            if [[ $(group_of "$from" "${groups[@]}") != $(group_of "$to" "${groups[@]}") ]]; then
                drop "$to" "ip saddr $(address "$from")"
            fi
        done
    done
}

loss() {
    local list name
    [[ $1 =~ ^[0-9]+$ && $1 -le 100 ]] || die "loss takes a whole number of percent, not $1"
    list=$(nodes "${2:-all}")
    for name in $list; do
        drop "$name" "ip saddr 10.207.7.0/24 numgen random mod 100 < $1"
    done
}

heal() {
    local name
    for name in "${all[@]}"; do
        if ! on_wan "$name"; then
            docker network connect --ip "$(address "$name")" --alias "$name.wan" --alias "$name" "${project}_wan" "$(container "$name")"
        fi
        case $(state "$name") in
        paused) docker unpause "$(container "$name")" >/dev/null ;;
        running) ;;
        *) continue ;; # no namespace, no rules
        esac
        # Adding it first makes deleting it right whether it was there or not.
        if command -v nft >/dev/null; then
            inside "$name" "add table $table; delete table $table"
        fi
    done
}

# each COMMAND NODES: a docker command on every one of them.
each() {
    local ids
    ids=$(containers "$2")
    # A list of words on purpose, both.
    # shellcheck disable=SC2086
    docker $1 $ids >/dev/null
}

ask() {
    docker exec "$(container origin)" /usr/bin/traffic "$@"
}

verb=${1:-help}
shift || true
case $verb in
isolate) isolate "${1:-}" ;;
partition)
    [[ $# -eq 1 ]] || die "partition takes groups, such as ams,fra or ams,fra/iad"
    partition "$1"
    ;;
oneway)
    [[ $# -eq 2 ]] || die "oneway takes FROM and TO"
    from=$(address "$1")
    drop "$2" "ip saddr $from"
    ;;
loss)
    [[ $# -ge 1 ]] || die "loss takes a percentage"
    loss "$@"
    ;;
heal) heal ;;
kill) each kill "${1:-}" ;;
stop) each "stop --time 15" "${1:-}" ;;
start) each start "${1:-}" ;;
restart) each "restart --time 15" "${1:-}" ;;
pause) each pause "${1:-}" ;;
resume) each unpause "${1:-}" ;;
status | await | reset | verdict) ask "$verb" "$@" ;;
help | -h | --help) usage ;;
*)
    usage >&2
    die "no such command: $verb"
    ;;
esac
