#!/bin/sh
# Installs what the tests need beyond Go.
#
#   As root on Debian (or a derivative): installs what is missing through apt.
#   Anywhere else: prints what is missing and how a test behaves without it.
#
# Quiet, safe to run again, never asks. Exit status 0 unless apt itself failed.
# SETUP_SKIP="chromium qemu" leaves those out. SETUP_WITH="docker" adds the needs of
# that group, which are too large for every machine.
set -eu

# One line per need: NAME | COMMANDS, any of which means it is there | DEBIAN
# PACKAGES | what needs it | GROUP, empty for always.
needs() {
	cat <<-'LIST'
		chromium|chromium chromium-browser google-chrome|chromium|the dashboard test|
		nginx|nginx /usr/sbin/nginx|nginx|the doors test|
		caddy|caddy|caddy|the doors test|
		haproxy|haproxy /usr/sbin/haproxy|haproxy|the doors test|
		curl|curl|curl|the doors test|
		wrk|wrk|wrk|make bench-peers|
		qemu|qemu-aarch64-static qemu-aarch64|qemu-user-static|running the arm64 golden-hash test|
		engine|dockerd|docker.io|make docker-smoke|docker
		compose|docker-compose|docker-compose|make docker-smoke|docker
		nft|nft|nftables|make docker-smoke|docker
		prometheus|promtool|prometheus|checking the alerts and the dashboard in make docker-smoke|docker
	LIST
}

# present COMMANDS: is one of them on the path?
present() {
	for command in $1; do
		if command -v "$command" >/dev/null 2>&1; then
			return 0
		fi
	done
	return 1
}

# skipped NAME: did the caller ask to leave it out?
skipped() {
	case " ${SETUP_SKIP:-} " in
	*" $1 "*) return 0 ;;
	esac
	return 1
}

# wanted GROUP: is it of every machine, or did the caller ask for it?
wanted() {
	case " ${SETUP_WITH:-} " in
	*" $1 "*) return 0 ;;
	esac
	[ -z "$1" ]
}

can_install() {
	[ "$(id -u)" -eq 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null 2>&1
}

# quietly COMMAND...: shows the output only when the command fails.
quietly() {
	log=$(mktemp)
	if "$@" >"$log" 2>&1 </dev/null; then
		rm -f "$log"
		return 0
	fi
	status=$?
	echo "setup: failed ($status): $*" >&2
	cat "$log" >&2
	rm -f "$log"
	return "$status"
}

# missing: the lines of needs() that are neither present nor left out.
missing() {
	needs | while IFS='|' read -r name commands packages reason group; do
		if wanted "$group" && ! skipped "$name" && ! present "$commands"; then
			echo "$name|$commands|$packages|$reason"
		fi
	done
}

lacking=$(missing)
if [ -z "$lacking" ]; then
	exit 0
fi

if ! can_install; then
	echo "$lacking" | while IFS='|' read -r name commands packages reason; do
		echo "setup: missing $name (Debian: $packages), needed for $reason; that test is skipped without it"
	done
	exit 0
fi

packages=$(echo "$lacking" | cut -d'|' -f3 | tr '\n' ' ')
echo "setup: installing $packages" >&2
# A daemon among them is for a test to start, not for the machine, whose ports 80
# and 443 it would take. policy-rc.d says so to every way in which a package starts
# one, runlevel 1 to init scripts that do not ask it; and none comes up at the next boot.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	trap 'exit 1' HUP INT TERM
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
quietly apt-get update -qq
# The list is split into words on purpose.
# shellcheck disable=SC2086
quietly apt-get install -y -qq --no-install-recommends $packages
if command -v systemctl >/dev/null 2>&1; then
	for package in $packages; do
		if [ -e "/lib/systemd/system/$package.service" ]; then
			systemctl disable "$package.service" >/dev/null 2>&1 ||
				echo "setup: $package may come up at the next boot: it could not be disabled" >&2
		fi
	done
fi
