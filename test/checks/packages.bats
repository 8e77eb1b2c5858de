#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2016 # awk and sh expand it
# The table of scripts/setup, and the metadata of packages. scripts/package --check tests whether packages can be built
# and installed.

bats_require_minimum_version 1.5.0

setup() {
	cd "$SOURCE_DIR" || return
}

@test "setup: nothing that the tests need is missing here" {
	run -0 scripts/setup --test --list
	[[ -z $output ]]
}

@test "setup: each system has names, and the build needs fewer than the tests" {
	local system

	for system in debian ubuntu fedora arch; do
		run -0 scripts/setup --names "$system"
		((${#lines[@]} > 15))
		[[ $output != *"|"* && $output == *clang* && $output != *chromium* && $output != *valgrind* ]]
		build=${#lines[@]}
		run -0 scripts/setup --test --names "$system"
		((${#lines[@]} > build + 10))
		[[ $output == *chromium* && $output == *valgrind* ]]
	done
	run -1 scripts/setup --names plan9
	run -1 scripts/setup --tset
}

@test "setup: each line of the table has a set, what it provides, and three systems" {
	run -0 awk '!/^#/ && NF && (NF != 5 || $1 !~ /^(build|test|package|dev|bench|docs|cases|vm|arm64)$/)' scripts/packages
	[[ -z $output ]]
}

@test "setup: lists what is missing, the name that the system has" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/sh\ncase $2 in libmimalloc3) echo "  Candidate: 3.0" ;; *) echo "  Candidate: (none)" ;; esac\n' \
		>"$BATS_TEST_TMPDIR/bin/apt-cache"
	chmod +x "$BATS_TEST_TMPDIR/bin/apt-cache"
	cp -r scripts "$BATS_TEST_TMPDIR"
	printf 'test lib:libnone.so.1 libmimalloc2.0|libmimalloc3 mimalloc mimalloc\ntest bash bash bash bash\n' \
		>"$BATS_TEST_TMPDIR/scripts/packages"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH run -0 "$BATS_TEST_TMPDIR/scripts/setup" --test --list
	[[ $output == libmimalloc3 ]]
	run -0 "$BATS_TEST_TMPDIR/scripts/setup" --list
	[[ -z $output ]]
}

@test "packages: they have the version of the sources" {
	local version

	version=$(sed -n 's/^project(leaktools VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
	[[ -n $version ]]
	grep -qxE "Version: +$version" packaging/leaktools.spec
	[[ $(head -n 1 packaging/debian/changelog) == "leaktools ($version) "* ]]
}

@test "packages: the build of Debian's package depends on all that setup installs for the build" {
	local alternatives

	# Leaves out build-essential packages, which need not be listed, and what only the demo needs.
	awk '$1 == "build" { print $3 }' scripts/packages | grep -vxE 'gcc|libc6-dev|make|gnuplot-nox' | sort -u >"$BATS_TEST_TMPDIR/needs"
	(($(wc -l <"$BATS_TEST_TMPDIR/needs") > 15))
	sed -n '/^Build-Depends:/,/^$/p' packaging/debian/control | sed 's/Build-Depends://; s/([^)]*)//g; s/ //g' |
		tr , '\n' | sed '/^$/d' >"$BATS_TEST_TMPDIR/depends"
	while read -r alternatives; do
		grep -qxF -e "$alternatives" -e "${alternatives%%|*}" "$BATS_TEST_TMPDIR/depends" || { echo "$alternatives"; return 1; }
	done <"$BATS_TEST_TMPDIR/needs"
}

@test "packages: the tarball has the sources, and nothing of the build" {
	run -0 scripts/package --tarball "$BATS_TEST_TMPDIR"
	[[ $output == "$BATS_TEST_TMPDIR"/leaktools-*.tar.gz ]]
	tar -tf "$output" >"$BATS_TEST_TMPDIR/list"
	grep -qx 'leaktools-[0-9.]*/packaging/debian/rules' "$BATS_TEST_TMPDIR/list"
	grep -qx 'leaktools-[0-9.]*/packaging/leaktools.spec' "$BATS_TEST_TMPDIR/list"
	run ! grep -E '^leaktools-[0-9.]*/(build|\.git)/' "$BATS_TEST_TMPDIR/list"
}

@test "packages: wrong options are refused before anything is made" {
	run -1 scripts/package --in trixie
	run -1 scripts/package --check
	run -1 scripts/package --in ../../etc -- true
	run -1 scripts/package --nonsense
}
