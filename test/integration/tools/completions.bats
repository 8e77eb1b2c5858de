#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Completions of bash, zsh and fish, called as the shells call them.

bats_require_minimum_version 1.5.0

setup() {
	set +T # as in common_setup
	declare -ft "$BATS_TEST_NAME"
	# shellcheck disable=SC1091 # is checked by itself
	source "$SOURCE_DIR/completions/leaktools.bash"
}

# complete_words WORD...: prints the completions of the last word, one per line.
complete_words() {
	local COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()

	_leaktools
	((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
}

tool() {
	echo "$BUILD_DIR/bin/$1"
}

# The same for zsh and fish, which get the line as one word.
zsh_words() {
	PATH=$BUILD_DIR/bin:$PATH timeout 60 "$SOURCE_DIR/test/integration/support/zsh_matches" \
		"$SOURCE_DIR/completions" "$1"
}

fish_words() {
	local folder=$BATS_TEST_TMPDIR/fish/vendor_completions.d tool=${1%% *}

	mkdir -p "$folder"
	cp "$SOURCE_DIR/completions/leaktools.fish" "$folder/$tool.fish"
	# fish prints a word, then a tab and its meaning.
	# shellcheck disable=SC2016 # expanded by fish
	PATH=$BUILD_DIR/bin:$PATH HOME=$BATS_TEST_TMPDIR XDG_DATA_DIRS=$BATS_TEST_TMPDIR:/usr/share \
		timeout 60 fish -c 'complete -C $argv' "$1" | cut -f1
}

# Prints the options that --help of a tool lists; the manual page lists the same (help.bats).
long_options() {
	"$(tool "$1")" --help | sed -nE 's/^ {2,6}(-.*)/\1/p' | sed -E 's/  +.*//' | grep -oE -e '--[a-z][a-z-]+' | sort -u
}

@test "completions: every option that --help lists, of each tool" {
	local name listed

	for name in leakprobe leakrec leakparse leakfollow leakplot leakscan; do
		listed=$(long_options $name)
		[[ $(wc -w <<<"$listed") -ge 4 ]]
		complete_words "$(tool $name)" -- | grep '^--' | sort -u >"$BATS_TEST_TMPDIR/completed"
		diff <(echo "$listed") "$BATS_TEST_TMPDIR/completed" || {
			echo "$name"
			return 1
		}
		complete_words "$(tool $name)" - | grep -x -- -h
		complete_words "$(tool $name)" --vers | grep -x -- --version
		[[ $(complete -p $name) == *_leaktools* ]]
	done
}

@test "completions: an option that takes a value is not followed by options or files" {
	local name option table words

	cd "$BATS_TEST_TMPDIR"
	touch -- a-file
	for name in leakrec leakparse leakfollow leakplot leakscan; do
		# In place of the tool, which would start twice for each option.
		# shellcheck disable=SC2034 # the function reads it
		table=$("$(tool $name)" --options-table)
		eval "$name() { echo \"\$table\"; }"
		# Long options that take a value, which help shows in capitals.
		"$(tool $name)" --help | grep -oE -- '--[a-z-]+ ('"'"'|[A-Z])' | cut -d' ' -f1 | sort -u >options
		[[ -s options ]]
		while read -r option; do
			words=$'\n'$(complete_words $name "$option" x)
			[[ $words != *$'\n'-* ]] || { echo "$name $option:$words"; return 1; }
			[[ $option == --input ]] || continue
			[[ $(complete_words $name "$option" a-f) == a-file ]]
		done <options
	done
}

@test "completions: values are those that the tools accept" {
	local value status

	for option in --format --order --at --by --verdict --reach; do
		complete_words "$(tool leakparse)" $option "" >"$BATS_TEST_TMPDIR/values"
		[[ $(wc -l <"$BATS_TEST_TMPDIR/values") -ge 2 ]]
		while read -r value; do
			status=0
			"$(tool leakparse)" $option "$value" --format tree $option "$value" /dev/null \
				>/dev/null 2>"$BATS_TEST_TMPDIR/err" || status=$?
			# The file is no recording, but the usage is right.
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

# same_words SHELL: the shell's completions are those of the tools' tables.
same_words() {
	local words=$1_words name

	for name in leakprobe leakrec leakparse leakfollow leakplot leakscan; do
		diff <(long_options $name) <($words "$name --" | grep -e '^--' | sort -u) || { echo "$name"; return 1; }
		$words "$name -" | grep -qx -e -h
	done
	diff <($words "leakparse --format " | sort) <(complete_words "$(tool leakparse)" --format "" | sort)
	[[ $($words "leakparse --format=ht") =~ ^(--format=)?html$ ]]
	[[ $($words "leakparse --verdict growth,start") =~ ^(growth,)?start-up$ ]]
	$words "leakrec -p 1,$$" | grep -qxE "(1,)?$$"
	$words "leakrec -p 1 -- ech" | grep -qx echo
	[[ $($words "leakprobe " | sort | paste -sd' ') == "add check del list" ]]
	cd "$BATS_TEST_TMPDIR" || return
	touch perf.data
	mkdir -p perf.dir
	[[ $($words "leakrec -p 1 -- echo perf.da") == perf.data ]]
	[[ $($words "leakparse -i perf.da") == perf.data ]]
	[[ $($words "leakplot perf.da") == perf.data ]]
	[[ $($words "leakparse --symfs perf" | sort -u) == perf.dir?(/) ]]
}

@test "completions: zsh's are the same" { same_words zsh; }
@test "completions: fish's are the same" { same_words fish; }
