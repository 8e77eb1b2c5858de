/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The true counts of a program that is recorded: wrappers around the allocator's functions that
 * count what the program itself calls, and truth_print(), which prints them as "truth NAME VALUE"
 * lines:
 *
 *   truth malloc 1000        calls, for each probed function: the entry events of a recording
 *   truth allocations 1010   blocks that came to be held (realloc's new block included)
 *   truth frees 990          held blocks released (realloc's old block included)
 *   truth held_blocks 20, truth held_bytes 61440, truth held_3072 20 (for each size)
 *   truth null_frees, alloc_failed, free_unknown, double_free, still_held, realloc_unknown
 *
 * The wrappers are macros, so that the call is in the calling function, at its line. Nothing here
 * allocates, and output is by write(2): the recorder would see what stdio allocates, but the
 * counters would not. A process's blocks are in a simple table in its own memory, so that fork
 * copies it and exec drops it, like the heap. The counters are in shared memory: they count all
 * processes together.
 *
 * A block counts as held until the process that allocated it frees it or calls exec; a forked child
 * that frees its copy releases a block, but its parent's stays held.
 *
 * With --wait the program prints "ready PID" and reads a line from stdin before the counted part
 * begins; blocks allocated until then are unknown to a recorder that attached meanwhile.
 */
#ifndef LEAKTOOLS_TARGETS_TRUTH_H
#define LEAKTOOLS_TARGETS_TRUTH_H

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRUTH_HELPER	 static __attribute__((unused))
#define TRUTH_NR_BLOCKS	 (1u << 17)   /* distinct addresses a process may use; a power of two */
#define TRUTH_SIZE_LIMIT (1u << 16)   /* held blocks are counted by size below this */
#define TRUTH_STACK_SIZE (256u << 10) /* of a thread */

enum truth_counter {
	TRUTH_MALLOC,
	TRUTH_CALLOC,
	TRUTH_REALLOC,
	TRUTH_ALIGNED_ALLOC,
	TRUTH_MEMALIGN,
	TRUTH_POSIX_MEMALIGN,
	TRUTH_VALLOC,
	TRUTH_PVALLOC,
	TRUTH_FREE,
	TRUTH_ALLOCATIONS,
	TRUTH_FREES,
	TRUTH_FREES_BY_REALLOC, /* of these */
	TRUTH_NULL_FREES,
	TRUTH_ALLOC_FAILED,
	TRUTH_FREE_UNKNOWN,
	TRUTH_DOUBLE_FREE,
	TRUTH_STILL_HELD,
	TRUTH_REALLOC_UNKNOWN,
	TRUTH_HELD_BLOCKS,
	TRUTH_HELD_BYTES,
	TRUTH_THREADS, /* that ended */
	TRUTH_NR_COUNTERS,
};

static const char *const truth_names[TRUTH_NR_COUNTERS] = {
	[TRUTH_MALLOC] = "malloc",
	[TRUTH_CALLOC] = "calloc",
	[TRUTH_REALLOC] = "realloc",
	[TRUTH_ALIGNED_ALLOC] = "aligned_alloc",
	[TRUTH_MEMALIGN] = "memalign",
	[TRUTH_POSIX_MEMALIGN] = "posix_memalign",
	[TRUTH_VALLOC] = "valloc",
	[TRUTH_PVALLOC] = "pvalloc",
	[TRUTH_FREE] = "free",
	[TRUTH_ALLOCATIONS] = "allocations",
	[TRUTH_FREES] = "frees",
	[TRUTH_FREES_BY_REALLOC] = "frees_by_realloc",
	[TRUTH_NULL_FREES] = "null_frees",
	[TRUTH_ALLOC_FAILED] = "alloc_failed",
	[TRUTH_FREE_UNKNOWN] = "free_unknown",
	[TRUTH_DOUBLE_FREE] = "double_free",
	[TRUTH_STILL_HELD] = "still_held",
	[TRUTH_REALLOC_UNKNOWN] = "realloc_unknown",
	[TRUTH_HELD_BLOCKS] = "held_blocks",
	[TRUTH_HELD_BYTES] = "held_bytes",
	[TRUTH_THREADS] = "threads",
};

/* In shared memory, all of it atomic. */
struct truth_shared {
	_Atomic long counters[TRUTH_NR_COUNTERS];
	_Atomic long held_of_size[TRUTH_SIZE_LIMIT];
};

enum truth_block_state { TRUTH_NEVER_USED, TRUTH_HELD, TRUTH_RELEASED };

struct truth_block {
	uintptr_t inverted; /* the address: this table must not hold the blocks (leakscan) */
	size_t size_bytes;
	int generation; /* that of the process that allocated it: see truth_fork() */
	enum truth_block_state state;
	bool counted; /* allocated after truth_begin() */
};

struct truth_state {
	struct truth_shared *shared;
	int shared_fd;
	int generation; /* 0 in the first process, one more in each forked child */
	bool wait;
	bool counting;
	atomic_flag lock; /* of @blocks */
	struct truth_block blocks[TRUTH_NR_BLOCKS];
};

static struct truth_state truth = {.lock = ATOMIC_FLAG_INIT};

/* --- Output --- */

TRUTH_HELPER void truth_die(const char *why)
{
	ssize_t written = write(STDERR_FILENO, why, strlen(why));

	(void)written;
	_exit(99);
}

struct truth_line {
	char text[96];
	size_t len;
};

TRUTH_HELPER void truth_line_char(struct truth_line *line, char c)
{
	if (line->len == sizeof(line->text))
		truth_die("truth.h: line too long\n");
	line->text[line->len++] = c;
}

TRUTH_HELPER void truth_line_text(struct truth_line *line, const char *text)
{
	for (; *text; text++)
		truth_line_char(line, *text);
}

TRUTH_HELPER void truth_line_number(struct truth_line *line, long value)
{
	unsigned long rest = value < 0 ? -(unsigned long)value : (unsigned long)value;
	char digits[24];
	size_t nr_digits = 0;

	do {
		digits[nr_digits++] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (value < 0)
		truth_line_char(line, '-');
	while (nr_digits)
		truth_line_char(line, digits[--nr_digits]);
}

TRUTH_HELPER void truth_line_write(struct truth_line *line)
{
	truth_line_char(line, '\n');
	if (write(STDOUT_FILENO, line->text, line->len) != (ssize_t)line->len)
		truth_die("truth.h: cannot write to stdout\n");
}

/* A further count of the target's own. */
TRUTH_HELPER void truth_tell(const char *name, long value)
{
	struct truth_line line = {.len = 0};

	truth_line_text(&line, "truth ");
	truth_line_text(&line, name);
	truth_line_char(&line, ' ');
	truth_line_number(&line, value);
	truth_line_write(&line);
}

TRUTH_HELPER long truth_get(enum truth_counter counter)
{
	return atomic_load(&truth.shared->counters[counter]);
}

TRUTH_HELPER void truth_print(void)
{
	for (int i = 0; i < TRUTH_NR_COUNTERS; i++)
		truth_tell(truth_names[i], truth_get(i));
	for (size_t size = 0; size < TRUTH_SIZE_LIMIT; size++) {
		long held = atomic_load(&truth.shared->held_of_size[size]);
		struct truth_line line = {.len = 0};

		if (!held)
			continue;
		truth_line_text(&line, "truth held_");
		truth_line_number(&line, (long)size);
		truth_line_char(&line, ' ');
		truth_line_number(&line, held);
		truth_line_write(&line);
	}
}

/* --- Counting --- */

TRUTH_HELPER void truth_count(enum truth_counter counter, long n)
{
	if (truth.counting)
		atomic_fetch_add(&truth.shared->counters[counter], n);
}

TRUTH_HELPER void truth_count_held(size_t size_bytes, long n)
{
	truth_count(TRUTH_HELD_BLOCKS, n);
	truth_count(TRUTH_HELD_BYTES, n * (long)size_bytes);
	if (truth.counting && size_bytes < TRUTH_SIZE_LIMIT)
		atomic_fetch_add(&truth.shared->held_of_size[size_bytes], n);
}

TRUTH_HELPER void truth_lock(void)
{
	while (atomic_flag_test_and_set_explicit(&truth.lock, memory_order_acquire))
		;
}

TRUTH_HELPER void truth_unlock(void)
{
	atomic_flag_clear_explicit(&truth.lock, memory_order_release);
}

/* The slot of @address; with the lock held. */
TRUTH_HELPER struct truth_block *truth_slot(uintptr_t address)
{
	size_t i = (address >> 4) * 0x9e3779b97f4a7c15ull >> 40;

	for (size_t tries = 0; tries < TRUTH_NR_BLOCKS; tries++, i++) {
		struct truth_block *block = &truth.blocks[i & (TRUTH_NR_BLOCKS - 1)];

		if (block->state == TRUTH_NEVER_USED || block->inverted == ~address)
			return block;
	}
	truth_die("truth.h: more blocks than TRUTH_NR_BLOCKS\n");
	return NULL;
}

/* An allocation returned @p. */
TRUTH_HELPER void truth_gained(void *p, size_t size_bytes)
{
	struct truth_block *block;
	struct truth_block before;

	if (!p) {
		truth_count(TRUTH_ALLOC_FAILED, 1);
		return;
	}
	truth_lock();
	block = truth_slot((uintptr_t)p);
	before = *block;
	*block = (struct truth_block){~(uintptr_t)p, size_bytes, truth.generation, TRUTH_HELD,
				      truth.counting};
	truth_unlock();

	truth_count(TRUTH_ALLOCATIONS, 1);
	truth_count_held(size_bytes, 1);
	if (before.state == TRUTH_HELD && before.counted) {
		truth_count(TRUTH_STILL_HELD, 1);
		if (before.generation == truth.generation)
			truth_count_held(before.size_bytes, -1);
	}
}

/*
 * Notes that @p is about to be released. This comes before the call, because right after it another
 * thread may get the address. Returns what @p was.
 */
TRUTH_HELPER struct truth_block truth_lost(void *p)
{
	struct truth_block *block, before;

	truth_lock();
	block = truth_slot((uintptr_t)p);
	before = *block;
	if (block->state == TRUTH_HELD)
		block->state = TRUTH_RELEASED;
	truth_unlock();

	if (before.state == TRUTH_HELD && before.counted) {
		truth_count(TRUTH_FREES, 1);
		if (before.generation == truth.generation)
			truth_count_held(before.size_bytes, -1);
	}
	return before;
}

TRUTH_HELPER void truth_freeing(void *p)
{
	struct truth_block before;

	truth_count(TRUTH_FREE, 1);
	if (!p) {
		truth_count(TRUTH_NULL_FREES, 1);
		return;
	}
	before = truth_lost(p);
	if (before.state == TRUTH_RELEASED)
		truth_count(TRUTH_DOUBLE_FREE, 1);
	else if (before.state == TRUTH_NEVER_USED || !before.counted)
		truth_count(TRUTH_FREE_UNKNOWN, 1);
}

/* The realloc failed after all: undoes truth_lost(). */
TRUTH_HELPER void truth_kept(void *p, const struct truth_block *before)
{
	truth_lock();
	*truth_slot((uintptr_t)p) = *before;
	truth_unlock();
	if (before->counted) {
		truth_count(TRUTH_FREES, -1);
		if (before->generation == truth.generation)
			truth_count_held(before->size_bytes, 1);
	}
}

/*
 * For an alignment that every block has, _mid_memalign() in glibc's malloc/malloc.c (2.36) calls
 * malloc(), and the recorder sees that call. posix_memalign() has refused invalid alignments
 * before.
 */
TRUTH_HELPER void truth_relay(size_t alignment)
{
	if (alignment <= 2 * sizeof(size_t))
		truth_count(TRUTH_MALLOC, 1);
}

/*
 * As glibc does it (malloc/malloc.c, 2.36): for NULL it calls malloc(), which the recorder sees;
 * size 0 frees.
 */
TRUTH_HELPER struct truth_block truth_reallocating(void *old)
{
	truth_count(TRUTH_REALLOC, 1);
	if (old)
		return truth_lost(old);
	truth_count(TRUTH_MALLOC, 1);
	return (struct truth_block){.state = TRUTH_NEVER_USED};
}

TRUTH_HELPER void truth_reallocated(void *old, const struct truth_block *before, void *p,
				    size_t size_bytes)
{
	if (p || size_bytes || !old)
		truth_gained(p, size_bytes);
	if (!p && size_bytes && before->state == TRUTH_HELD)
		truth_kept(old, before);
	else if (old && !(before->state == TRUTH_HELD && before->counted))
		truth_count(TRUTH_REALLOC_UNKNOWN, 1);
	/* For size 0 it calls free(), which the recorder sees. */
	if (old && !p && !size_bytes)
		truth_count(TRUTH_FREE, 1);
	else if (p && before->state == TRUTH_HELD && before->counted)
		truth_count(TRUTH_FREES_BY_REALLOC, 1);
}

/* --- The allocator's functions: macros, so that a call's line is that of its caller --- */

#define t_malloc(size_bytes)                                                                       \
	({                                                                                         \
		size_t t_size = (size_bytes);                                                      \
		void *t_new;                                                                       \
                                                                                                   \
		truth_count(TRUTH_MALLOC, 1);                                                      \
		t_new = malloc(t_size);                                                            \
		truth_gained(t_new, t_size);                                                       \
		t_new;                                                                             \
	})

#define t_calloc(n, size_bytes)                                                                    \
	({                                                                                         \
		size_t t_n = (n), t_size = (size_bytes);                                           \
		void *t_new;                                                                       \
                                                                                                   \
		truth_count(TRUTH_CALLOC, 1);                                                      \
		t_new = calloc(t_n, t_size);                                                       \
		truth_gained(t_new, t_n *t_size);                                                  \
		t_new;                                                                             \
	})

#define t_free(p)                                                                                  \
	({                                                                                         \
		void *t_old = (p);                                                                 \
                                                                                                   \
		truth_freeing(t_old);                                                              \
		free(t_old);                                                                       \
	})

#define t_realloc(old, size_bytes)                                                                 \
	({                                                                                         \
		size_t t_size = (size_bytes);                                                      \
		void *t_old = (old), *t_new;                                                       \
		struct truth_block t_before = truth_reallocating(t_old);                           \
                                                                                                   \
		t_new = realloc(t_old, t_size);                                                    \
		truth_reallocated(t_old, &t_before, t_new, t_size);                                \
		t_new;                                                                             \
	})

#define t_posix_memalign(ret, alignment, size_bytes)                                               \
	({                                                                                         \
		size_t t_alignment = (alignment), t_size = (size_bytes);                           \
		void **t_ret = (ret);                                                              \
		int t_error;                                                                       \
                                                                                                   \
		truth_count(TRUTH_POSIX_MEMALIGN, 1);                                              \
		t_error = posix_memalign(t_ret, t_alignment, t_size);                              \
		if (t_error != EINVAL)                                                             \
			truth_relay(t_alignment);                                                  \
		truth_gained(t_error ? NULL : *t_ret, t_size);                                     \
		t_error;                                                                           \
	})

#define t_aligned(counter, function, alignment, size_bytes)                                        \
	({                                                                                         \
		size_t t_alignment = (alignment), t_size = (size_bytes);                           \
		void *t_new;                                                                       \
                                                                                                   \
		truth_count(counter, 1);                                                           \
		truth_relay(t_alignment);                                                          \
		t_new = function(t_alignment, t_size);                                             \
		truth_gained(t_new, t_size);                                                       \
		t_new;                                                                             \
	})

#define t_aligned_alloc(alignment, size_bytes)                                                     \
	t_aligned(TRUTH_ALIGNED_ALLOC, aligned_alloc, alignment, size_bytes)
#define t_memalign(alignment, size_bytes) t_aligned(TRUTH_MEMALIGN, memalign, alignment, size_bytes)

#define t_page_aligned(counter, function, size_bytes)                                              \
	({                                                                                         \
		size_t t_size = (size_bytes);                                                      \
		void *t_new;                                                                       \
                                                                                                   \
		truth_count(counter, 1);                                                           \
		t_new = function(t_size);                                                          \
		truth_gained(t_new, t_size);                                                       \
		t_new;                                                                             \
	})

#define t_valloc(size_bytes) t_page_aligned(TRUTH_VALLOC, valloc, size_bytes)
#ifdef __GLIBC__
#define t_pvalloc(size_bytes) t_page_aligned(TRUTH_PVALLOC, pvalloc, size_bytes)
#else /* musl has none */
#define t_pvalloc(size_bytes) t_valloc(size_bytes)
#endif

/* --- Processes and threads --- */

/* Call it first in a forked child: its blocks are copies of its parent's. */
TRUTH_HELPER void truth_forked(void)
{
	truth.generation++;
}

/* Call it before exec, which ends this process's own blocks together with its memory. */
TRUTH_HELPER void truth_exec(void)
{
	for (size_t i = 0; i < TRUTH_NR_BLOCKS; i++) {
		const struct truth_block *block = &truth.blocks[i];

		if (block->state == TRUTH_HELD && block->counted &&
		    block->generation == truth.generation)
			truth_count_held(block->size_bytes, -1);
	}
}

struct truth_thread {
	pthread_t id;
	void *stack;
};

/*
 * Starts a thread on a stack of our own. For such a stack pthread_create() allocates one dtv by
 * calloc() and pthread_join() frees it (_dl_allocate_tls() in glibc's elf/dl-tls.c). glibc would
 * cache stacks of its own, with their dtv, for an unknown time. What glibc frees at the thread's
 * exit is not counted.
 */
TRUTH_HELPER void truth_thread_start(struct truth_thread *thread, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;

	thread->stack = mmap(NULL, TRUTH_STACK_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (thread->stack == MAP_FAILED || pthread_attr_init(&attr) ||
	    pthread_attr_setstack(&attr, thread->stack, TRUTH_STACK_SIZE))
		truth_die("truth.h: no stack for a thread\n");
	truth_count(TRUTH_CALLOC, 1);
	truth_count(TRUTH_ALLOCATIONS, 1);
	if (pthread_create(&thread->id, &attr, run, arg))
		truth_die("truth.h: cannot start a thread\n");
	pthread_attr_destroy(&attr);
}

TRUTH_HELPER void truth_thread_join(struct truth_thread *thread)
{
	truth_count(TRUTH_FREE, 1);
	truth_count(TRUTH_FREES, 1);
	truth_count(TRUTH_THREADS, 1);
	if (pthread_join(thread->id, NULL) || munmap(thread->stack, TRUTH_STACK_SIZE))
		truth_die("truth.h: cannot join a thread\n");
}

TRUTH_HELPER void *truth_idle(void *unused)
{
	while (pause() < 0)
		;
	return unused;
}

/* Starts threads that do nothing. */
TRUTH_HELPER void truth_start_idle(long nr)
{
	struct truth_thread thread;

	for (long i = 0; i < nr; i++)
		truth_thread_start(&thread, truth_idle, NULL);
}

/* --- The beginning --- */

TRUTH_HELPER long truth_number(const char *text)
{
	long n = 0;

	for (; *text; text++) {
		if (*text < '0' || *text > '9' || n > 100000000)
			truth_die("truth.h: an argument is no number\n");
		n = n * 10 + (*text - '0');
	}
	return n;
}

/* The value of "NAME VALUE" among the arguments, or @otherwise. */
TRUTH_HELPER long truth_option(int argc, char **argv, const char *name, long otherwise)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return truth_number(argv[i + 1]);
	return otherwise;
}

TRUTH_HELPER bool truth_flag(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return false;
}

/* Call first. --wait: see truth_begin(); --truth-fd N: counters handed on through exec. */
TRUTH_HELPER void truth_init(int argc, char **argv)
{
	bool handed_on = truth_flag(argc, argv, "--truth-fd");

	truth.wait = truth_flag(argc, argv, "--wait");
	truth.shared_fd = handed_on ? (int)truth_option(argc, argv, "--truth-fd", -1)
				    : memfd_create("truth", 0);
	if (truth.shared_fd < 0 || ftruncate(truth.shared_fd, sizeof(struct truth_shared)))
		truth_die("truth.h: no shared memory\n");
	truth.shared = mmap(NULL, sizeof(struct truth_shared), PROT_READ | PROT_WRITE, MAP_SHARED,
			    truth.shared_fd, 0);
	if (truth.shared == MAP_FAILED)
		truth_die("truth.h: no shared memory\n");
	/* A program that does not wait is recorded, and counted, from its first instruction. */
	truth.counting = !truth.wait;
}

/* With --wait, prints "ready PID" and waits for a line on stdin, so that a recorder can attach. */
TRUTH_HELPER void truth_begin(void)
{
	struct truth_line line = {.len = 0};
	char go;

	if (!truth.wait)
		return;
	truth_line_text(&line, "ready ");
	truth_line_number(&line, getpid());
	truth_line_write(&line);
	if (read(STDIN_FILENO, &go, 1) != 1)
		truth_die("truth.h: stdin closed before the line to go on\n");
	truth.counting = true;
}

#endif
