# SPDX-License-Identifier: GPL-2.0-or-later
# Completions of fish for one tool: the one that this file is named after where it is installed. The options and their
# values come from the tool's own table (--options-table).

set -l tool (status basename | string replace -r '\.fish$' '')
set -l with_value

$tool --options-table 2>/dev/null | while read -d \t -l option need kind words help
    set -l flags -l (string replace -r '^--' '' -- $option)
    string match -q -- '--*' $option
    or set flags -s (string replace -r '^-' '' -- $option)
    if test $need = required
        set -a with_value $option
        switch $kind
            case words
                set -a flags -x -a $words
            case list
                set -a flags -x -a "(__fish_complete_list , 'string split \" \" \"$words\"')"
            case files
                set -a flags -r -F
            case directories
                set -a flags -x -a '(__fish_complete_directories (commandline -ct))'
            case pids
                set -a flags -x -a "(__fish_complete_list , __fish_complete_pids)"
            case '*'
                set -a flags -x
        end
    end
    complete -c $tool $flags -d $help
end

switch $tool
    case leakprobe
        complete -c $tool -f -n __fish_use_subcommand -a 'add list del check'
        # A recorder deletes its own probes.
        complete -c $tool -f -n '__fish_seen_subcommand_from del' \
            -a "($tool list 2>/dev/null | string match -r '^leakprobe_[^:]*' | sort -u)"
    case leakrec
        complete -c $tool -x -a "(__fish_complete_subcommand $with_value)"
end
