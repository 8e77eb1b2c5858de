# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The emulator, for test/vm/run: the installed QEMU or, if that is too old, one from Debian's backports, unpacked in the
# cache folder. Nothing is installed; the newer QEMU uses the libraries of the installed one.

# With QEMU 7.2, guests sometimes crashed with "Oops: int3" at an instruction that was no int3: the kernel patches its
# code through int3, and a CPU executed an int3 that had been replaced already. QEMU 10.0 did not do that in two hours
# of tests. QEMU 8.1 is said to lock a page before it translates its code. On AArch64, where each uprobe's instruction is
# copied to a page that threads share, a test of truth.bats failed in each of four runs with 7.2, in none with 10.0.
QEMU_NEEDED=8.1
declare -A QEMU_PACKAGES=(
	[x86_64]="qemu-system-x86 qemu-system-common qemu-system-data seabios"
	[aarch64]="qemu-system-arm qemu-system-common qemu-system-data"
)

qemu_version() {
	"$1" --version 2>/dev/null | sed -nE 's/^QEMU emulator version ([0-9.]+).*/\1/p'
}

is_qemu_needed() {
	[[ -n $1 && $(printf '%s\n' "$QEMU_NEEDED" "$1" | sort -V | head -n 1) == "$QEMU_NEEDED" ]]
}

# Sets EMULATOR to the first words of QEMU's command line.
find_emulator() {
	local program=qemu-system-$MACHINE fetched=$CACHE/qemu own

	own=$(qemu_version "$program")
	EMULATOR=("$program")
	if ! is_qemu_needed "$own"; then
		if is_qemu_needed "$(qemu_version "$fetched/usr/bin/$program")" || fetch_emulator "$program" "$fetched"; then
			EMULATOR=("$fetched/usr/bin/$program" -L "$fetched/usr/share/seabios" -L "$fetched/usr/share/qemu")
		else
			echo "run: QEMU $own may execute code that was replaced, and $QEMU_NEEDED or newer cannot be fetched" >&2
		fi
	fi
	[[ $MACHINE != aarch64 ]] || EMULATOR+=(-machine virt)
}

# fetch_emulator PROGRAM DIR: downloads a newer QEMU, for this machine, and unpacks it in DIR.
fetch_emulator() {
	# shellcheck disable=SC2034 # for apt_do
	local CACHE=$OWN_CACHE APT_ARCHITECTURE=''
	local suite work packages

	# shellcheck disable=SC1091 # a file of the machine's
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")-backports
	[[ -d $CACHE/apt/$suite ]] || update_suite "$suite" >&2 || return
	work=$(mktemp -d "$RUN_DIR/qemu.XXXXXX")
	echo "run: fetching a newer QEMU ($suite)" >&2
	read -ra packages <<<"${QEMU_PACKAGES[$MACHINE]}"
	unpack_packages "$suite" "$work" "${packages[@]}" || return
	is_qemu_needed "$(qemu_version "$work/root/usr/bin/$1")" || return
	rm -rf "$2"
	mv "$work/root" "$2"
	rm -rf "$work"
}
