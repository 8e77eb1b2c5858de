# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Makes reports, and says what drive_report.py has seen in them. After helpers.bash.

# report NAME [ARG...]: makes NAME.html of NAME.data with more options.
report() {
	"$BIN/leakparse" --format html -i "$1.data" "${@:2}" >"$1.html" 2>"$1.err"
}

# seen NAME: fails unless that job of drive_report.py passed.
seen() {
	[[ $(tail -n 1 "seen/$1") == ok ]] || fail "$(cat "seen/$1")"
}
