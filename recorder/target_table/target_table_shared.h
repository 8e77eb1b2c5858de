/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What backpressure's BPF programs (backpressure.bpf.c), the recorder (backpressure.c) and the
 * watchdog (watchdog.c) share: a mapping of the programs' .bss. Whoever stops a target marks it
 * here first, so that whoever outlives the others knows what to let go on.
 */
#ifndef LEAKTOOLS_RECORDER_TARGET_TABLE_SHARED_H
#define LEAKTOOLS_RECORDER_TARGET_TABLE_SHARED_H

#include <stdbool.h>

#define BACKPRESSURE_MAX_CPUS 512  /* a power of two; CPUs beyond it share the entries */
#define TARGET_TABLE_SIZE     1024 /* a power of two */
#define TARGET_MAX_SEARCH     16   /* of the table of targets, for one search */

/*
 * Values of an entry that no process has: it may be used again, and it is being filled in. The
 * process ids up to TARGET_INIT are never in the table: children of init are everybody's orphans.
 */
#define TARGET_REMOVED (~0ULL)
#define TARGET_CLAIMED (~0ULL - 1)
#define TARGET_INIT    1

/* No stop is longer, whatever becomes of the recorder (watchdog.h): because a ring is full, and for
 * set-up work, which is once for a file or process. */
#define TARGET_MAX_STOP_NS   1000000000ULL
#define TARGET_MAX_SET_UP_NS 5000000000ULL
/* Without a sign of the watchdog for so long nobody is stopped. */
#define WATCHDOG_LATE_NS 1000000000ULL

/* One CPU's ring, in bytes; an upper bound where records vary in size. A cache line each. */
struct backpressure_cpu {
	unsigned long long produced; /* by backpressure */
	unsigned long long pad1[7];
	unsigned long long consumed; /* by the recorder */
	unsigned long long pad2[7];
};

struct target {
	unsigned long long tgid;       /* 0: never used; TARGET_REMOVED, TARGET_CLAIMED */
	unsigned long long stopped;    /* 1: by backpressure */
	unsigned long long stopped_ns; /* CLOCK_MONOTONIC */
	unsigned int linked;	       /* recorded through links (bpf_recorder.h) */
	unsigned int forks;	       /* enum target_forks */
	unsigned int job_stopped;      /* by somebody else's SIGSTOP: to stay so */
	unsigned int continuing;       /* its mark is gone, its SIGCONT perhaps not sent yet */
	unsigned int role;	       /* enum target_role */
	/* It has mapped code of a file, this one, that the recorder is to look at (dlopen_watch.h).
	 */
	unsigned int has_mapped;
	unsigned int looked_at; /* the recorder is doing so */
	unsigned int set_up;	/* it was stopped for set-up work, not because a ring is full */
	unsigned int debugged;	/* a debugger has attached (PTRACE_ATTACH) */
	unsigned long long mapped_device, mapped_inode;
};

/* What a process is to the recording (exempt_processes.h). */
enum target_role {
	TARGET_RECORDED,
	TARGET_SPARED,	 /* recorded, but never stopped */
	TARGET_LEFT_OUT, /* not recorded */
};

/* Whether a linked process may fork: its children need events to inherit first (fork_follow.h). */
enum target_forks {
	TARGET_FORKS_UNSEEN,
	TARGET_FORKS_WANTED, /* it is held back on its way into its first fork */
	TARGET_FORKS_FOLLOWED,
};

struct target_table {
	struct backpressure_cpu cpus[BACKPRESSURE_MAX_CPUS];
	struct target targets[TARGET_TABLE_SIZE];
	unsigned long long limit_bytes;
	unsigned int any_stopped; /* some target may be marked as stopped */
	unsigned int closed;	  /* stop nobody any more */
	unsigned int paused;	  /* the same, while the recorder itself is stopped by Ctrl-Z */
	/* The watchdog has let somebody go on who was stopped for too long. Nobody is stopped until
	 * the recorder has drained its rings, or done its set-up work. */
	unsigned int overdue, set_up_overdue;
	unsigned int any_mapped;	/* some target may have mapped something */
	unsigned int missed;		/* some process ran on before its set-up work was done */
	unsigned int nr_set_up_late;	/* of these, how many had been stopped for too long */
	unsigned int blind;		/* no program tells of debuggers: look them up */
	unsigned int own_session;	/* of the recorder, if that has a terminal; else 0 */
	unsigned long long watchdog_ns; /* when the watchdog was last awake, CLOCK_MONOTONIC */
};

/* True if @target is to wait for set-up work: only the watchdog continues it before. */
static inline bool target_waits(const struct target *target)
{
	return target->forks == TARGET_FORKS_WANTED || target->has_mapped || target->looked_at;
}

#endif
