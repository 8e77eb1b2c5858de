/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process that reads what others own gives up its rights (common/sandbox/unprivileged.h) and asks
 * a broker, a child that keeps them, for the few things that need them. The broker parses nothing.
 * It takes each request for hostile: whoever took over the asking process gets what requests give,
 * and nothing else.
 *
 * A process has at most one broker, as it has one set of rights, so it is known to the whole
 * process: functions that open files ask it if it is there.
 */
#ifndef LEAKTOOLS_COMMON_BROKER_H
#define LEAKTOOLS_COMMON_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define BROKER_MAX_TEXT 8192

enum broker_op {
	BROKER_OPEN_ELF,       /* a program, library or debug file; @text: its path */
	BROKER_OPEN_BELOW,     /* the same below --symfs */
	BROKER_OPEN_JIT_NAMES, /* the perf map file of process @number */
	BROKER_FIND_THREAD,    /* living_thread() of process @number */
	BROKER_FETCH_DEBUG,    /* from a debuginfod server; @text: a build-id in hex, then a name */
	BROKER_OPEN_INPUT,     /* @text: a path that the user gave */
	BROKER_OPEN_TEMPORARY, /* an empty file without a name */
	BROKER_OPEN_OUTPUT,    /* the file of --output */
	BROKER_START_PAGER,    /* what it reads; the answer is 0 if there is none */
	BROKER_FINISH_PAGER,   /* waits until the user leaves it */
	BROKER_START_COMMAND,  /* --on-leak; @fd: its standard input; the answer is its number */
	BROKER_COMMAND_RESULT, /* of command @number: whether it failed */
	BROKER_WAIT_FOR_COMMAND, /* until fewer than @number run, or @until_ns; the answer is 1, 0
				  */
	BROKER_GIVE_TO_GNUPLOT,	 /* @fd: what the next one has as its descriptor @number */
	BROKER_START_GNUPLOT,	 /* @number: enum gnuplot_group; gives its pidfd */
	BROKER_END_GNUPLOT,	 /* ends it, unless it has ended; the answer is its status */
	BROKER_OPEN_REPORTED,	 /* what --on-leak has reported before */
	BROKER_REPLACE_FILE,	 /* --live, --metrics; @number: enum live_file; @fd: its contents */
	BROKER_SIGNAL_RECORDER,	 /* --top; @number: SIGINT or SIGUSR1 */
	BROKER_OPEN_SAVED,	 /* @text: the name of a file in the directory of --save */
	BROKER_NR_OPS,
};

struct broker_request {
	enum broker_op op;
	int64_t number;
	uint64_t until_ns;
	const char *text; /* at most BROKER_MAX_TEXT bytes with its NUL; NULL: "" */
	int fd;		  /* that goes with it; -1: none */
};

/*
 * What the broker does on a request. Returns a number of at least 0, or a negative errno. A
 * descriptor that is to be passed back is stored in *@ret_fd, which is -1 before. @request->fd is
 * closed afterwards.
 */
struct broker_service {
	int (*serve)(void *context, const struct broker_request *request, int *ret_fd);
	void *context;
};

/* Answers requests that come from @socket_fd until it is closed. @services: of each operation. */
void broker_serve(int socket_fd, const struct broker_service services[BROKER_NR_OPS]);

/* From now on this process asks the broker at @socket_fd. Before it has threads. */
void broker_use(int socket_fd);
/*
 * Forks a broker, which this process asks from now on. Before it has threads. Returns the broker's
 * pid; 0 in the broker, which serves *@ret_socket_fd; or a negative errno, reported.
 */
pid_t broker_fork(int *ret_socket_fd);
/* The same, but this process goes on as before: a broker that has another one. */
pid_t broker_fork_other(int *ret_socket_fd);
bool broker_is_used(void);
/* The broker sees the end of its requests. */
void broker_leave(void);

/*
 * Asks, and waits for the answer. Returns what the service returned; -EIO if the broker has ended,
 * which is reported once; -ENAMETOOLONG. *@ret_fd is the descriptor that came with it, which the
 * caller closes, or -1. Threads may ask at the same time.
 */
int broker_ask(const struct broker_request *request, int *ret_fd);

/* Another broker. @who: what a message calls it if it has ended. */
struct broker_other {
	int socket_fd;
	const char *who;
};

/* A service that the other broker @context does, a struct broker_other. */
int broker_relay(void *context, const struct broker_request *request, int *ret_fd);

/*
 * Asks for a file. Returns its descriptor, which the caller closes, or a negative errno. @ret_stat
 * may be NULL.
 */
int broker_open(enum broker_op op, const char *text, struct stat *ret_stat);

#endif
