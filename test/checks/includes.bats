# SPDX-License-Identifier: GPL-2.0-or-later
# The order of the rooms (docs/architecture.md) is enforced by the build and by scripts/check-includes. Each test breaks
# one rule.

setup()
{
	bats_require_minimum_version 1.5.0
	cd "$SOURCE_DIR" || return
	tree=$BATS_TEST_TMPDIR/tree
	mkdir "$tree"
	cp -r common unwind probes recorder parser report top plot tools "$tree"
}

@test "the rooms are in order" {
	run -0 scripts/check-includes "$SOURCE_DIR"
	[ -z "$output" ]
}

@test "an include against the order is reported" {
	echo '#include "recorder/session/session.h"' >>"$tree/parser/heap/heap_model.h"
	run -1 scripts/check-includes "$tree"
	[[ "$output" == *"parser/heap/heap_model.h:"*"parser/heap does not link recorder/session"* ]]
}

@test "an include of a room that only a linked room links is reported" {
	echo '#include "common/schema/syscall_schema.h"' >>"$tree/top/top_view.c"
	run -1 scripts/check-includes "$tree"
	[[ "$output" == *"top does not link common/schema"* ]]
}

@test "two units that include each other are reported" {
	echo '#include "common/scope.h"' >>"$tree/common/clock.h"
	echo '#include "common/clock.h"' >>"$tree/common/scope.h"
	run -1 scripts/check-includes "$tree"
	[[ "$output" == *"units include each other in a circle: common/clock, common/scope"* ]]
}

@test "two rooms that link each other are reported" {
	sed -i 's,^leaktools_room(common/proc,leaktools_room(common/elf LINK common common/proc)\n&,' "$tree/common/CMakeLists.txt"
	run -1 scripts/check-includes "$tree"
	[[ "$output" == *"rooms link each other in a circle: common/elf, common/proc"* ]]
}

@test "a file that is too long and a folder that is too full are reported" {
	seq 601 >"$tree/top/long.c"
	for i in {1..31}; do : >"$tree/plot/memory/file$i.c"; done
	run -1 scripts/check-includes "$tree"
	[[ "$output" == *"top/long.c: 601 lines"* && "$output" == *"plot/memory:"*"code files"* ]]
}

@test "a function of more than 70 lines is reported" {
	for n in 70 71; do
		printf 'int f%d(int i)\n{\n%s\n}\n' $n "$(yes $'\ti++;' | head -n $n)"
	done >"$tree/top/long.c"
	run -1 scripts/check-includes "$tree"
	[[ "$output" == "check-includes: top/long.c:75: a function of 71 lines"* && ${#lines[@]} -eq 1 ]]
}

# A file compiled like those of parser/heap finds the headers of the rooms that parser/heap links, and no others.
@test "the compiler finds no header against the order" {
	command=$(jq -r '.[] | select(.file | endswith("/parser/heap/heap_model.c")) | .command' \
		"$BUILD_DIR/compile_commands.json")
	command=${command% -o *}
	echo '#include "common/scope.h"' >"$BATS_TEST_TMPDIR/down.c"
	echo '#include "parser/analysis/analysis.h"' >"$BATS_TEST_TMPDIR/up.c"
	run -0 sh -c "$command -fsyntax-only $BATS_TEST_TMPDIR/down.c"
	run ! sh -c "$command -fsyntax-only $BATS_TEST_TMPDIR/up.c"
	[[ "$output" == *"parser/analysis/analysis.h: No such file"* ]]
}
