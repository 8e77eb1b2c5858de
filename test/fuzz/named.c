/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first input of fuzz_names: functions with lines, inlined ones and ones with C++'s names. */

int outer(int a);
int method(int a) __asm__("_ZNKSt6vectorIN3foo3barIiEESaIS2_EE4sizeEv");
int operator_new(int a) __asm__("_ZN3foonwIcEEPvmT_");

static volatile int sum;

__attribute__((always_inline)) static inline int innermost(int a)
{
	sum += a;
	return sum;
}

__attribute__((always_inline)) static inline int inner(int a)
{
	return innermost(a) + innermost(a + 1);
}

__attribute__((noinline)) static int callee(int a)
{
	return inner(a) * inner(a + 2);
}

int outer(int a)
{
	int total = 0;

	for (int i = 0; i < a; i++)
		total += callee(i);
	return total;
}

int method(int a)
{
	return a ? outer(a) : inner(a);
}

__attribute__((cold)) int operator_new(int a)
{
	return method(a) + 1;
}
