/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How full backpressure's programs (backpressure.bpf.c) believe the perf rings to be: a mapping of
 * their .bss, which the recorder (backpressure.c) shares.
 */
#ifndef LEAKTOOLS_RECORDER_BACKPRESSURE_SHARED_H
#define LEAKTOOLS_RECORDER_BACKPRESSURE_SHARED_H

#define BACKPRESSURE_MAX_CPUS 512 /* a power of two; CPUs beyond it share the entries */

/*
 * The ring of one CPU, in a cache line. Both counts are bytes, upper bounds if records vary in
 * size.
 */
struct backpressure_cpu {
	unsigned long long produced; /* by the programs */
	unsigned long long step;     /* as in struct bpf_cpu */
	unsigned long long pad1[6];
	unsigned long long consumed; /* by the recorder */
	unsigned long long pad2[7];
};

#endif
