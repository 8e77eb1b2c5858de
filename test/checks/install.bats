#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What `cmake --install` installs, and what uninstalling leaves.

bats_require_minimum_version 1.5.0
tools="leakprobe leakrec leakparse leakfollow leakplot leakscan"

setup_file() {
	export PREFIX=$BATS_FILE_TMPDIR/prefix
	local manifest=$BUILD_DIR/install_manifest.txt

	# The manifest is the user's, for uninstalling: restore it.
	[[ ! -e $manifest ]] || cp "$manifest" "$BATS_FILE_TMPDIR/theirs"
	# --strip, because only debugging information may contain the path of the sources.
	cmake --install "$BUILD_DIR" --prefix "$PREFIX" --strip >"$BATS_FILE_TMPDIR/log"
	mv "$manifest" "$BATS_FILE_TMPDIR/install_manifest.txt"
	[[ ! -e $BATS_FILE_TMPDIR/theirs ]] || cp "$BATS_FILE_TMPDIR/theirs" "$manifest"
}

@test "install: tools, pages and completions are in their folders" {
	local tool

	cd "$PREFIX"
	for tool in $tools; do
		ls "bin/$tool" "share/man/man1/$tool.1" "share/bash-completion/completions/$tool" \
			"share/fish/vendor_completions.d/$tool.fish"
		grep -qw "$tool" share/zsh/site-functions/_leaktools
		[[ $("bin/$tool" --version) == "$tool "* ]]
	done
	ls include/leaktools/leak_probes.h share/doc/leaktools/README.md
}

@test "install: the pages can be shown, and what they cite is there" {
	local tool document

	for tool in $tools; do
		MANPAGER='' man -l "$PREFIX/share/man/man1/$tool.1" >"$BATS_TEST_TMPDIR/page" || { echo "$tool"; return 1; }
		grep -q '^SYNOPSIS' "$BATS_TEST_TMPDIR/page"
		# What belongs to an option is indented below it.
		run ! grep -E '^ {7}[^ A-Z-]' <(sed -n '/^OPTIONS$/,/^[A-Z]/p' "$BATS_TEST_TMPDIR/page")
		grep -oE 'docs/[a-z-]+\.md' "$SOURCE_DIR/docs/man/$tool.1.scd" "$BATS_TEST_TMPDIR/page" | cut -d: -f2
	done >"$BATS_TEST_TMPDIR/cited"
	[[ -s $BATS_TEST_TMPDIR/cited ]]
	while read -r document; do
		ls "$PREFIX/share/doc/leaktools/$document"
	done <"$BATS_TEST_TMPDIR/cited"
}

@test "install: the installed leakparse works" {
	"$BUILD_DIR/test/bench/make_stream" --events 1000 --live 10 --stacks 5 >"$BATS_TEST_TMPDIR/perf.data"
	cd "$PREFIX/bin"
	run -0 --separate-stderr env -i PATH=/usr/bin:/bin ./leakparse --summary "$BATS_TEST_TMPDIR/perf.data"
	[[ $output == *"10 blocks, "* ]]
}

@test "install: no installed file mentions the folders of the build" {
	run -1 grep -rlF -e "$BUILD_DIR" -e "$SOURCE_DIR" "$PREFIX"
}

# With DESTDIR, as builds of packages use it: the paths in the manifest are without it.
@test "install: uninstalling removes all that was installed, and nothing else" {
	local root=$BATS_TEST_TMPDIR/root

	mkdir -p "$root${PREFIX%/*}"
	cp -a "$PREFIX" "$root$PREFIX"
	echo theirs >"$root$PREFIX/bin/other"
	cp "$BATS_FILE_TMPDIR/install_manifest.txt" "$BATS_TEST_TMPDIR"
	DESTDIR=$root cmake -D BUILD="$BATS_TEST_TMPDIR" -P "$SOURCE_DIR/cmake/uninstall.cmake"
	[[ $(find "$root" ! -type d) == "$root$PREFIX/bin/other" ]]
	[[ -z $(find "$root$PREFIX" -name '*leaktools*') ]]
	[[ -e $PREFIX/bin/leakrec ]]
	run -1 env DESTDIR="$root" cmake -D BUILD="$BATS_TEST_TMPDIR" -P "$SOURCE_DIR/cmake/uninstall.cmake"
	[[ $output == *"nothing was installed"* ]]
}
