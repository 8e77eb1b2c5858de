/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the gate's BPF programs (backpressure.bpf.c), the recorder (backpressure.c) and the guard
 * (watchdog.c) share: a mapping of the programs' .bss. Whoever stops a target marks it here first,
 * so that whoever outlives the others knows what to let go on.
 */
#ifndef LEAKTOOLS_RECORDER_TARGET_TABLE_SHARED_H
#define LEAKTOOLS_RECORDER_TARGET_TABLE_SHARED_H

#include <stdbool.h>

#define GATE_MAX_CPUS	 512  /* a power of two; CPUs beyond it share the entries */
#define GATE_MAX_TARGETS 1024 /* a power of two */
#define GATE_MAX_PROBES	 16   /* of the table of targets, for one search */

/*
 * Values of an entry that no process has: it may be used again, and it is being filled in. The
 * process ids up to GATE_INIT are never in the table: children of init are everybody's orphans.
 */
#define GATE_REMOVED (~0ULL)
#define GATE_CLAIMED (~0ULL - 1)
#define GATE_INIT    1

/* No stop is longer, whatever becomes of the recorder: see watchdog.h. */
#define GATE_MAX_STOP_NS 1000000000ULL
#define GATE_MAX_SET_UP_NS                                                                         \
	2000000000ULL /* for set-up work, which is once for a file or process                      \
		       */
/* Without a sign of the guard for so long nobody is stopped. */
#define GATE_GUARD_LATE_NS 1000000000ULL

/* One CPU's ring, in bytes; an upper bound where records vary in size. A cache line each. */
struct gate_cpu {
	unsigned long long produced; /* by the gate */
	unsigned long long pad1[7];
	unsigned long long consumed; /* by the recorder */
	unsigned long long pad2[7];
};

struct gate_target {
	unsigned long long tgid;       /* 0: never used; GATE_REMOVED, GATE_CLAIMED */
	unsigned long long stopped;    /* 1: by the gate */
	unsigned long long stopped_ns; /* CLOCK_MONOTONIC */
	unsigned int linked;	       /* recorded through links (bpf_recorder.h) */
	unsigned int forks;	       /* enum gate_forks */
	unsigned int job_stopped;      /* by somebody else's SIGSTOP: to stay so */
	unsigned int continuing;       /* its mark is gone, its SIGCONT perhaps not sent yet */
	unsigned int role;	       /* enum gate_role */
	/* It has mapped code of a file, this one, that the recorder is to look at (dlopen_watch.h).
	 */
	unsigned int has_mapped;
	unsigned int looked_at; /* the recorder is doing so */
	unsigned int set_up;	/* it was stopped for set-up work, not because a ring is full */
	unsigned int debugged;	/* a debugger has attached (PTRACE_ATTACH) */
	unsigned long long mapped_device, mapped_inode;
};

/* What a process is to the recording (exempt_processes.h). */
enum gate_role {
	GATE_RECORDED,
	GATE_SPARED,   /* recorded, but never stopped */
	GATE_LEFT_OUT, /* not recorded */
};

/* Whether a linked process may fork: its children need events to inherit first (fork_follow.h). */
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
	unsigned int paused;	  /* the same, while the recorder itself is stopped by Ctrl-Z */
	/* The guard has let somebody go on who was stopped for too long. Nobody is stopped until
	 * the recorder has drained its rings, or done its set-up work. */
	unsigned int overdue, set_up_overdue;
	unsigned int any_mapped;     /* some target may have mapped something */
	unsigned int missed;	     /* some process ran on before its set-up work was done */
	unsigned int blind;	     /* no program tells of debuggers: look them up */
	unsigned int own_session;    /* of the recorder, if that has a terminal; else 0 */
	unsigned long long guard_ns; /* when the guard was last awake, CLOCK_MONOTONIC */
};

/* True if @target is to wait for set-up work: only the guard continues it before. */
static inline bool gate_target_waits(const struct gate_target *target)
{
	return target->forks == GATE_FORKS_WANTED || target->has_mapped || target->looked_at;
}

#endif
