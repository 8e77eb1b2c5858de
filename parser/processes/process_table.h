/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes and their threads as a recording shows them, each process with its address space
 * (heap_space.h). What was running before the recording began is met at its first event.
 *
 * A process whose threads have all exited stays in the table, so that one thought dead by mistake
 * goes on with what it held. A fork that uses its pid anew puts the old one's space aside.
 */
#ifndef LEAKTOOLS_PARSER_PROCESS_TABLE_H
#define LEAKTOOLS_PARSER_PROCESS_TABLE_H

#include "parser/processes/call_pairing.h"
#include "parser/processes/heap_anomalies.h"
#include "parser/processes/heap_space.h"
#include "parser/processes/open_syscalls.h"
#include "parser/processes/release_chain.h"

#include <uthash.h> /* whoever adds to the tables defines HASH_NONFATAL_OOM first */

#define COMM_SIZE 16 /* TASK_COMM_LEN, with its NUL */

struct process {
	pid_t pid;
	struct heap_space *space; /* NULL: none yet */
	unsigned int nr_threads;  /* alive, as far as they have been seen */
	pid_t heap_pid; /* whose memory it uses: its own, or, until it executes, its vfork parent's
			 */
	/* Anomalies that are none if this process lives on; a chain, or ANOMALY_NONE. */
	size_t doubtful;
	uint64_t born_ns;  /* when it was forked or became another program; 0: not seen */
	uint64_t ended_ns; /* 0: it lives */
	UT_hash_handle hh;
};

/*
 * What a thread's last event brought about, if that was an allocator function's return: a call that
 * is recorded at its return only (PROBE_CALL) may prove to be around it.
 */
struct last_return {
	uint64_t sequence; /* 0: there is none */
	uint64_t probe_address, return_address;
	uint64_t address; /* of the new block; 0: it failed */
};

struct resource_thread;

struct thread {
	pid_t tid;
	struct process *process; /* NULL: only its name is known */
	bool alive;
	/*
	 * Whether glibc flushes its cache when it exits. The thread that main() runs on has none of
	 * it done (2.36: sysdeps/nptl/libc_start_call_main.h), unless it is a fork of one that has.
	 */
	bool flushes_at_exit;
	char comm[COMM_SIZE];
	struct call_stack *calls;	   /* NULL: it has made none */
	struct resource_thread *resources; /* resource_calls.c's; NULL: it has made none */
	struct mapping_call *mapping_call; /* NULL: it has made none */
	struct descriptor_call descriptor_call;
	struct free_run free_run;
	struct release_chain releases; /* its last, if nothing came after */
	struct last_return last_return;
	uint64_t last_allocation; /* the number of the event that made its last block */
	/* Its last return, if that had no entry: on which CPU, and of what. */
	const struct probe_schema *unpaired_return;
	uint64_t unpaired_return_address;
	uint32_t unpaired_return_cpu;
	UT_hash_handle hh;
};

struct process_table {
	struct process *processes;
	struct thread *threads;
	struct thread *last_thread; /* that was asked for: the next event is often its, too */
	struct heap_spaces spaces;
};

void process_table_deinit(struct process_table *table);

/* The thread @tid of process @pid, made known and alive if it is not. Return 0 or -ENOMEM. */
int process_table_thread(struct process_table *table, pid_t pid, pid_t tid, struct thread **ret);

/* As far as known; or NULL. */
struct process *process_table_find(const struct process_table *table, pid_t pid);
struct thread *process_table_find_thread(const struct process_table *table, pid_t tid);

/*
 * The heap of @process, about to be changed. Return 0 or -ENOMEM.
 */
int process_open_heap(struct process_table *table, struct process *process, struct heap **ret);

/*
 * A new process whose first thread is @pid, forked by thread @ptid of process @ppid, with a copy of
 * its heap. The thread @pid must not be alive. Return 0 or -ENOMEM.
 */
int process_table_fork(struct process_table *table, pid_t pid, pid_t ppid, pid_t ptid);

/* A new thread @tid of process @pid, made by @ptid; not alive before. Return 0 or -ENOMEM. */
int process_table_new_thread(struct process_table *table, pid_t pid, pid_t tid, pid_t ptid);

/* Process @child uses @parent's address space, and no copy (vfork). Return 0 or -ENOMEM. */
int process_share_space(struct process_table *table, struct process *child, struct process *parent);

/*
 * @process executes another program, in a new address space. @visit is called for what goes with
 * the old one, if nobody else has it (heap_space_drop()); *@ret_calls is the number of calls of any
 * of its threads that were still open. Returns 0, -ENOMEM, or what @visit did.
 */
int process_exec(struct process_table *table, struct process *process, size_t *ret_calls,
		 int (*visit)(void *context, const struct heap_block *block), void *context);

/* @thread is gone, and with the last of them its process. Return 0 or -ENOMEM. */
int process_table_exit_thread(struct process_table *table, struct thread *thread);

/* Names thread @tid. Return 0 or -ENOMEM. */
int process_table_set_comm(struct process_table *table, pid_t tid, const char *comm);

#endif
