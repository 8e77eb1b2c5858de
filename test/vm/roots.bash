# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The guest's root file systems, for test/vm/run, with what the tests need: made by debootstrap, or for another machine
# than this one by unpacking packages.

# Programs that the tests use, and the libraries that the build links, by their Debian 12 names.
ROOT_PACKAGES=(bats binutils bpftool bsdextrautils bsdutils dwz file g++ gcc gdb iproute2 jq kmod less libc6-dev
	libcap2-bin libcmocka0 linux-perf procps psmisc python3 redis-server redis-tools strace tinyproxy-bin util-linux
	xz-utils)
# shellcheck disable=SC2034 # by make_root's nameref
ROOT_LIBRARIES_bookworm=(libbpf1 libcap-ng0 libdebuginfod1 libdw1 libelf1 libglib2.0-0 libjemalloc2
	liblzma5 libmimalloc2.0 libncursesw6 libprotobuf-c1 libtcmalloc-minimal4 libtinfo6 libtraceevent1
	libtracefs1 libzstd1 libzydis4.0 musl zlib1g)
# shellcheck disable=SC2034
ROOT_LIBRARIES_trixie=(libbpf1 libcap-ng0 libdebuginfod1t64 libdw1t64 libelf1t64 libglib2.0-0t64 libjemalloc2
	liblzma5 libmimalloc3 libncursesw6 libprotobuf-c1 libtcmalloc-minimal4t64 libtinfo6 libtraceevent1
	libtracefs1 libzstd1 libzydis4.1 musl zlib1g)
ROOT_SIZE=12G # a sparse file

# make_root SUITE: makes $CACHE/root/SUITE.img if it is missing or was made from another list of packages.
make_root() {
	local suite=$1 image=$CACHE/root/$1.img fill=fill_root work
	local -n libraries=ROOT_LIBRARIES_$1
	local packages=("${ROOT_PACKAGES[@]}" "${libraries[@]}")

	[[ ! -e $image || $(cat "$image.packages") != "${packages[*]}" ]] || return 0
	echo "run: making the root file system of $suite" >&2
	mkdir -p "$CACHE/root"
	work=$(mktemp -d "$RUN_DIR/root.XXXXXX")
	[[ -z $APT_ARCHITECTURE ]] || fill=unpack_root
	if ! "$fill" "$suite" "$work/root" "${packages[@]}" >"$CACHE/root/$suite.log" 2>&1; then
		tail -n 20 "$CACHE/root/$suite.log" >&2
		fail "making the root file system failed: see $CACHE/root/$suite.log"
	fi
	truncate -s "$ROOT_SIZE" "$work/image"
	mkfs.ext4 -q -F -E lazy_itable_init=1,lazy_journal_init=1 -d "$work/root" "$work/image"
	mv "$work/image" "$image"
	echo "${packages[*]}" >"$image.packages"
	rm -rf --one-file-system "$work"
}

# fill_root SUITE ROOT PACKAGE...: installs the packages. debootstrap's own resolver is too simple for all of them, so
# apt downloads them from outside; the root needs no network.
fill_root() {
	local suite=$1 root=$2 mirror

	mirror=$(mirror_of "$suite")
	[[ -n $mirror ]] || { echo "the machine's apt knows no Debian mirror: run apt-get update" && return 1; }
	debootstrap --variant=minbase --keyring="$KEYRING" "$suite" "$root" "$mirror" || return
	rm -f "$root"/var/cache/apt/archives/*.deb
	apt_do "$suite" apt-get -q -y --no-install-recommends --download-only \
		-o Dir::State::status="$root/var/lib/dpkg/status" \
		-o Dir::Cache::archives="$root/var/cache/apt/archives" install "${@:3}" || return
	# Packages must not start daemons: 101 forbids it.
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	cp "$CACHE/apt/$suite/sources.list" "$root/etc/apt/sources.list"
	cp -r "$CACHE/apt/$suite/lists/." "$root/var/lib/apt/lists"
	DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -q -y --no-install-recommends --no-download \
		install "${@:3}" || return
	umount_below "$root"
	rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
	name_root "$root"
}

# name_root ROOT: what every root needs beside its packages.
name_root() {
	mkdir -p "$1/vm"
	echo leaktools-vm >"$1/etc/hostname"
	printf '127.0.0.1 localhost leaktools-vm\n::1 localhost\n' >"$1/etc/hosts"
}

# unpack_root SUITE ROOT PACKAGE...: unpacks the packages of another machine, whose programs this one cannot run. So
# nothing is configured but what the tests need.
unpack_root() {
	local suite=$1 root=$2 debs package required

	debs=$(dirname "$root")/debs
	mkdir -p "$debs/partial" "$root"/usr/{bin,sbin,lib} "$root"/{dev,proc,sys,run,tmp,root,etc}
	for package in bin sbin lib; do
		ln -s "usr/$package" "$root/$package"
	done
	mapfile -t required < <(apt_do "$suite" apt-cache dumpavail |
		awk '/^Package: / { name = $2 } /^(Essential: yes|Priority: required)/ { print name }' | sort -u)
	apt_do "$suite" apt-get -q -y --no-install-recommends --download-only -o Dir::Cache::archives="$debs" \
		install "${required[@]}" "${@:3}" || return
	for package in "$debs"/*.deb; do
		dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink || return
	done
	chmod 1777 "$root/tmp"
	cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
	cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
	ln -s mawk "$root/usr/bin/awk"
	ln -s which.debianutils "$root/usr/bin/which"
	ln -s gcc "$root/usr/bin/cc"
	ln -s g++ "$root/usr/bin/c++"
	name_root "$root"
}

# Unmounts what debootstrap and packages may have left mounted.
umount_below() {
	awk -v dir="${1:?}/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount
}
