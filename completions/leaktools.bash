# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Completions of bash for leakprobe, leakrec, leakparse, leakfollow, leakplot and leakscan. The options and their values come from
# the tool's own table (--options-table). Needs no bash-completion package.

# Prints the options of tool $1, one word each.
_leaktools_options() {
	"$1" --options-table 2>/dev/null | cut -f1
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

# Completes the last item of a list with commas: $1 has the words, $2 is the text so far.
_leaktools_list() {
	local done_part=${2%"${2##*,}"}

	_leaktools_words "$1" "${2##*,}"
	[[ -z $done_part ]] || COMPREPLY=("${COMPREPLY[@]/#/$done_part}")
}

# _leaktools_value TOOL OPTION CURRENT: completes the option's value. Fails if the value is not a word of its own.
_leaktools_value() {
	local option need kind words

	while IFS=$'\t' read -r option need kind words _; do
		[[ $option == "$2" ]] || continue
		[[ $need == required ]] || return
		case $kind in
		words) _leaktools_words "$words" "$3" ;;
		list) _leaktools_list "$words" "$3" ;;
		files) _leaktools_files "$3" ;;
		directories) _leaktools_directories "$3" ;;
		pids) _leaktools_pids "$3" ;;
		*) COMPREPLY=() ;;
		esac
		return 0
	done < <("$1" --options-table 2>/dev/null)
	return 1
}

# Completes words that are not options.
_leaktools_arguments() {
	local tool=$1 current=$2 i

	case ${tool##*/} in
	leakprobe)
		if ((COMP_CWORD == 1)); then
			_leaktools_words "add list del check" "$current"
		elif [[ ${COMP_WORDS[1]} == del ]]; then
			# A recorder deletes its own probes.
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
	# After "--" comes a command, with options of its own.
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

complete -F _leaktools leakprobe leakrec leakparse leakfollow leakplot leakscan
