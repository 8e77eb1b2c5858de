# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Root file systems of Debian's releases, for scripts/package. debootstrap makes each once, from the mirror of the
# machine's apt; a root is a copy of that. A command runs in a root with a mount namespace of its own. So nobody else
# sees what is mounted there, and it is gone when the command has ended, however it ends.

# shellcheck disable=SC1091 # it is checked separately
source test/vm/kernels.bash # mirror_of, KEYRING
ROOTS=${LEAKTOOLS_ROOTS:-${XDG_CACHE_HOME:-$HOME/.cache}/leaktools-roots}
# shellcheck disable=SC2034 # for scripts/package
SOURCE=/src/leaktools # the work tree's copy in a root

# private COMMAND...: runs it in a mount namespace of its own.
private() {
	unshare --mount --propagation private "$@"
}

# need_root SUITE ROOT: makes the root, and the base that it is a copy of, unless they exist.
need_root() {
	local suite=$1 root=$2 base=$ROOTS/$1

	[[ $(id -u) == 0 ]] || fail "only root may make a root file system: run it with sudo"
	[[ ! -d $root ]] || return 0
	mkdir -p "$ROOTS"
	if [[ ! -d $base ]]; then
		make_base "$suite" "$base.new" >"$ROOTS/$suite.log" 2>&1 || {
			tail -n 20 "$ROOTS/$suite.log" >&2
			fail "making a root file system of $suite failed: see $ROOTS/$suite.log"
		}
		mv "$base.new" "$base"
	fi
	rm -rf --one-file-system "$root.new"
	cp -a --reflink=auto "$base" "$root.new"
	mv "$root.new" "$root"
}

make_base() {
	local suite=$1 base=$2 mirror

	PATH=$PATH:/usr/sbin
	type -P debootstrap >/dev/null || { echo "debootstrap is not installed: run scripts/setup --vm" && return 1; }
	mirror=$(mirror_of "$suite")
	[[ -n $mirror ]] || { echo "the machine's apt knows no Debian mirror: run apt-get update" && return 1; }
	rm -rf --one-file-system "$base"
	private debootstrap --variant=minbase --keyring="$KEYRING" "$suite" "$base" "$mirror" || return
	rm -f "$base"/var/cache/apt/archives/*.deb
	# How this machine reaches its mirror, for instance through a proxy, or if the mirror is a snapshot.
	apt-config dump | grep -E '^Acquire::(https?::|Check-Valid-Until )' >"$base/etc/apt/apt.conf.d/90machine" || true
	# Packages must not start daemons: 101 forbids it.
	printf '#!/bin/sh\nexit 101\n' >"$base/usr/sbin/policy-rc.d"
	chmod 755 "$base/usr/sbin/policy-rc.d"
}

# copy_source DIRECTORY: copies the work tree there with its uncommitted changes. Keeps the build folder of that copy.
copy_source() {
	local file

	mkdir -p "$1"
	find "$1" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf --one-file-system {} +
	git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
		[[ ! -e $file && ! -L $file ]] || printf '%s\0' "$file"
	done | tar -c --null --files-from=- | tar -x -C "$1"
}

# enter ROOT COMMAND...: runs the command there. All roots of a suite share apt's downloads. Not by chroot alone: the kernel
# makes no user namespace for a process whose root is not that of its mount namespace (current_chrooted(), fs/namespace.c).
enter() {
	local root=$1 suite=${1##*/}

	shift
	mkdir -p "$ROOTS/debs-${suite%-*}/partial"
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	# shellcheck disable=SC2016 # expanded by the inner shell
	private bash -euc 'root=$1 debs=$2
		shift 2
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		mount --bind "$debs" "$root/var/cache/apt/archives"
		mountpoint -q "$root/sys/kernel/tracing" || mount -t tracefs tracefs "$root/sys/kernel/tracing"
		cd "$root"
		pivot_root . mnt
		umount -l mnt
		exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
			LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive ${TERM:+TERM="$TERM"} \
			${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
			${no_proxy:+no_proxy="$no_proxy"} "$@"' enter "$root" "$ROOTS/debs-${suite%-*}" "$@"
}
