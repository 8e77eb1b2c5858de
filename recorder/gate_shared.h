/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the gate's BPF programs (gate.bpf.c), the recorder (gate.c) and the guard (guard.c) share: a
 * mapping of the programs' .bss. Whoever stops a target marks it here first, so that whoever
 * outlives the others knows what to let go on.
 */
#ifndef LEAKTOOLS_RECORDER_GATE_SHARED_H
#define LEAKTOOLS_RECORDER_GATE_SHARED_H

#define GATE_MAX_CPUS	 512  /* a power of two; CPUs beyond it share the entries */
#define GATE_MAX_TARGETS 1024 /* a power of two */
#define GATE_MAX_PROBES	 16   /* of the table of targets, for one search */
#define GATE_REMOVED	 1    /* a target's entry may be used again (init is no target) */

/* One CPU's ring, in bytes; an upper bound where records vary in size. A cache line each. */
struct gate_cpu {
	unsigned long long produced; /* by the gate */
	unsigned long long pad1[7];
	unsigned long long consumed; /* by the recorder */
	unsigned long long pad2[7];
};

struct gate_target {
	unsigned long long tgid;       /* 0: never used; GATE_REMOVED */
	unsigned long long stopped;    /* 1: by the gate */
	unsigned long long stopped_ns; /* CLOCK_MONOTONIC */
	unsigned int linked;	       /* recorded through links (probe_programs.h) */
	unsigned int forks;	       /* enum gate_forks */
	unsigned int job_stopped;      /* by somebody else's SIGSTOP: to stay so */
	unsigned int continuing;       /* its mark is gone, its SIGCONT perhaps not sent yet */
	unsigned int role;	       /* enum gate_role */
	/* It has mapped code of a file, this one, that the recorder is to look at (late_files.h).
	 */
	unsigned int has_mapped;
	unsigned long long mapped_device, mapped_inode;
};

/* What processes are where the whole machine, or a cgroup, is recorded (bystanders.h). */
enum gate_role {
	GATE_RECORDED,
	GATE_SPARED,   /* recorded, but never stopped */
	GATE_LEFT_OUT, /* not recorded */
};

/* Whether a linked process may fork: its children need events to inherit first (followers.h). */
enum gate_forks {
	GATE_FORKS_UNSEEN,
	GATE_FORKS_WANTED, /* it is held back on its way into its first fork */
	GATE_FORKS_FOLLOWED,
};

struct gate_shared {
	struct gate_cpu cpus[GATE_MAX_CPUS];
	struct gate_target targets[GATE_MAX_TARGETS];
	unsigned long long limit_bytes;
	unsigned int any_stopped; /* some target may be marked as stopped */
	unsigned int closed;	  /* stop nobody any more */
	/* The guard lets go on who was stopped for longer, and then nobody is stopped until the
	 * recorder has drained its rings again. 0: no limit. */
	unsigned long long max_stop_ns;
	unsigned int overdue;
	unsigned int any_mapped; /* some target may have mapped something */
};

/* The first entry to look at for a process; the search goes on linearly. */
static inline unsigned int gate_target_slot(unsigned int tgid)
{
	return (tgid * 2654435761U >> 16) & (GATE_MAX_TARGETS - 1);
}

#endif
