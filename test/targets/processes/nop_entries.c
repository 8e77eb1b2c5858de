// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions that begin with a nop of five bytes, as compilers make for patching. The program calls
 * them, and forks children that call them, too. With --wait it then prints "recorded", waits for
 * one more line, and forks one more child.
 *
 * Prints: thing_given, thing_taken and thing_held, of all processes but that last one; and died,
 * the children that did not exit.
 */
#include "truth.h"

#define NR_CHILDREN 3
#define NR_NOPS	    3
#define NR_ROUNDS   5

#define FUNCTION(name, nop)                                                                        \
	void name(const void *thing);                                                              \
	__asm__("\t.pushsection .text\n"                                                           \
		"\t.balign 16\n"                                                                   \
		"\t.globl " #name "\n"                                                             \
		"\t.type " #name ", @function\n" #name ":\n"                                       \
		"\t.cfi_startproc\n"                                                               \
		"\t.byte " nop "\n"                                                                \
		"\tpush %rbx\n"                                                                    \
		"\t.cfi_adjust_cfa_offset 8\n"                                                     \
		"\tpop %rbx\n"                                                                     \
		"\t.cfi_adjust_cfa_offset -8\n"                                                    \
		"\tret\n"                                                                          \
		"\t.cfi_endproc\n"                                                                 \
		"\t.size " #name ", . - " #name "\n"                                               \
		"\t.popsection\n")

FUNCTION(give_gcc, "0x0f, 0x1f, 0x44, 0, 0");
FUNCTION(take_gcc, "0x0f, 0x1f, 0x44, 0, 0");
FUNCTION(give_clang, "0x0f, 0x1f, 0x44, 0, 8");
FUNCTION(take_clang, "0x0f, 0x1f, 0x44, 0, 8");
FUNCTION(give_prefixed, "0x66, 0x66, 0x66, 0x66, 0x90");
FUNCTION(take_prefixed, "0x66, 0x66, 0x66, 0x66, 0x90");

static char things[NR_NOPS * NR_ROUNDS];

/* All things are given. The last one of each function stays. */
static void use_things(void)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		const char *thing = things + (size_t)i * NR_NOPS;

		give_gcc(thing);
		give_clang(thing + 1);
		give_prefixed(thing + 2);
		if (i == NR_ROUNDS - 1)
			break;
		take_gcc(thing);
		take_clang(thing + 1);
		take_prefixed(thing + 2);
	}
}

/* Returns 1 if a signal ends the child. */
static int fork_child(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		use_things();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		truth_die("nop_entries: no child\n");
	return !WIFEXITED(status);
}

int main(int argc, char **argv)
{
	static const char recorded[] = "recorded\n";
	int nr_died = 0;
	char go;

	truth_init(argc, argv);
	truth_begin();
	/* The kernel may change the code at the second call. */
	use_things();
	for (int i = 0; i < NR_CHILDREN; i++)
		nr_died += fork_child();
	if (truth.wait) {
		if (write(STDOUT_FILENO, recorded, strlen(recorded)) < 0 ||
		    read(STDIN_FILENO, &go, 1) != 1)
			truth_die("nop_entries: stdin closed before the line to go on\n");
		nr_died += fork_child();
	}
	truth_tell("thing_given", (1 + NR_CHILDREN) * NR_NOPS * NR_ROUNDS);
	truth_tell("thing_taken", (1 + NR_CHILDREN) * NR_NOPS * (NR_ROUNDS - 1));
	truth_tell("thing_held", (1 + NR_CHILDREN) * NR_NOPS);
	truth_tell("died", nr_died);
	return 0;
}
