# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The emulator, for test/vm/run: the installed QEMU or, if that is too old, one from Debian's backports, unpacked in the
# cache folder. Nothing is installed; the newer QEMU uses the libraries of the installed one.

# With QEMU 7.2, guests sometimes crashed with "Oops: int3" at an instruction that was no int3: the kernel patches its
# code through int3, and a CPU executed an int3 that had been replaced already. QEMU 10.0 did not do that in two hours
# of tests. QEMU 8.1 is said to lock a page before it translates its code.
QEMU_NEEDED=8.1
QEMU_PACKAGES=(qemu-system-x86 qemu-system-common qemu-system-data seabios)

qemu_version() {
	"$1" --version 2>/dev/null | sed -nE 's/^QEMU emulator version ([0-9.]+).*/\1/p'
}

is_qemu_needed() {
	[[ -n $1 && $(printf '%s\n' "$QEMU_NEEDED" "$1" | sort -V | head -n 1) == "$QEMU_NEEDED" ]]
}

# Sets EMULATOR to the first words of QEMU's command line.
find_emulator() {
	local own fetched=$CACHE/qemu

	if [[ $MACHINE == aarch64 ]]; then
		EMULATOR=(qemu-system-aarch64 -machine virt)
		return
	fi
	own=$(qemu_version qemu-system-x86_64)
	EMULATOR=(qemu-system-x86_64)
	! is_qemu_needed "$own" || return 0
	if is_qemu_needed "$(qemu_version "$fetched/usr/bin/qemu-system-x86_64")" || fetch_emulator "$fetched"; then
		# shellcheck disable=SC2034 # run starts it
		EMULATOR=("$fetched/usr/bin/qemu-system-x86_64" -L "$fetched/usr/share/seabios"
			-L "$fetched/usr/share/qemu")
		return
	fi
	echo "run: QEMU $own may cause a guest's \"Oops: int3\", and $QEMU_NEEDED or newer cannot be fetched" >&2
}

# fetch_emulator DIR: downloads a newer QEMU and unpacks it in DIR.
fetch_emulator() {
	local suite work

	# shellcheck disable=SC1091 # a file of the machine's
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")-backports
	[[ -d $CACHE/apt/$suite ]] || return
	work=$(mktemp -d "$RUN_DIR/qemu.XXXXXX")
	echo "run: fetching a newer QEMU ($suite)" >&2
	unpack_packages "$suite" "$work" "${QEMU_PACKAGES[@]}" || return
	is_qemu_needed "$(qemu_version "$work/root/usr/bin/qemu-system-x86_64")" || return
	rm -rf "$1"
	mv "$work/root" "$1"
	rm -rf "$work"
}
