# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034 # the file that loads this uses the kinds
#
# Checks of what the target "resources" gives and takes. After helpers.bash.

FILES='file=fopen|fdopen:ret / fclose:arg1'
SLOTS='slot=slot_get:*arg2 size=arg1 fail<0 / slot_put:*arg1'
WIDGETS='widget=widget_new:ret | widget_ref:arg1 / widget_unref:arg1'
NESTED='nested=inner_make|outer_make:ret / inner_drop|outer_drop:arg1'

# held KIND: prints the number of leaks of that kind, by their lines.
held() {
	grep -cE "^leak .* kind=$1( |\$)" leaks || true
}

# assert_kind KIND...: the numbers given, taken and held are those that the target counted.
assert_kind() {
	local kind wrong=0

	for kind; do
		grep -q "^# resource $kind: $(truth "${kind}_given") given, $(truth "${kind}_taken") taken[,;]" leaks ||
			wrong=1
		assert_equal "$kind held" "$(held "$kind")" "$(truth "${kind}_held")" || wrong=1
	done
	if ((wrong)); then
		cat truth leakrec.err
		grep '^#' leaks
		return 1
	fi
}
