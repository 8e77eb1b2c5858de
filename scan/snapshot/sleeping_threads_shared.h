/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sleeping_threads.bpf.c writes for each thread of a process. */
#ifndef LEAKTOOLS_SCAN_SLEEPING_THREADS_SHARED_H
#define LEAKTOOLS_SCAN_SLEEPING_THREADS_SHARED_H

#define SLEEPING_NR_GENERAL 21	 /* struct pt_regs of x86-64, which user_regs_struct begins with */
#define SLEEPING_VECTOR	    4096 /* more than all state components but those of AMX, in bytes */

/*
 * Written without what follows vector_bytes bytes of the last member. The same thread with the same
 * number of switches, and not on a CPU at the second time, has not run between two records.
 */
struct sleeping_thread {
	unsigned int tid; /* in the reader's namespace */
	unsigned int tgid;
	unsigned int on_cpu;
	unsigned int nr_threads;   /* of the process, as the kernel counts them */
	unsigned int nr_mm_users;  /* threads of any process that use its memory, and readers */
	unsigned int is_kernels;   /* a worker of the kernel in the process: it has no registers */
	unsigned long long memory; /* names the memory; 0: none, it has ended */
	unsigned long long start_ns;
	unsigned long long nr_switches;
	unsigned long long general[SLEEPING_NR_GENERAL];
	unsigned long long fs_base, gs_base;
	unsigned int vector_size;  /* what the kernel has */
	unsigned int vector_bytes; /* what follows: vector_size, or 0 if that is too much */
	unsigned char vector[SLEEPING_VECTOR]; /* as XSAVE or XSAVES wrote it */
};

#endif
