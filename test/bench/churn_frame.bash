# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Shared by the long versions of tests: the tests' helpers outside of bats, and cleaning up. Source it in the source
# directory, with the build directory as $1.

# shellcheck disable=SC2034 # for helpers.bash, as what clean_up sets
SOURCE_DIR=$PWD
# shellcheck disable=SC2034
BUILD_DIR=$(realpath "$1")
BATS_TEST_TMPDIR=$(mktemp -d)

skip() {
	echo "${0##*/}: $*" >&2
	exit 77
}

# shellcheck disable=SC1091 # is checked by itself
source test/integration/support/helpers.bash
# shellcheck disable=SC1091
source test/integration/support/churn.bash

# Appends details to a failure's message. A script may define its own.
where_it_failed() {
	:
}

clean_up() {
	local status=$?

	trap - EXIT
	# shellcheck disable=SC2034
	BATS_TEST_COMPLETED=$( ((status)) || echo 1)
	common_teardown 2>/dev/null || status=1
	cd "$SOURCE_DIR" || status=1
	rm -rf "$BATS_TEST_TMPDIR"
	((!status)) || echo "${0##*/}: FAILED $(where_it_failed)" >&2
	exit "$status"
}

trap clean_up EXIT
common_setup
own_libc
