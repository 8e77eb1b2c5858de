# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What bash completes for leakprobe, leakrec, leakparse, leakfollow and leakplot. Options are those that
# the tool's own --help lists; what they take is told here. Needs no bash-completion package.

# The options of tool $1, a word each: long ones, wherever its help names them, and short ones, with which
# lines begin.
_leaktools_options() {
	local line

	"$1" --help 2>/dev/null | while IFS= read -r line; do
		[[ ! $line =~ ^[[:space:]]+(-[[:alpha:]])[,[:space:]\[] ]] || echo "${BASH_REMATCH[1]}"
		while [[ $line =~ (^|[^[:alnum:]-])(--[[:lower:]][[:lower:]-]+)(.*) ]]; do
			echo "${BASH_REMATCH[2]}"
			line=${BASH_REMATCH[3]}
		done
	done | sort -u
}

_leaktools_words() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_leaktools_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_leaktools_directories() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -d -- "$1")
}

_leaktools_pids() {
	local done_part=${1%"${1##*,}"} pids=(/proc/[0-9]*)

	_leaktools_words "${pids[*]#/proc/}" "${1##*,}"
	[[ -z $done_part ]] || COMPREPLY=("${COMPREPLY[@]/#/$done_part}")
}

# One of a list that has commas: $1 are the words, $2 is what is there.
_leaktools_list() {
	local done_part=${2%"${2##*,}"}

	_leaktools_words "$1" "${2##*,}"
	[[ -z $done_part ]] || COMPREPLY=("${COMPREPLY[@]/#/$done_part}")
}

# _leaktools_value TOOL OPTION CURRENT: what that option takes. Fails if it takes nothing.
_leaktools_value() {
	local verdicts="growth overdue burst unclear plateau start-up not-yet at-exit"

	case ${1##*/}:$2 in
	leakrec:-p | leakrec:--pid | leakprobe:-p | leakprobe:--pid | leakplot:--mem) _leaktools_pids "$3" ;;
	*:-i | *:--input | *:-o | *:--output | *:--suppressions | leakprobe:--lib | leakprobe:--exe)
		_leaktools_files "$3"
		;;
	*:--symfs | *:--debug-dir | leakplot:--save | leakrec:--cgroup) _leaktools_directories "$3" ;;
	leakrec:--call-graph) _leaktools_words "fp dwarf dwarf, none" "$3" ;;
	leakrec:--on-overload) _leaktools_words "hold drop" "$3" ;;
	leakrec:--with) _leaktools_list "fd mmap" "$3" ;;
	leakparse:--format)
		_leaktools_words \
			"tree html json csv folded pprof callgrind massif heaptrack gprof2dot" "$3"
		;;
	leakparse:--at) _leaktools_words "peak end" "$3" ;;
	leakparse:--order) _leaktools_words "verdict size time" "$3" ;;
	leakparse:--by) _leaktools_words "function file module thread size" "$3" ;;
	leakparse:--verdict) _leaktools_list "$verdicts" "$3" ;;
	leakparse:--func)
		_leaktools_words \
			"malloc calloc realloc aligned_alloc memalign posix_memalign valloc pvalloc" "$3"
		;;
	leakplot:--plot) _leaktools_words "leaks held growth lifetimes" "$3" ;;
	leakplot:--colour | leakplot:--color) _leaktools_words "stack verdict" "$3" ;;
	leakplot:--term) _leaktools_words "dumb qt wxt x11" "$3" ;;
	# Numbers, times, sizes, texts: nobody can guess them.
	leakrec:-[mds] | leakrec:--mmap-pages | leakrec:--duration | leakrec:--mark-every | *:-s | *:--size | \
		*:--pair | *:--ref | leakrec:--filter | *:--kind | leakparse:--from | leakparse:--to | \
		leakparse:--every | leakparse:--top | leakparse:--min-age | leakparse:--max-age | \
		leakparse:--stack | leakparse:--thread | leakparse:--depth | leakparse:--threshold | \
		leakplot:--interval | leakrec:--compression-level) COMPREPLY=() ;;
	*) return 1 ;;
	esac
}

# The words that are no options.
_leaktools_arguments() {
	local tool=$1 current=$2 i

	case ${tool##*/} in
	leakprobe)
		if ((COMP_CWORD == 1)); then
			_leaktools_words "add list del check" "$current"
		elif [[ ${COMP_WORDS[1]} == del ]]; then
			# A recorder deletes its own.
			_leaktools_words \
				"$("$tool" list 2>/dev/null | grep -o '^leakprobe_[^:]*' | sort -u)" "$current"
		fi
		;;
	leakrec)
		for ((i = 1; i < COMP_CWORD; i++)); do
			[[ ${COMP_WORDS[i]} == -- ]] || continue
			((i == COMP_CWORD - 1)) || break
			mapfile -t COMPREPLY < <(compgen -c -- "$current")
			return
		done
		_leaktools_files "$current"
		;;
	leakparse | leakplot) _leaktools_files "$current" ;;
	esac
}

_leaktools() {
	local tool=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} i
	local previous=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	# A command's own options are not ours.
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != -- ]] || {
			_leaktools_arguments "$tool" "$current"
			return
		}
	done
	# "--option=value" is three words, "--option=" two.
	if [[ $current == "=" ]]; then
		current=
	elif [[ $previous == "=" ]] && ((COMP_CWORD > 2)); then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if [[ $previous == -* ]] && _leaktools_value "$tool" "$previous" "$current"; then
		return
	fi
	if [[ $current == -* ]]; then
		_leaktools_words "$(_leaktools_options "$tool")" "$current"
	else
		_leaktools_arguments "$tool" "$current"
	fi
}

complete -F _leaktools leakprobe leakrec leakparse leakfollow leakplot
