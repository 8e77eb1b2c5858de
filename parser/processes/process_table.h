/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processes and threads of a recording, each process with its address space (heap_space.h). A
 * process from before the recording appears with its first event.
 *
 * A process whose threads have all exited stays in the table while it holds anything, so that one
 * thought dead by mistake keeps its blocks. A fork that reuses its pid detaches its space. Others
 * stay until ended_tasks.h removes them.
 */
#ifndef LEAKTOOLS_PARSER_PROCESS_TABLE_H
#define LEAKTOOLS_PARSER_PROCESS_TABLE_H

#include "common/hash.h"
#include "parser/processes/call_pairing.h"
#include "parser/processes/heap_anomalies.h"
#include "parser/processes/heap_space.h"
#include "parser/processes/open_syscalls.h"
#include "parser/processes/release_chain.h"

#define COMM_SIZE 16 /* TASK_COMM_LEN, with its NUL */

struct process {
	pid_t pid;
	struct heap_space *space; /* NULL: none yet */
	struct thread *threads;	  /* the living ones come first */
	unsigned int nr_threads;  /* known living threads */
	pid_t heap_pid; /* the owner of its memory: itself or, until exec, its vfork parent */
	/* Anomalies to be withdrawn if this process lives on; a chain, or ANOMALY_NONE. */
	size_t doubtful;
	uint64_t born_ns;			 /* its fork or exec; 0: not seen */
	uint64_t ended_ns;			 /* 0: it lives */
	struct process *prev_ended, *next_ended; /* private to process_ends.c */
	UT_hash_handle hh;
};

/*
 * The result of a thread's last event, if that was an allocation function's return. A call that is
 * recorded only at its return (PROBE_CALL) may turn out to be around it.
 */
struct last_return {
	uint64_t sequence; /* 0: there is none */
	uint64_t probe_address, return_address;
	uint64_t address; /* of the new block; 0: it failed */
};

struct resource_thread;

struct thread {
	pid_t tid;
	struct process *process; /* NULL: only the thread's name is known */
	struct thread *prev_of_process, *next_of_process;
	bool alive;
	bool is_new; /* created during the recording, and without an event so far */
	bool is_active;
	struct thread *next_active; /* in process_table.active */
	uint64_t ended_ns;	    /* its exit; 0: not seen */
	/*
	 * True if glibc flushes its cache when it exits. It does not for the thread that runs
	 * main() (2.36: sysdeps/nptl/libc_start_call_main.h), unless that is a fork of one with a
	 * flush.
	 */
	bool flushes_at_exit;
	char comm[COMM_SIZE];
	struct call_stack *calls;	   /* NULL: it has made none */
	struct resource_thread *resources; /* private to resource_calls.c; NULL: it has made none */
	struct mapping_call *mapping_call; /* NULL: it has made none */
	struct descriptor_call descriptor_call;
	struct free_run free_run;
	struct release_chain releases; /* its last ones, if no other event came after */
	struct last_return last_return;
	uint64_t last_allocation; /* the number of its last allocation's event */
	/* Its last return, if that had no entry: its CPU and function. */
	const struct probe_schema *unpaired_return;
	uint64_t unpaired_return_address;
	uint32_t unpaired_return_cpu;
	UT_hash_handle hh;
};

struct process_table {
	uint64_t seed; /* of the hashes */
	struct process *processes;
	struct thread *threads;
	struct thread *last_thread; /* the last one asked for; the next event is often its own */
	struct thread *active;	    /* asked for since process_table_take_active() */
	size_t clear_at;	    /* private to ended_tasks.h */
	struct heap_spaces spaces;
};

/* @table is zeroed. */
void process_table_init(struct process_table *table);
void process_table_deinit(struct process_table *table);

/* Gets the thread @tid of process @pid; adds or revives it if necessary. Returns 0 or -ENOMEM. */
int process_table_thread(struct process_table *table, pid_t pid, pid_t tid, struct thread **ret);

/* Takes a thread out of table->active. NULL: there is none. */
struct thread *process_table_take_active(struct process_table *table);

/* Removes a thread that has ended and is not in table->active. */
void process_table_remove_thread(struct process_table *table, struct thread *thread);

/* Find a known process or thread, or return NULL. */
struct process *process_table_find(const struct process_table *table, pid_t pid);
struct thread *process_table_find_thread(const struct process_table *table, pid_t tid);

/* Opens the heap of @process for a change. Returns 0 or -ENOMEM. */
int process_open_heap(struct process_table *table, struct process *process, struct heap **ret);

/*
 * Adds a process with the first thread @pid, forked by thread @ptid of process @ppid, with a copy
 * of its heap. The thread @pid must not be alive. Returns 0 or -ENOMEM.
 */
int process_table_fork(struct process_table *table, pid_t pid, pid_t ppid, pid_t ptid);

/*
 * Adds the thread @tid of process @pid, created by @ptid; it must not be alive. Returns 0 or
 * -ENOMEM.
 */
int process_table_new_thread(struct process_table *table, pid_t pid, pid_t tid, pid_t ptid);

/*
 * Makes process @child use @parent's address space instead of a copy (vfork). Returns 0 or -ENOMEM.
 */
int process_share_space(struct process_table *table, struct process *child, struct process *parent);

/*
 * @process executes another program in a new address space. If it was the last user of the old one,
 * calls @visit for what ends (heap_space_drop()). *@ret_calls is the number of its threads' open
 * calls. Returns 0, -ENOMEM, or @visit's non-zero value.
 */
int process_exec(struct process_table *table, struct process *process, size_t *ret_calls,
		 int (*visit)(void *context, const struct heap_block *block), void *context);

/* @thread has exited. With its last thread, the process has exited, too. Returns 0 or -ENOMEM. */
int process_table_exit_thread(struct process_table *table, struct thread *thread);

/* Names thread @tid. Return 0 or -ENOMEM. */
int process_table_set_comm(struct process_table *table, pid_t tid, const char *comm);

#endif
