# SPDX-License-Identifier: GPL-2.0-or-later
# Turns a `leaks` text of version 2 into one of version 1, which repeats the frames below each line that has a stack. It
# lacks `ordinary=` of blocks, which version 2 does not have. A text of version 1 is not changed.

# Turns "612746.918039456" into nanoseconds since the recording's start, which awk's numbers can hold exactly.
function ns(time, parts) {
	split(time, parts, ".")
	return (parts[1] - start_s) * 1000000000 + parts[2]
}

function age(time, pid, left) {
	left = ns(pid in ended ? ended[pid] : end) - ns(time)
	return sprintf("%d.%09d", int(left / 1000000000), left % 1000000000)
}

# Version 2 has frames before the first use of their stack, version 1 after each use.
function frames_of(stack) {
	printf "%s", frames[stack]
}

# Returns the words from @first on.
function rest(first, text, i) {
	for (i = first; i <= NF; i++)
		text = text " " $i
	return text
}

NR == 1 {
	if ($0 != "# leaks 1" && $0 != "# leaks 2") {
		print "no leaks text" >"/dev/stderr"
		exit 1
	}
	is_1 = $3 == 1
	print "# leaks 1"
	next
}

is_1 { print; next }

/^\t/ { frames[defined] = frames[defined] $0 "\n"; next }

$1 == "#" && $2 == "summary" {
	for (i = 3; i <= NF; i++)
		if (sub(/^end=/, "", $i)) { end = $i; $i = "end=" $i }
	for (i = 3; i <= NF; i++)
		if ($i ~ /^start=/) start_s = int(substr($i, 7))
}

$1 == "process" {
	for (i = 6; i <= NF; i++)
		if (sub(/^end=/, "", $i)) ended[$2] = $i
	print $1, $2, $3, $4, $5
	next
}

$1 == "thread" { comm[$2, $3] = $4; next }

$1 == "frames" { defined = $2; function_of[$2] = $3; next }

$1 == "stack" {
	sub(/ ordinary=[^ ]*/, "")
	$9 = "@"
	sub(/ @/, "")
	print
	frames_of($7)
	next
}

$1 == "leak" {
	certainty = "firm"; made_by = function_of[$8]; aged = age($4, $6); keys = ""
	for (i = 11; i <= NF; i++)
		if ($i ~ /^doubtful/) certainty = $i
		else if ($i ~ /^function=/) made_by = substr($i, 10)
		else if ($i ~ /^age=/) aged = substr($i, 5)
		else keys = keys " " $i
	print $1, $2, $3, $4, $5, $6, $7, comm[$7, $6], made_by, $8, certainty, $9, "age=" aged keys
	frames_of($8)
	next
}

$1 == "unexpected" { print $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 rest(13); frames_of($11); next }
$1 == "freed-before" || $1 == "allocated" { print $1, $2, $3, $4, $5, $6, $7, $8, $9, $10; frames_of($10); next }
$1 == "refs" { print $1, $2, $3, $4, $5; frames_of($5); next }

{ print }

$1 == "history" { frames_of($2) }
