/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of the target table: the recorded processes, and what is known of each. BPF programs
 * (targets.bpf.h), the recorder and the watchdog share it, as a mapping of the programs' .bss. User
 * space changes it through target_table.h only.
 *
 * A target is marked here before it is stopped. So the watchdog knows which processes to continue
 * when the recorder has been killed.
 */
#ifndef LEAKTOOLS_RECORDER_TARGET_TABLE_SHARED_H
#define LEAKTOOLS_RECORDER_TARGET_TABLE_SHARED_H

#include <stdbool.h>

/* Some 1,500 processes have room: each finds an entry in its search. Powers of two. */
#define TARGET_TABLE_SIZE 4096
#define TARGET_GROUP_SIZE 64 /* entries that a walk passes at once if none was ever used */
#define TARGET_MAX_SEARCH 16 /* entries that one search looks at */

/*
 * Values of target.tgid that no process has: the entry is free again; the entry is being filled in.
 * Process ids up to TARGET_INIT are never in the table: init adopts orphans of every origin.
 */
#define TARGET_REMOVED	    (~0ULL)
#define TARGET_CLAIMED	    (~0ULL - 1)
#define TARGET_INIT	    1

#define TARGET_MAX_CARRIERS 2
/* In target.carriers: not all of its events are open yet. Thread ids are smaller. */
#define TARGET_CARRIER_OPENING 0x80000000U

/* The watchdog ends every stop within these times, whatever the recorder does (watchdog.h). */
#define TARGET_MAX_STOP_NS   1000000000ULL
#define TARGET_MAX_SET_UP_NS 5000000000ULL /* set-up work happens once for a file or process */
/* Nothing is stopped when the watchdog has shown no sign of life for this long. */
#define WATCHDOG_LATE_NS 1000000000ULL

/*
 * If all processes are recorded, stops because of a full ring are for the fillers: processes that
 * have filled as much of the rings in the last one to two windows as @filler_steps of the table
 * says. Others are stopped only if a ring is fuller still, and only for a part of each window.
 */
#define TARGET_WINDOW_NS	 1000000000ULL
#define TARGET_MAX_OTHER_STOP_NS 200000000ULL /* in a window, for a process that is no filler */
#define TARGET_STEPS_IN_RING	 32	      /* a power of two */
#define TARGET_MIN_FILLER_STEPS	 8
/*
 * If a filler is stopped for as long in each of as many windows, or another process for much of
 * what it may be, this is reported.
 */
#define TARGET_STRAINED_STOP_NS 500000000ULL
#define TARGET_STRAINED_WINDOWS 5

struct target {
	unsigned long long tgid;       /* 0: never used; TARGET_REMOVED, TARGET_CLAIMED */
	unsigned long long stopped;    /* enum target_stop; programs set TARGET_STOPPED */
	unsigned long long stopped_ns; /* CLOCK_MONOTONIC */
	unsigned int linked;	       /* recorded through links (bpf_recorder.h) */
	unsigned int forks;	       /* enum target_forks */
	unsigned int job_stopped;      /* stopped by a SIGSTOP of another process: stays stopped */
	unsigned int tty_stops;	       /* it may have got a SIGTSTP, SIGTTIN or SIGTTOU */
	unsigned int kept;	       /* enum target_kept: not continued for job_stopped */
	unsigned int continuing;       /* the mark is cleared, SIGCONT may not have been sent */
	unsigned int role;	       /* enum target_role */
	unsigned int has_mapped;       /* it has mapped a file that awaits inspection */
	unsigned int looked_at;	       /* the recorder inspects that file now */
	unsigned int set_up;	       /* stopped for set-up work, not because a ring is full */
	unsigned int debugged;	       /* a debugger has attached (PTRACE_ATTACH) */
	unsigned int fork_noted;       /* after_fork() has seen its beginning */
	unsigned int nr_forks;	       /* children that after_fork() has seen */
	unsigned long long exec_id;    /* of the last exec that after_exec() has seen; 0: none */
	/* Only if no program watches the targets: the process's, as in struct process_stat. */
	unsigned long long start_time_ticks;
	/* The threads that have its events (carriers.bpf.h); 0: none. */
	unsigned int carriers[TARGET_MAX_CARRIERS];
	unsigned int carrier_stops; /* since carrier_stops_ns, to find a second carrier */
	unsigned long long carrier_stops_ns;
	unsigned int newest_thread; /* that one was wanted for; 0: none */
	/* The file, as in struct bpf_file and bpf_file_version (dlopen_watch.h). */
	unsigned long long mapped_device, mapped_inode, mapped_size_bytes, mapped_changed_ns;
	/* Only if all processes are recorded. */
	unsigned long long steps;	/* of the rings that it has filled, ever */
	unsigned long long steps_begin; /* as many when the window before this one began */
	unsigned long long steps_mid;	/* as many when this window began */
	unsigned long long paused_ns;	/* in this window, because of full rings */
	unsigned int strained_windows;	/* so many in a row, it was stopped for long */
};

/* The role of a process in the recording (exempt_processes.h). */
enum target_role {
	TARGET_RECORDED,
	TARGET_SPARED,	 /* recorded, but never stopped */
	TARGET_LEFT_OUT, /* not recorded */
	TARGET_RECORDER, /* not recorded, and neither are its children */
};

/* Who is stopped by the recorder or its programs. */
enum target_stop {
	TARGET_RUNS,
	TARGET_STOPPED,
	TARGET_STUCK, /* SIGCONT is not permitted */
	TARGET_STUCK_TOLD,
};

enum target_kept {
	TARGET_NOT_KEPT,
	TARGET_KEPT,
	TARGET_KEPT_TOLD, /* once is enough */
};

/* Whether a linked process may fork. Its children must inherit events first (fork_follow.h). */
enum target_forks {
	TARGET_FORKS_UNSEEN,
	TARGET_FORKS_WANTED,  /* it is stopped, for instance at its first fork */
	TARGET_FORKS_OPENING, /* the recorder opens its events; WANTED may follow at any moment */
	TARGET_FORKS_FOLLOWED,
};

struct target_table {
	struct target targets[TARGET_TABLE_SIZE];
	/* 1: one of these entries is used, or was. The watchdog walks the table all the time. */
	unsigned char groups[TARGET_TABLE_SIZE / TARGET_GROUP_SIZE];
	unsigned long long limit_bytes; /* of a ring, past which targets are stopped; 0: never */
	/* Past this, others than fillers are stopped, too; 0: all are alike. */
	unsigned long long limit_others_bytes;
	unsigned long long filler_steps; /* what makes a process a filler */
	unsigned long long window_ns;	 /* when this window began */
	unsigned int step_shift;	 /* bytes of a ring >> this = steps */
	/* Who fills most of the rings, set when it is too much for long; 0: it is not. */
	unsigned int strained_tgid;
	unsigned int any_stopped; /* some target may be marked as stopped */
	unsigned int any_kept;	  /* some target may be TARGET_KEPT */
	unsigned int closed;	  /* stop nothing any more */
	unsigned int paused;	  /* the same, while Ctrl-Z has stopped the recorder */
	unsigned int forbidden;	  /* the same: the recorder may not continue every process */
	/*
	 * The watchdog has ended a stop that took too long. Nothing is stopped for the same reason
	 * until the recorder has drained its rings, or has done its set-up work.
	 */
	unsigned int overdue, set_up_overdue;
	unsigned int any_mapped;	/* some target may have has_mapped set */
	unsigned int watchdog_was_late; /* so nothing was stopped */
	unsigned int missed;		/* a process went on before its set-up work was done */
	unsigned int no_room;		/* for a process; it may not be recorded */
	unsigned int files_unheld;	/* one was not stopped when it mapped a new file */
	unsigned int nr_set_up_late;	/* how many of these had been stopped for too long */
	unsigned int blind;		/* no program sets target.debugged: read /proc instead */
	unsigned int own_session;	/* the recorder's, if it has a terminal; else 0 */
	unsigned int own_group;		/* the recorder's process group */
	/* Processes of the table that have ended, or have become another program. */
	unsigned long long nr_gone;
	unsigned long long watchdog_ns; /* the watchdog's last sign of life, CLOCK_MONOTONIC */
};

static inline bool target_waits_for_events(const struct target *target)
{
	unsigned int forks = target->forks;

	return forks == TARGET_FORKS_WANTED || forks == TARGET_FORKS_OPENING;
}

/* True if @target waits for set-up work. Until that is done, only the watchdog continues it. */
static inline bool target_waits(const struct target *target)
{
	return target_waits_for_events(target) || target->has_mapped || target->looked_at;
}

/* True if @target is one of those that fill the rings, or if all are alike. */
static inline bool target_is_filler(const struct target_table *table, const struct target *target)
{
	return target->steps - target->steps_begin >= table->filler_steps;
}

/* True if @target may be stopped now because a ring holds @filled_bytes. */
static inline bool target_may_pause(const struct target_table *table, const struct target *target,
				    unsigned long long filled_bytes)
{
	return target_is_filler(table, target) || (filled_bytes > table->limit_others_bytes &&
						   target->paused_ns < TARGET_MAX_OTHER_STOP_NS);
}

#endif
