#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# test/bench/parser compares leakparse with this script. It works like most such scripts: it reads the text of `perf
# script` once, line by line, and keeps the blocks that were allocated and not freed, with their stacks.
use strict;
use warnings;

my (%held, %size, $address, @stack, $entry);
my ($events, $allocations, $frees) = (0, 0, 0);

# The empty line ends the stack, and so the previous event.
sub finish {
	$held{$address} = [$size{$entry} // 0, [@stack]] if defined $address;
	undef $address;
	@stack = ();
}

while (my $line = <STDIN>) {
	if ($line =~ /^\s+([0-9a-f]+) (.*)$/) {
		push @stack, "$1 $2";
	} elsif ($line =~ /^(.+?)\s+(\d+)\s+\[\d+\]\s+([\d.]+):\s+\w+:(\w+):\s+\(([^)]*)\)\s*(.*)$/) {
		my ($thread, $event, %field) = ($2, $4, map { split /=/, $_, 2 } split ' ', $6);
		finish();
		$events++;
		if ($event =~ /^(\w+?)_ret/) {
			$entry = "$thread $1";
			my $block = $field{ret} // $field{arg1} // '0x0';
			if ($block ne '0x0') {
				$address = $block;
				$allocations++;
			}
		} elsif ($event =~ /^free/) {
			my $mem = $field{mem} // $field{arg1};
			$frees++ if delete $held{$mem};
		} else {
			my @sizes = grep { defined } @field{qw(bytes nmemb n size)};
			$size{"$thread $event"} = eval { my $s = 1; $s *= hex($_) || $_ for @sizes; $s };
			delete $held{$field{oldmem}} if $field{oldmem};
		}
	}
}
finish();
print "$events events, $allocations allocations, $frees frees\n";
for my $block (sort keys %held) {
	print "leak $held{$block}[0] $block\n";
	print "\t$_\n" for @{$held{$block}[1]};
}
