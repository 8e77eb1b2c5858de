#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakplot with generated files and with processes of the tests. Needs gnuplot, but neither root nor probes.
# shellcheck disable=SC2016,SC2030,SC2031 # awk's $, and STARTED_PIDS in each test's subshell

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	leakplot="$BIN/leakplot"
	cd "$BATS_TEST_TMPDIR" || return
	unset DISPLAY WAYLAND_DISPLAY
	STARTED_PIDS=()
}

teardown() {
	for pid in "${STARTED_PIDS[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
}

# Prints a leaks file with the given number of 3072-byte leaks, two seconds apart.
make_leaks() {
	echo '# leaks 1'
	echo "# summary events=$(($1 * 10)) lost=${2:-0} start=100.000000000 end=$((110 + 2 * $1)).000000000"
	for ((i = 0; i < $1; i++)); do
		echo "leak 3072 0x$((1000 + i)) $((101 + 2 * i)).500000000 $((i * 10)) 4165 4165 emacs malloc 13"
		printf '\t_XQueryFont+0x1b0  (/usr/lib/libX11.so.6)\n'
	done
}

# Checks that leakplot fails with exactly the expected line on stderr.
fails_with() {
	local status="$1" message="$2"
	shift 2
	run "-$status" "$@"
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" == leakplot:\ *$message* ]]
}

has_magic() {
	[ "$(head -c "${#2}" "$1")" = "$2" ]
}

@test "a PNG, an SVG and a PDF" {
	make_leaks 10 >leaks
	for suffix in png svg pdf; do
		run -0 "$leakplot" -o "picture.$suffix" leaks
		[ "$output" = "leakplot: wrote picture.$suffix" ]
	done
	has_magic picture.png $'\x89PNG'
	has_magic picture.pdf %PDF
	grep -q '</svg>' picture.svg
	grep -q '10 x 3 KiB: _XQueryFont' picture.svg
	grep -q '10 held blocks, 30 KiB, in emacs (PID 4165)' picture.svg
}

@test "the SVG has all its points and carries its script" {
	make_leaks 25 >leaks
	"$leakplot" -o picture.svg leaks
	[ "$(grep -c "xlink:href='#gpPt6'" picture.svg)" -eq 26 ] # and one in the legend
	grep -q "addEventListener('wheel'" picture.svg
	run ! grep -q '<script[^>]*href' picture.svg
}

@test "a legend in the terminal has room for its letters" {
	make_leaks 10 | sed 's/_XQueryFont/a_function_with_quite_a_long_name::&/; /^leak /n; s/$/\n\tand_its_caller::called_no_less_lengthily+0x1  (a)/' >leaks
	"$leakplot" --term dumb leaks >text
	grep -E '^ +A +30 KiB, 10 x 3 KiB: ' text
	run ! grep -E '.{81}' text
}

@test "text in the terminal has titles and units, whatever the lengths of names" {
	make_leaks 10 2000000000 | sed "s/ emacs / $(printf '%0*d' 200 7) /" >leaks
	"$leakplot" --term dumb leaks >text
	grep -q '10 held blocks, 30 KiB, in 0007\|10 held blocks, 30 KiB, in 0000' text
	grep -q '^ *size of the held block (KiB)' text
	run ! grep -E '.{81}' text
	for kind in held growth lifetimes; do
		"$leakplot" --plot "$kind" --term dumb "$SOURCE_DIR/test/golden/report.leaks" >text
		grep -qE '^ +(held \(KiB\)|blocks)' text
	done
}

@test "standard input, as - and by default" {
	make_leaks 3 | "$leakplot" --term dumb - >with
	make_leaks 3 | "$leakplot" --term dumb >without
	cmp with without
	grep -q '3 held blocks, 9 KiB' with
}

@test "text in the terminal" {
	make_leaks 10 >leaks
	run -0 "$leakplot" --term dumb leaks
	[[ "$output" == *'10 held blocks, 30 KiB, in emacs (PID 4165)'* ]]
	[[ "$output" == *'time since the recording began (seconds)'* ]]
	# Ten points are in one line, and the legend has the letter.
	[ "$(tr -cd A <<<"$(grep -E '(A.*){10}' <<<"$output")" | wc -c)" -eq 10 ]
}

@test "a terminal without a display gets text" {
	make_leaks 10 >leaks
	run -0 script -qec "stty cols 132 rows 40; '$leakplot' leaks" /dev/null
	[[ "$output" == *'10 held blocks, 30 KiB'* ]]
	# As wide as the terminal, less a column.
	[ "$(tr -d '\r' <<<"$output" | awk '{ if (length($0) > n) n = length($0) } END { print n }')" -eq 131 ]
}

@test "neither display nor terminal: the message says what to do" {
	make_leaks 10 >leaks
	fails_with 1 'write a picture with -o FILE.png, or use --term dumb' "$leakplot" leaks
}

@test "event numbers instead of time" {
	make_leaks 10 >leaks
	run -0 "$leakplot" --by-event --term dumb leaks
	[[ "$output" == *'event number, in time order'* ]]
}

@test "only one size" {
	make_leaks 10 >leaks
	echo 'leak 64 0x1 119.900000000 99 4165 4165 emacs malloc 14' >>leaks
	run -0 "$leakplot" --size 3072 --term dumb leaks
	[[ "$output" == *'10 of 11 held blocks (size 3072), 30 KiB'* ]]
	run -0 "$leakplot" --size 60..70 --term dumb leaks
	[[ "$output" == *'1 of 11 held blocks (size 60..70), 64 bytes'* ]]
}

@test "sizes far apart get a logarithmic axis, unless --linear is given" {
	make_leaks 2 >leaks
	echo 'leak 16777216 0x1 104.900000000 99 4165 4165 emacs malloc 14' >>leaks
	run -0 "$leakplot" --term dumb leaks
	[[ "$output" == *'4 KiB'* ]]
	run -0 "$leakplot" --linear --term dumb leaks
	[[ "$output" != *' KiB |'* ]]
	make_leaks 2 >leaks
	run -0 "$leakplot" --log --term dumb leaks
	[[ "$output" == *'4 KiB'* ]]
}

@test "lost events and unknown sizes are noted in the picture" {
	make_leaks 2 17 >leaks
	echo 'leak ? 0x1 104.900000000 99 4165 4165 emacs malloc 14' >>leaks
	"$leakplot" -o picture.svg leaks
	grep -q '17 events were lost' picture.svg
	grep -q '1 block of unknown size' picture.svg
}

@test "the part of the time that was observed is noted in the picture" {
	make_leaks 2 | sed '2s/$/ observed=0.997/' >leaks
	"$leakplot" -o picture.svg leaks
	grep -q 'a sample: 99.7 % of the time was observed' picture.svg
}

@test "no leaks: the picture says so and has its axes" {
	make_leaks 0 >leaks
	run -0 "$leakplot" leaks
	[[ "$output" == *'No block is listed'* ]]
	run -0 "$leakplot" -o picture.svg leaks
	[[ "$output" == *'No block is listed'* ]]
	grep -q 'no block is listed' picture.svg
}

@test "colours by verdict" {
	{
		make_leaks 3
		for verdict in growth growth start-up nonsense; do
			echo "leak 64 0x1 104.900000000 99 4165 4165 emacs malloc 14 firm $verdict age=1.000000000"
		done
	} >leaks
	for option in --colour --color; do
		"$leakplot" "$option" verdict -o picture.svg leaks
		grep -q '7 held blocks, 9.2 KiB, 2 look like leaks, in emacs' picture.svg
		grep -q 'growth: 2 blocks, 128 bytes (keep accumulating)' picture.svg
		grep -q 'start-up: 1 block, 64 bytes' picture.svg
		grep -q 'no verdict: 4 blocks, 9.1 KiB' picture.svg
		run ! grep -q '_XQueryFont' picture.svg
	done
	run -2 "$leakplot" --colour age leaks
	[[ "$output" == *'takes stack or verdict'* ]]
}

@test "the legend names the user's frames, shortened" {
	{
		make_leaks 0
		echo 'leak 64 0x1 101.000000000 1 1 1 x malloc 1'
		printf '\t%s+0x1  (/x)\n' malloc 'operator\x20new' 'std::vector<int,\x20std::allocator<int>\x20>::reserve' \
			'cache::Map<std::string,\x20int>::grow' 'cache::Map<std::string,\x20int>::grow' \
			'cache::Map<std::string,\x20int>::insert' main
	} >leaks
	"$leakplot" -o picture.svg leaks
	grep -q '1 x 64 bytes: cache::Map&lt;>::grow &lt;- cache::Map&lt;>::insert' picture.svg
}

@test "--save keeps a plot, and gnuplot draws it again" {
	make_leaks 10 >leaks
	"$leakplot" --save new/kept -o p.png leaks && fail "made two directories"
	run -0 "$leakplot" --save kept leaks
	[ "$output" = "leakplot: wrote leaks.gnuplot in kept, and its data" ]
	[ "$(stat -c %a kept)" = 700 ]
	[ "$(stat -c %a kept/leaks.gnuplot kept/leaks-series0.dat | sort -u)" = 600 ]
	[ "$(awk '!/^#/ && $2 == 3' kept/leaks-series0.dat | wc -l)" -eq 10 ]
	for suffix in png svg pdf; do
		"$leakplot" --save "kept/" -o "picture.$suffix" leaks
		(cd kept && gnuplot -d leaks.gnuplot)
		cmp "picture.$suffix" "kept/leaks.$suffix" ||
			# A PDF contains the date.
			[ "$suffix" = pdf ]
	done
	has_magic kept/leaks.pdf %PDF
	"$leakplot" --save kept --term dumb leaks >drawn
	(cd kept && gnuplot -d leaks.gnuplot) | tr -d '\f' | diff - drawn
}

@test "--save refuses a directory that others could change" {
	make_leaks 3 >leaks
	mkdir there open
	ln -s there link
	fails_with 1 'symbolic link' "$leakplot" --save link leaks
	fails_with 1 'symbolic link' "$leakplot" --save link/ leaks
	chmod 777 open
	fails_with 1 'all users may write' "$leakplot" --save open leaks
	echo precious >precious
	ln -s ../precious there/leaks.gnuplot
	fails_with 1 'there/leaks.gnuplot' "$leakplot" --save there leaks
	rm there/leaks.gnuplot
	ln -s ../precious there/leaks-series0.dat
	fails_with 1 'there/leaks-series0.dat' "$leakplot" --save there leaks
	[ "$(cat precious)" = precious ]
	fails_with 1 'cannot create the directory leaks' "$leakplot" --save leaks leaks
	if [ "$(id -u)" -eq 0 ]; then
		mkdir theirs
		chown 12345 theirs
		fails_with 1 'another user' "$leakplot" --save theirs leaks
		SUDO_UID=12345 SUDO_GID=12345 "$leakplot" --save theirs leaks
		SUDO_UID=12345 SUDO_GID=12345 "$leakplot" --save made leaks
		[ "$(stat -c %u:%g theirs/* made made/* | sort -u)" = 12345:12345 ]
	fi
}

@test "a million leaks become a map" {
	make_leaks 1 >leaks
	awk 'BEGIN { for (i = 0; i < 1000000; i++)
		printf "leak %d 0x%x %d.%09d %d 1 1 x malloc %d\n",
			i % 3 ? 3072 : i, i, 200 + i / 1000, i, i, i % 1000 }' >>leaks
	"$leakplot" --save kept -o picture.svg leaks
	[ "$(awk '!/^#/ { sum += $8 } END { print sum }' kept/leaks-map.dat)" -eq 1000001 ]
	# The legend explains the cells of the map, whatever its colours mean.
	"$leakplot" --colour verdict --save by-verdict leaks
	run ! grep -E 'pointtype [^5]' by-verdict/leaks.gnuplot
	[ "$(stat -c %s picture.svg)" -lt 3000000 ]
	grep -q 'one block in one place' picture.svg
}

@test "100,000 leaks" {
	make_leaks 1 >leaks
	awk 'BEGIN { for (i = 0; i < 100000; i++)
		printf "leak %d 0x%x %d.%09d %d 1 1 x malloc %d\n",
			i % 3 ? 3072 : i, i, 200 + i, i, i, i % 1000 }' >>leaks
	"$leakplot" -o picture.png leaks
	has_magic picture.png $'\x89PNG'
}

@test "hostile names stay names" {
	{
		make_leaks 0
		# shellcheck disable=SC2016
		for name in '`touch\x20pwned`' '";system("touch\x20pwned");"' "'.system('touch\\x20pwned').'" \
			'\x0a!touch\x20pwned' '</title><script>alert(1)</script>' '@$(x)^{y}_z%s&~' '\x1b[31m'; do
			echo "leak 10 0x1 101.000000000 1 1 1 $name malloc $((++stack))"
			printf '\t%s+0x1  (/x)\n' "$name"
		done
	} >leaks
	for picture in picture.png picture.svg picture.pdf; do
		run -0 "$leakplot" -o "$picture" leaks
		[ "$output" = "leakplot: wrote $picture" ]
	done
	run -0 "$leakplot" --term dumb leaks
	[[ "$output" != *$'\x1b'* ]]
	[ ! -e pwned ]
	[ "$(grep -c '<script' picture.svg)" -eq 2 ] # gnuplot's own
	run ! grep -q '<script>alert' picture.svg
	# gnuplot's SVG takes these for characters by number.
	{
		make_leaks 0
		echo 'leak 10 0x1 101.000000000 1 1 1 &#x0; malloc 1'
		printf '\tf&#x202e;oo\xef\xbf\xbf+0x1  (/x)\n' # XML has no U+FFFF
	} >leaks
	"$leakplot" -o picture.svg leaks
	grep -q ' in &#x26;#x0; ' picture.svg
	grep -q '<text>.*: f&#x26;#x202e;oo' picture.svg
	python3 -c 'import xml.dom.minidom as xml; xml.parse("picture.svg")'
}

@test "a file that is no leaks file is refused in one line" {
	: >empty
	fails_with 1 'empty is empty' "$leakplot" -o p.png empty
	echo '# leaks 3' >version
	fails_with 1 'version 3 of the leaks format; this leakplot reads versions 1 to 2' "$leakplot" -o p.png version
	printf PERFILE2 >perf.data
	fails_with 1 'run leakparse on it first' "$leakplot" -o p.png perf.data
	make_leaks 3 | head --bytes=-10 >shortened
	fails_with 1 'line 8: ends without a newline' "$leakplot" -o p.png shortened
	{ make_leaks 1; echo 'leak 99999999999999999999 0x1'; } >number
	fails_with 1 'number: line 5: SIZE' "$leakplot" -o p.png number
	golden="$SOURCE_DIR/test/golden/report.leaks"
	line=$(($(grep -c '' "$golden") + $(grep -n -m 1 '^frames ' "$golden" | cut -d: -f1)))
	cat "$golden" "$golden" >joined
	fails_with 1 "joined: line $line: its stack has been defined before" "$leakplot" -o p.png joined
	grep -v '^frames 4 ' "$golden" >part
	line=$(grep -n '^stack 2 ' part | cut -d: -f1)
	fails_with 1 "part: line $line: the file lacks the 'frames' line" "$leakplot" -o p.png part
	sed 's/^frames 4 /frames 4294967296 /' "$golden" >number
	line=$(grep -n '^frames 4294967296' number | cut -d: -f1)
	fails_with 1 "number: line $line: STACK is not a number" "$leakplot" -o p.png number
	sed '$s/ [^ ]*$//' "$golden" >shortened
	line=$(grep -c '' shortened)
	fails_with 1 "shortened: line $line: VERDICT or CALLER is missing" "$leakplot" -o p.png shortened
	fails_with 1 'cannot read missing' "$leakplot" -o p.png missing
	fails_with 1 'cannot read .' "$leakplot" -o p.png .
	[ ! -e p.png ]
}

@test "after a bad file, the existing picture is kept" {
	make_leaks 3 >leaks
	"$leakplot" -o p.png leaks
	cp p.png before.png
	echo 'leak x' >>leaks
	run -1 "$leakplot" -o p.png leaks
	cmp p.png before.png
}

@test "a picture is not written through a link" {
	make_leaks 3 >leaks
	echo precious >target
	ln -s target p.png
	fails_with 1 'p.png' "$leakplot" -o p.png leaks
	[ "$(cat target)" = precious ]
}

@test "a full disk is reported, a closed pipe is not" {
	make_leaks 3 >leaks
	[ -e /dev/full ] || skip "no /dev/full"
	run -1 bash -c "'$leakplot' --term dumb leaks >/dev/full"
	[[ "$output" == 'leakplot: cannot write'*'No space left'* ]]
	run -1 bash -c "'$leakplot' --help >/dev/full"
	[[ "$output" == 'leakplot: cannot write'*'No space left'* ]]
	mkfifo pipe
	# shellcheck disable=SC2217 # it opens the pipe, and goes
	sleep 0 <pipe &
	{
		wait $!
		run -1 bash -c "'$leakplot' --term dumb leaks >&3"
	} 3>pipe
	[[ -z "$output" ]]
}

@test "gnuplot is missing, or lacks a terminal" {
	make_leaks 3 >leaks
	fails_with 1 'gnuplot is not installed' env PATH=/nonexistent "$leakplot" -o p.png leaks
	# Run by root, gnuplot is another user's, and can start nothing.
	bin=$(mktemp -d)
	chmod 755 "$bin"
	printf '#!/bin/sh\necho " dumb svg unknown "\n' >"$bin/gnuplot"
	chmod 755 "$bin/gnuplot"
	fails_with 1 'has no terminal pngcairo' env PATH="$bin:/usr/bin:/bin" "$leakplot" -o p.png leaks
	cat >"$bin/gnuplot" <<-'END'
		#!/bin/sh
		while read -r line; do
			case $line in *GPVAL_TERMINALS*) echo " pngcairo "; exit ;; esac
		done <"$2"
		echo '"/dev/fd/3" line 1: out of ink' >&2
		exit 3
	END
	echo precious >old.png
	fails_with 1 'gnuplot failed: out of ink' env PATH="$bin:/usr/bin:/bin" "$leakplot" -o p.png leaks
	fails_with 1 'gnuplot failed: out of ink' env PATH="$bin:/usr/bin:/bin" "$leakplot" -o old.png leaks
	[ ! -e p.png ]
	[ "$(cat old.png)" = precious ]
	rm -r "$bin"
}

@test "start-up files of gnuplot change nothing" {
	make_leaks 3 >leaks
	echo 'set title "mine"; set print "-"; print "mine"' >.gnuplot
	HOME="$PWD" run -0 "$leakplot" --term dumb leaks
	[[ "$output" != *mine* ]]
}

@test "bad usage" {
	for arguments in '-o p.gif leaks' '--size 3..1 leaks' '--size x leaks' '--term postscript leaks' \
		'--mem 0' '--mem x' '--mem 1 --interval 1' '--interval 100 leaks' '--mem 1 --by-event' \
		'--mem 1 leaks' 'leaks more' '--nonsense' '--save' '--save= leaks' '--mem 1 --colour stack' '--plot x leaks' '--plot held --size 3 leaks' '--mem 1 --plot held' '-o p.png --term dumb leaks'; do
		# shellcheck disable=SC2086
		run -2 "$leakplot" $arguments
		[ "${#lines[@]}" -eq 1 ]
	done
}

# golden KIND: the plot's script and data equal test/golden/plot.KIND. UPDATE_GOLDEN=1 rewrites that file: look at the
# difference, and at the picture, before you commit it.
golden() {
	local expected="$SOURCE_DIR/test/golden/plot.$1"

	"$leakplot" --plot "$1" --save kept "$SOURCE_DIR/test/golden/report.leaks"
	tail -n +1 kept/"$1"* >seen
	[ -z "${UPDATE_GOLDEN:-}" ] || cp seen "$expected"
	diff -u "$expected" seen
	(cd kept && gnuplot -d "$1.gnuplot")
	has_magic "kept/$1.png" $'\x89PNG'
}

@test "plots of a recording with hostile names equal the golden files" {
	for kind in leaks held growth lifetimes; do
		golden "$kind"
	done
}

# Both are of the same recording. Version 1 does not say what was held at the peak.
@test "the same pictures from a text of version 1" {
	head -n 1 "$SOURCE_DIR/test/golden/leaks-1" | grep -qx '# leaks 1'
	mkdir text
	cp "$SOURCE_DIR/test/golden/leaks-1" text/1
	sed -E 's/ (peak|at_peak_bytes|at_peak_blocks)=[0-9.]+//g' "$SOURCE_DIR/test/golden/report.leaks" >text/2
	run ! cmp -s text/2 "$SOURCE_DIR/test/golden/report.leaks"
	for kind in leaks held growth lifetimes; do
		for version in 1 2; do
			"$leakplot" --plot "$kind" --save "$version" "text/$version"
			for options in --by-event --linear "--colour verdict" "--size 3072"; do
				# shellcheck disable=SC2086 # an option and its value
				[[ $kind != leaks ]] || "$leakplot" $options --save "$version/$options" \
					"text/$version"
			done
			"$leakplot" --plot "$kind" -o "$version/$kind.svg" "text/$version"
		done
	done
	[ -s "2/--by-event/leaks.gnuplot" ]
	diff -r 1 2
}

@test "the beginning of a leaks file can be plotted" {
	head -n 47 "$SOURCE_DIR/test/golden/report.leaks" >leaks
	run -0 "$leakplot" --term dumb leaks
	[[ "$output" == *"$(grep -c '^leak ' leaks) held blocks"* ]]
}

@test "what was held, growth and lifetimes" {
	leaks="$SOURCE_DIR/test/golden/report.leaks"
	for kind in held growth lifetimes; do
		for suffix in png svg pdf; do
			run -0 "$leakplot" --plot "$kind" -o "$kind.$suffix" "$leaks"
			[ "$output" = "leakplot: wrote $kind.$suffix" ]
		done
		"$leakplot" --plot "$kind" --term dumb "$leaks" | grep -q '(PID 7)'
	done
	grep -q 'held: 60.5 KiB at the end' held.svg
	grep -q '60.1 KiB at most, 60 KiB at the end (growth): server+0x2020 &lt;- server+0x1010' held.svg
	grep -q '1 stack grows: +' growth.svg
	grep -q '2 blocks freed, half within' lifetimes.svg
	grep -q '22 still held, by age' lifetimes.svg
	{
		cat "$leaks"
		echo 'leak ? 0x1 1.900000000 99 7 7 1 growth server+0x2020'
	} >unknown
	"$leakplot" --plot lifetimes -o lifetimes.svg unknown
	grep -q '22 still held, by age' lifetimes.svg
	grep -q '1 block of unknown size not shown' lifetimes.svg
}

@test "resources without bytes are counted" {
	{
		echo '# leaks 1'
		echo 'stack 1 growth firm 5 0 1 fopen blocks_per_s=2.5 bytes_per_s=0'
		echo 'periods 2 1.000000000 1.000000000'
		echo 'history all held_bytes=0,0 held_blocks=2,5'
		echo 'history 1 held_bytes=0,0 held_blocks=2,5'
		printf '\topen_log+0x1  (/x)\n'
		echo 'leak 0 0x1 1.000000000 1 1 1 x fopen 1 firm growth age=1.000000000 kind=file'
	} >leaks
	"$leakplot" --plot held -o p.svg leaks
	grep -q 'held: 5 blocks at the end, 5 blocks at most' p.svg
	grep -q 'held (blocks)' p.svg
	grep -q '>5 blocks at the end (growth): open_log<' p.svg
	"$leakplot" --plot growth -o p.svg leaks
	grep -q '1 stack grows: +2.5 blocks/s' p.svg
	grep -q 'growth, +2.5 blocks/s, 5 blocks held; stack 1' p.svg
	# One in eleven minutes; and with sizes.
	sed 's/blocks_per_s=2.5/blocks_per_s=0.0015/' leaks >slow
	"$leakplot" --plot growth -o p.svg slow
	grep -q '1 stack grows: +5.4 blocks/h' p.svg
	sed -e 's/ bytes_per_s=0$/ bytes_per_s=0.4267/' -e 's/held_bytes=0,0/held_bytes=0,999/' slow >sizes
	"$leakplot" --plot growth -o p.svg sizes
	grep -q '1 stack grows: +26 bytes/min' p.svg
	sed -i 's/bytes_per_s=0.4267/bytes_per_s=1.2/' sizes
	"$leakplot" --plot growth -o p.svg sizes
	grep -q '1 stack grows: +1 byte/s' p.svg
}

@test "leaks of resources without bytes are numbered by stack" {
	{
		echo '# leaks 1'
		for i in 4 2 3 1; do
			echo "leak 0 0x$i $((i * 2)).000000000 $i 1 1 x open 7 firm growth age=1.000000000 kind=fd"
			printf '\topen_log+0x1  (/x)\n'
		done
		echo 'leak 0 0x9 5.000000000 9 1 1 x open 8 firm burst age=1.000000000 kind=fd'
		printf '\topen_cache+0x1  (/x)\n'
	} >leaks
	"$leakplot" --save kept -o p.svg leaks
	grep -v '^#' kept/leaks-series0.dat | sort -n >seen
	printf '%s\n' '0 1' '2 2' '4 3' '6 4' | diff - seen
	grep -q 'held blocks of the stack so far' p.svg
	grep -q '4 x open_log' p.svg
	"$leakplot" --colour verdict -o p.svg leaks
	grep -q 'growth: 4 blocks (keep' p.svg
	run ! grep -q bytes p.svg
}

# A worker leaks in 30 stacks, 10 bytes in each, and another function in one.
make_cause() {
	echo '# leaks 2'
	echo '# summary events=31 lost=0 start=1.000000000 end=3.000000000'
	echo 'process 7 server 31 340'
	echo 'cause 1 growth firm 30 300 30 worker blocks_per_s=15 bytes_per_s=150'
	printf '\tworker+0x1  (/x)\n\tmain+0x1  (/x)\n'
	for ((i = 1; i <= 31; i++)); do
		((i < 31)) && names=("step$i" worker main) cause=cause=1 || names=(load_tables main) cause=
		echo "frames $i malloc ${names[0]}"
		printf '\t%s+0x1  (/x)\n' malloc "${names[@]}"
		echo "stack $i growth firm 1 $((i < 31 ? 10 : 40)) $i malloc ${names[0]} bytes_per_s=1 $cause"
	done
	echo 'periods 2 1.000000000 1.000000000'
	echo 'history all held_bytes=140,340 held_blocks=11,31'
	for ((i = 1; i <= 8; i++)); do
		echo "history $i held_bytes=0,10 held_blocks=0,1"
	done
	echo 'history 31 held_bytes=40,40 held_blocks=1,1'
	echo 'cause-history 1 held_bytes=100,300 held_blocks=10,30'
	for ((i = 1; i <= 31; i++)); do
		echo "leak $((i < 31 ? 10 : 40)) 0x$i 2.000000000 $i 7 7 $i growth f"
	done
}

@test "a leak that is spread over stacks is one, in every plot" {
	make_cause >leaks
	"$leakplot" -o p.svg leaks
	grep -q '>300 bytes, 30 x 10 bytes: worker &lt;- main (30 stacks)<' p.svg
	grep -q '>1 x 40 bytes: load_tables &lt;- main<' p.svg
	run ! grep -q 'other stacks' p.svg
	"$leakplot" --plot held --save kept -o p.svg leaks
	grep -q '>300 bytes at the end (growth): worker &lt;- main (30 stacks)<' p.svg
	grep -q '>40 bytes at the end (growth): load_tables &lt;- main<' p.svg
	run ! grep -q 'other stacks' p.svg
	run ! grep -q step p.svg
	[ "$(tail -n 1 kept/held-layers.dat)" = '2 0 40 340' ]
	"$leakplot" --plot growth -o p.svg leaks
	grep -q '2 causes grow: +151 bytes/s together' p.svg
	grep -q '>growth, +150 bytes/s, 300 bytes held; cause 1<' p.svg
}

# Shapes as well as colours; the largest first, although others have more blocks.
@test "the largest holders have colours and shapes, the others are grey" {
	{
		make_leaks 3
		for ((i = 1; i <= 8; i++)); do
			for ((k = 0; k <= i; k++)); do
				echo "leak $((9000 - 1000 * i)) 0x1 104.900000000 $i 4165 4165 emacs malloc $i"
				printf '\tf%d+0x1  (/x)\n' $i
			done
		done
	} >leaks
	"$leakplot" --save kept leaks
	grep '^plot' kept/leaks.gnuplot | grep -oE "series[^,]*" |
		sed -E "s/.dat.*pointtype ([0-9]+).*#..([0-9a-f]*).*/ \1 \2/" | sort >seen
	[ "$(cut -d' ' -f2 seen | sort -u | wc -l)" -eq 7 ]
	[ "$(cut -d' ' -f3 seen | sort -u | wc -l)" -eq 7 ]
	grep -qx 'series6 2 8a8a8a' seen
	"$leakplot" -o p.svg leaks
	[ "$(grep -oE ' x [0-9.]+ KiB: f[0-9]<' p.svg | grep -o 'f[0-9]' | tr -d '\n')" = f4f5f3f6f2f7 ]
	grep -q '14 from all other stacks' p.svg
}

@test "lost events are noted in every picture" {
	sed 's/ lost=0 / lost=17 /' "$SOURCE_DIR/test/golden/report.leaks" >leaks
	for kind in leaks held growth lifetimes; do
		"$leakplot" --plot "$kind" -o p.svg leaks
		grep -q '17 events were lost' p.svg
	done
}

@test "plots of histories that are missing or malformed" {
	make_leaks 3 >leaks
	for kind in held growth lifetimes; do
		fails_with 1 'nothing was allocated while recording, or * run leakparse again' "$leakplot" --plot "$kind" -o p.png leaks
	done
	{
		echo '# leaks 1'
		echo 'periods 2 1.000000000 1.000000000'
		echo 'history all held_bytes=0,0 held_blocks=0,0'
	} >nothing
	{
		echo '# leaks 1'
		echo '# summary start=5.000000000 end=0.000000000'
		echo 'periods 2 1.000000000 1.000000000'
		# More than all stacks hold, and more than fits.
		echo 'history all held_bytes=5,9223372036854775807'
		echo 'history 1 held_bytes=9223372036854775807,9223372036854775807 lifetimes=0:1'
		echo 'history 2 held_bytes=9223372036854775807,1 lifetimes=9223372036854775807:9223372036854775807'
		echo 'leak 1 0x1 9999999999.000000000 1 1 1 x malloc 1 firm growth age=9999999999.000000000'
	} >odd
	for kind in held growth lifetimes; do
		for leaks in nothing odd; do
			run -0 "$leakplot" --plot "$kind" -o p.svg "$leaks"
			[ "$output" = "leakplot: wrote p.svg" ]
			run -0 "$leakplot" --plot "$kind" --term dumb "$leaks"
		done
	done
}

@test "lines that a file repeats cost no more than others" {
	{
		echo '# leaks 1'
		echo 'periods 1 1.000000000 1.000000000'
		yes 'stack 1 growth firm 1 1 5 f' | head -n 200000
		yes 'history all held_bytes=0' | head -n 200000
		echo 'history 1 held_bytes=0'
	} >leaks
	run -0 bash -c "ulimit -t 10; '$leakplot' --plot held --term dumb leaks"
}

# start_sleep: starts sleep, with its id in SLEEP_PID. Before its exec, the process is a copy of this shell; for a
# moment after it, it has no heap.
start_sleep() {
	sleep 1000 &
	SLEEP_PID=$!
	STARTED_PIDS+=("$SLEEP_PID")
	wait_until 60 grep -q sleep "/proc/$SLEEP_PID/comm"
	wait_until 60 grep -q '\[heap\]' "/proc/$SLEEP_PID/maps"
}

# start_mem OPTION...: starts leakplot --mem on that process; its output goes to the file "numbers".
start_mem() {
	"$leakplot" --mem "$SLEEP_PID" "$@" >numbers &
	STARTED_PIDS+=("$!")
}

# has_lines N FILE
has_lines() {
	(($(wc -l <"$2") >= $1))
}

@test "--mem prints columns until the process exits" {
	start_sleep
	start_mem --interval 100
	wait_until 60 has_lines 4 numbers
	kill "$SLEEP_PID"
	wait "${STARTED_PIDS[1]}"
	mapfile -t lines <numbers
	[ "${lines[0]}" = '# time_s rss_bytes heap_bytes' ]
	for line in "${lines[@]:1}"; do
		[[ "$line" =~ ^[0-9]+\.[0-9]{3}\ [1-9][0-9]*\ [1-9][0-9]*$ ]]
	done
}

@test "--mem shows the heap growing by what was allocated" {
	mkfifo go stop
	# The process allocates 20 MiB more when it reads from the FIFO "go".
	bash -c 'read -r <go; printf -v text "%20971520s" x; read -r <stop' &
	STARTED_PIDS+=("$!")
	# Before its exec, it is a copy of this shell, which is larger.
	wait_until 60 grep -q 'read -r <go' "/proc/$!/cmdline"
	"$leakplot" --mem $! --interval 20 >numbers &
	STARTED_PIDS+=("$!")
	wait_until 60 has_lines 5 numbers
	echo >go
	wait_until 60 awk 'NR == 2 { first = $3 } END { exit !($3 - first >= 20971520) }' numbers
	echo >stop
	wait "${STARTED_PIDS[1]}"
	awk 'NR == 2 { first = $2 } $2 - first >= 20971520 { grew = 1 } END { exit !grew }' numbers
}

@test "--mem draws a picture when interrupted" {
	start_sleep
	for signal in INT TERM; do
		"$leakplot" --mem "${STARTED_PIDS[0]}" --interval 50 -o "$signal.svg" &
		pid=$!
		STARTED_PIDS+=("$pid")
		# leakplot blocks both signals when it waits for them.
		wait_until 60 grep -q 'SigBlk:.*00004003$' "/proc/$pid/status"
		kill -s "$signal" "$pid"
		wait "$pid"
		grep -q 'sleep (PID' "$signal.svg"
	done
}

@test "--mem keeps its plot" {
	start_sleep
	start_mem --interval 100 --save kept
	wait_until 60 has_lines 4 numbers
	kill "$SLEEP_PID"
	wait "${STARTED_PIDS[1]}"
	[ "$(grep -vc '^#' kept/memory-memory.dat)" -eq "$(grep -vc '^#' numbers)" ]
	(cd kept && gnuplot -d memory.gnuplot)
	has_magic kept/memory.png $'\x89PNG'
}

@test "--mem of a process that does not exist" {
	fails_with 1 'there is no process 4194304' "$leakplot" --mem 4194304
	fails_with 1 'kernel thread' "$leakplot" --mem 2
}

@test "a recording in windows is a sample, and has no curves" {
	make_leaks 10 | sed 's/^# summary/& windows=600 observed=0.02/' >leaks
	run -0 "$leakplot" -o picture.svg leaks
	grep -q 'a sample: 2 % of the time was observed' picture.svg
	for kind in growth held lifetimes; do
		fails_with 1 'the recording is in windows' "$leakplot" --plot "$kind" -o picture.svg leaks
	done
}
