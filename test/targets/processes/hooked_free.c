// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program whose free() was hooked in its memory, as agents do it: a jump over the first
 * instructions leads to a hook, which counts and then does what they did. It prints "hooked N". On
 * other processors than x86-64, nothing is hooked, and it prints "no hook".
 *
 * --writable 1: hooks nothing, but leaves the code writable.
 */
#include "truth.h"

#define NR_BLOCKS 100

#if defined(__x86_64__)

static _Atomic int nr_hooked __attribute__((used)); /* by the hook, which is assembly */

static void *allocate(size_t size_bytes)
{
	return mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The program's own allocator, so that the first instructions are known. Blocks are pages. */
void *malloc(size_t size_bytes)
{
	void *p = allocate(size_bytes);

	return p == MAP_FAILED ? NULL : p;
}

void free(void *p);
__asm__(".globl free; .type free, @function\n"
	"free: push %rbp; mov %rsp, %rbp; push %rbx; nop\n"
	"free_rest: pop %rbx; pop %rbp; ret\n"
	".size free, . - free");
extern const char free_rest[];

__attribute__((naked)) static void hook(void *p)
{
	__asm__("lock incl nr_hooked(%rip); push %rbp; mov %rsp, %rbp; push %rbx; nop; jmp free_rest");
}

static void change_code(bool only_rights)
{
	char *code = (char *)(uintptr_t)free;
	char *page = code - (uintptr_t)code % 4096;
	int distance = (int)((uintptr_t)hook - (uintptr_t)code - 5);

	if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		truth_die("hooked_free: cannot change code\n");
	if (only_rights)
		return;
	code[0] = (char)0xe9;
	memcpy(code + 1, &distance, sizeof(distance));
	mprotect(page, 8192, PROT_READ | PROT_EXEC);
}

#endif

int main(int argc, char **argv)
{
	truth_init(argc, argv);
#if defined(__x86_64__)
	change_code(truth_option(argc, argv, "--writable", 0));
	truth_begin();
	for (int i = 0; i < NR_BLOCKS; i++)
		free(malloc(1));
	truth_tell("hooked", nr_hooked);
#else
	truth_begin();
	truth_tell("no_hook", 1);
#endif
	return 0;
}
