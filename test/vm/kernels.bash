# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Debian's kernels, for test/vm/run: lists them with apt, and downloads and unpacks one. Nothing is installed: apt runs
# with its own lists and sources in the cache folder, and with the mirror of the machine's sources.

CODENAMES=(bookworm trixie)
SUITES=()
for codename in "${CODENAMES[@]}"; do
	SUITES+=("$codename" "$codename-updates" "$codename-backports" "$codename-security")
done
SUITES+=(sid experimental)
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
LIST_MAX_AGE_MINUTES=$((24 * 60))
APT_ARCHITECTURE='' # whose packages apt_do knows; empty: the machine's

# apt_do SUITE COMMAND [ARG...]: runs apt-get or apt-cache on that suite alone.
apt_do() {
	local dir=$CACHE/apt/$1 command=$2 of=()

	[[ -z $APT_ARCHITECTURE ]] ||
		of=(-o APT::Architecture="$APT_ARCHITECTURE" -o APT::Architectures="$APT_ARCHITECTURE")
	shift 2
	"$command" -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::State::lists="$dir/lists" \
		-o Dir::Cache="$dir/cache" -o Dir::State::status=/dev/null -o Acquire::Languages=none \
		-o Acquire::Retries=3 -o APT::Sandbox::User=root -o Debug::NoLocking=true "${of[@]}" "$@"
}

# mirror_of SUITE: prints the URL of the mirror for suites like this one, or nothing if apt has no lists yet.
mirror_of() {
	local pattern='^[a-z]+(-updates)?$'

	[[ $1 != *-security ]] || pattern='-security$'
	# shellcheck disable=SC2016 # apt-get expands it
	apt-get indextargets --format '$(SITE) $(RELEASE) $(ORIGIN)' 'Created-By: Packages' |
		awk -v pattern="$pattern" '$2 ~ pattern && $3 == "Debian" { print $1; exit }'
}

# update_suite SUITE: downloads its list of packages. Prints the reason if that fails.
update_suite() {
	local dir=$CACHE/apt/$1 mirror

	mirror=$(mirror_of "$1")
	if [[ -z $mirror ]]; then
		echo "the machine's apt knows no Debian mirror: run apt-get update"
		return 1
	fi
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	echo "deb [signed-by=$KEYRING] $mirror $1 main" >"$dir/sources.list"
	if ! apt_do "$1" apt-get update -o APT::Update::Error-Mode=any >"$dir/log" 2>&1; then
		sed -nE 's/^[EW]: *//p' "$dir/log" | head -n 1
		return 1
	fi
}

# kernels_of SUITE: prints "RELEASE VERSION SUITE PACKAGE,..." for each kernel, except cloud kernels, realtime kernels
# and metapackages. From 6.18 on, a kernel consists of several packages. If one of them is missing, prints "RELEASE
# VERSION SUITE -MISSING". linux-base-RELEASE may be missing, because it has nothing that a guest needs.
kernels_of() {
	apt_do "$1" apt-cache dumpavail | awk -v suite="$1" -v of="${APT_ARCHITECTURE:-amd64}" 'BEGIN { RS = ""; FS = "\n" }
		$1 ~ "^Package: linux-(image|base|binary|modules)-[0-9][^ ]*-" of "$" && $1 !~ "-(cloud|rt)-" of "$" {
			version = depends = ""
			for (i = 2; i <= NF; i++) {
				if (sub(/^Version: /, "", $i)) version = $i
				if ($i ~ /^Depends: /) depends = $i
			}
			sub(/^Package: /, "", $1)
			there[$1, version] = 1
			if ($1 ~ /^linux-image-/ && depends !~ /linux-image-/) needs[$1, version] = depends
		}
		END {
			for (key in needs) {
				split(key, image, SUBSEP)
				packages = image[1]
				missing = ""
				while (match(needs[key], /linux-(base|binary|modules)-[0-9][^ ,]*/)) {
					package = substr(needs[key], RSTART, RLENGTH)
					needs[key] = substr(needs[key], RSTART + RLENGTH)
					if ((package, image[2]) in there) packages = packages "," package
					else if (package !~ /^linux-base-/) missing = package
				}
				print substr(image[1], 13), image[2], suite, missing ? "-" missing : packages
			}
		}'
}

# Makes $CACHE/kernels, a list of all kernels with the newest last, and $CACHE/kernels.failed, a list of those that are
# not available, with the reasons.
update_kernel_list() {
	local suite why dir

	dir=$(mktemp -d "$RUN_DIR/list.XXXXXX")
	touch "$dir/kernels" "$dir/failed"
	for suite in "${SUITES[@]}"; do
		if why=$(update_suite "$suite"); then
			kernels_of "$suite" >>"$dir/kernels"
		else
			echo "apt cannot read $suite: $why" >>"$dir/failed"
		fi
	done
	awk '$4 ~ /^-/ { print "Linux", $1, "of", $3 ": no package", substr($4, 2) }' "$dir/kernels" |
		sort -V >>"$dir/failed"
	# A kernel that several suites have is listed once.
	awk '$4 !~ /^-/' "$dir/kernels" | sort -s -k 2,2V -k 1,1 | awk '!seen[$1 $2]++' >"$dir/list"
	mv "$dir/failed" "$CACHE/kernels.failed"
	if [[ ! -s $dir/list && -s $CACHE/kernels ]]; then
		echo "run: apt found no kernels: using the list of $(stat -c %y "$CACHE/kernels")" >&2
		return
	fi
	mv "$dir/list" "$CACHE/kernels"
}

need_kernel_list() {
	[[ -n ${1:-} || ! -s $CACHE/kernels ||
		-n $(find "$CACHE/kernels" -mmin +$LIST_MAX_AGE_MINUTES) ]] || return 0
	echo "run: asking apt which kernels are available" >&2
	update_kernel_list
}

# find_kernel SERIES: prints the line of the newest kernel whose release is SERIES or begins with it.
find_kernel() {
	awk -v series="$1" '
		series == "newest" || index($1, series ".") == 1 || index($1, series "-") == 1 ||
			index($1, series "+") == 1 || $1 == series { found = $0 }
		END { if (found) print found; else exit 1 }' "$CACHE/kernels"
}

# unpack_packages SUITE DIR PACKAGE...: downloads them, and unpacks them in DIR/root. apt's messages are in DIR/log.
unpack_packages() {
	local package

	(cd "$2" && apt_do "$1" apt-get -q download "${@:3}" >log 2>&1) || return
	for package in "$2"/*.deb; do
		dpkg-deb -x "$package" "$2/root" || return
	done
}

# fetch_kernel RELEASE VERSION SUITE PACKAGE,...: makes $CACHE/kernel/RELEASE with vmlinuz, config, initrd
# and lib/modules.
fetch_kernel() {
	local release=$1 dir=$CACHE/kernel/$1 work packages

	[[ ! -e $dir/version || $(cat "$dir/version") != "$2" ]] || return 0
	echo "run: fetching Linux $release ($2, $3)" >&2
	mkdir -p "$CACHE/kernel"
	work=$(mktemp -d "$RUN_DIR/kernel.XXXXXX")
	IFS=, read -ra packages <<<"$4"
	if ! unpack_packages "$3" "$work" "${packages[@]/%/=$2}"; then
		cat "$work/log" >&2
		fail "fetching Linux $release failed: see above"
	fi
	if ! collect_kernel "$work/root" "$work/kernel" "$release" || ! make_initrd "$work/kernel" "$release"; then
		fail "the packages of Linux $release have no bootable kernel"
	fi
	echo "$2" >"$work/kernel/version"
	rm -rf "$dir"
	mv "$work/kernel" "$dir"
	rm -rf "$work"
}

# collect_kernel UNPACKED DIR RELEASE: collects the files, which are in /boot or beside the modules.
collect_kernel() {
	local modules=$1/usr/lib/modules/$3 file

	[[ -d $modules ]] || modules=$1/lib/modules/$3
	mkdir -p "$2/lib/modules"
	for file in vmlinuz config; do
		mv "$1/boot/$file-$3" "$2/$file" 2>/dev/null || mv "$modules/$file" "$2/$file" 2>/dev/null || true
	done
	[[ -e $2/vmlinuz ]] && mv "$modules" "$2/lib/modules/$3" && /sbin/depmod -b "$2" "$3" 2>/dev/null
}

# get_busybox DIR: makes DIR/busybox, a static one of the guest's machine.
get_busybox() {
	if [[ -z $APT_ARCHITECTURE ]]; then
		cp "$(command -v busybox)" "$1/busybox"
		return
	fi
	mkdir "$1/package"
	# shellcheck disable=SC2153 # of the guest
	unpack_packages "$SUITE" "$1/package" busybox-static || return
	find "$1/package/root" -path '*/bin/busybox' -exec cp {} "$1/busybox" \;
	rm -rf "$1/package"
	[[ -e $1/busybox ]]
}

# make_initrd DIR RELEASE: makes an initrd of busybox and the modules for the root disk and for 9p. A module that is not
# found is assumed to be built in. If that is wrong, the guest reports what it cannot mount.
make_initrd() {
	local top=$1/initramfs module file number=100

	mkdir -p "$top"/{bin,dev,proc,sys,modules,root}
	get_busybox "$top/bin" || return
	cp "$HERE/initramfs-init" "$top/init"
	for module in virtio_pci virtio_blk ext4 9pnet_virtio 9p; do
		/sbin/modprobe -d "$1" -S "$2" --show-depends "$module" || true
	done 2>/dev/null | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$1/modules.initrd"
	while read -r file; do
		module=${file##*/}
		module=${module%%.ko*}
		case $file in
		*.xz) xz -dc "$file" ;;
		*.zst) zstd -qdc "$file" ;;
		*) cat "$file" ;;
		esac >"$top/modules/$number-$module.ko"
		number=$((number + 1))
	done <"$1/modules.initrd"
	(cd "$top" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$1/initrd"
	rm -rf "$top" "$1/modules.initrd"
}
