#!/bin/sh
# Installs what the tests need beyond Go.
#
#   As root on Debian (or a derivative): installs what is missing through apt.
#   Anywhere else: prints what is missing and how a test behaves without it.
#
# Quiet, safe to run again, never asks. Exit status 0 unless apt itself failed.
# SETUP_SKIP="chromium qemu" leaves those out.
set -eu

# One line per need: NAME | COMMANDS, any of which means it is there | DEBIAN
# PACKAGES | what needs it. Later needs (nginx, docker) are one line each.
needs() {
	cat <<-'LIST'
		chromium|chromium chromium-browser google-chrome|chromium|the dashboard test
		qemu|qemu-aarch64-static qemu-aarch64|qemu-user-static|running the arm64 golden-hash test
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
	needs | while IFS='|' read -r name commands packages reason; do
		if ! skipped "$name" && ! present "$commands"; then
			echo "$name|$commands|$packages|$reason"
		fi
	done
}

wanted=$(missing)
if [ -z "$wanted" ]; then
	exit 0
fi

if ! can_install; then
	echo "$wanted" | while IFS='|' read -r name commands packages reason; do
		echo "setup: missing $name (Debian: $packages), needed for $reason; that test is skipped without it"
	done
	exit 0
fi

packages=$(echo "$wanted" | cut -d'|' -f3 | tr '\n' ' ')
echo "setup: installing $packages" >&2
export DEBIAN_FRONTEND=noninteractive
quietly apt-get update -qq
# The list is split into words on purpose.
# shellcheck disable=SC2086
quietly apt-get install -y -qq --no-install-recommends $packages
