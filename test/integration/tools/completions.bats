#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Bash completions: as bash calls them, without a terminal.

bats_require_minimum_version 1.5.0

# complete_words WORD...: what the last word is completed to, a line each.
complete_words() {
	bash -c '
		source "$1"
		shift
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		_leaktools
		((${#COMPREPLY[@]} == 0)) || printf "%s\n" "${COMPREPLY[@]}"
	' bash "$SOURCE_DIR/completions/leaktools.bash" "$@"
}

tool() {
	echo "$BUILD_DIR/bin/$1"
}

@test "completions: every option that --help lists, of each tool" {
	local name listed

	for name in leakprobe leakrec leakparse leakfollow leakplot; do
		# --help and the manual page list the same (help.bats).
		listed=$("$(tool $name)" --help | sed -nE 's/^ {2,6}(-.*)/\1/p' | sed -E 's/  +.*//' |
			grep -oE -e '--[a-z][a-z-]+' | sort -u)
		[[ $(wc -w <<<"$listed") -ge 4 ]]
		complete_words "$(tool $name)" -- | grep '^--' | sort -u >"$BATS_TEST_TMPDIR/completed"
		diff <(echo "$listed") "$BATS_TEST_TMPDIR/completed" || {
			echo "$name"
			return 1
		}
		complete_words "$(tool $name)" - | grep -x -- -h
		complete_words "$(tool $name)" --vers | grep -x -- --version
		bash -c "source '$SOURCE_DIR/completions/leaktools.bash'; complete -p $name" | grep -q _leaktools
	done
}

@test "completions: an option that takes a value is not followed by options or files" {
	local name option

	cd "$BATS_TEST_TMPDIR"
	touch -- a-file
	for name in leakrec leakparse leakfollow leakplot; do
		# Long options with a value in capitals.
		"$(tool $name)" --help | grep -oE -- '--[a-z-]+ ('"'"'|[A-Z])' | cut -d' ' -f1 | sort -u |
			while read -r option; do
				complete_words "$(tool $name)" "$option" x | grep '^-' && exit 1
				complete_words "$(tool $name)" "$option" a-f | grep -x a-file || [[ $option != --input ]] || exit 1
			done
	done
}

@test "completions: values are those that the tools take" {
	local value status

	for option in --format --order --at --by --verdict; do
		complete_words "$(tool leakparse)" $option "" >"$BATS_TEST_TMPDIR/values"
		[[ $(wc -l <"$BATS_TEST_TMPDIR/values") -ge 2 ]]
		while read -r value; do
			status=0
			"$(tool leakparse)" $option "$value" --format tree $option "$value" /dev/null \
				>/dev/null 2>"$BATS_TEST_TMPDIR/err" || status=$?
			# A recording it is not; but no bad usage either.
			[[ $status == 1 || $option == --by && $status == 1 ]] || {
				echo "$option $value: $status, $(cat "$BATS_TEST_TMPDIR/err")"
				return 1
			}
		done <"$BATS_TEST_TMPDIR/values"
	done
	[[ $(complete_words "$(tool leakparse)" --format = ht) == html ]]
	[[ $(complete_words "$(tool leakparse)" --verdict growth,start) == growth,start-up ]]
	[[ $(complete_words "$(tool leakrec)" --on-overload h) == hold ]]
	[[ $(complete_words "$(tool leakrec)" --with "" | paste -sd' ') == "mmap fd" ]]
	[[ $(complete_words "$(tool leakrec)" --with fd,) == $'fd,mmap\nfd,fd' ]]
	complete_words "$(tool leakrec)" -p "$$" | grep -qx "$$"
	complete_words "$(tool leakrec)" -p "1,$$" | grep -qx "1,$$"
}

@test "completions: commands, subcommands, files" {
	cd "$BATS_TEST_TMPDIR"
	touch perf.data
	[[ $(complete_words "$(tool leakparse)" perf) == perf.data ]]
	[[ $(complete_words "$(tool leakprobe)" "" | paste -sd' ') == "add list del check" ]]
	complete_words "$(tool leakrec)" -z -- leakpar >commands
	complete_words "$(tool leakrec)" -- ech | grep -qx echo
	[[ $(complete_words "$(tool leakrec)" -- echo perf) == perf.data ]]
	[[ -z $(complete_words "$(tool leakrec)" -- echo --) ]]
}

@test "completions: what leakprobe del can delete, and nothing else that list prints" {
	local library

	cp "$(ldd "$(tool leakparse)" | awk '$1 == "libc.so.6" { print $3 }')" "$BATS_TEST_TMPDIR/libcompleted.so"
	library=$("$(tool leakprobe)" add --lib "$BATS_TEST_TMPDIR/libcompleted.so" | cut -d: -f1)
	complete_words "$(tool leakprobe)" del "" >"$BATS_TEST_TMPDIR/words"
	"$(tool leakprobe)" del "$library"
	grep -qx "$library" "$BATS_TEST_TMPDIR/words"
	run -1 grep -v "^leakprobe_" "$BATS_TEST_TMPDIR/words"
}

@test "completions: are installed where bash looks for them" {
	cd "$BATS_TEST_TMPDIR"
	DESTDIR=$PWD/root cmake --install "$BUILD_DIR" >/dev/null
	for name in leakprobe leakrec leakparse leakfollow leakplot; do
		find root -path "*/share/bash-completion/completions/$name" | grep -q .
	done
}
