/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that wait to be looked through: each thread has a stack of its own and gives a part of it
 * away when others have nothing to do.
 */
#ifndef LEAKTOOLS_SCAN_WORK_QUEUE_H
#define LEAKTOOLS_SCAN_WORK_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORK_BATCH 256

struct work_batch {
	struct work_batch *next;
	uint32_t nr;
	uint32_t blocks[WORK_BATCH];
};

/* What the threads share. */
struct work_queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct work_batch *batches;
	unsigned nr_threads;
	_Atomic unsigned nr_waiting;
	bool is_done;
};

/* One thread's. */
struct work {
	uint32_t *blocks;
	size_t nr, capacity;
};

void work_queue_init(struct work_queue *queue, unsigned nr_threads);
void work_queue_deinit(struct work_queue *queue);

/* One of the threads never comes. */
void work_queue_leave(struct work_queue *queue);

/* Wakes everybody: there is no more work. */
void work_queue_stop(struct work_queue *queue);

/* Returns 0 or -ENOMEM. Release with work_deinit() in either case. */
int work_init(struct work *work);
void work_deinit(struct work *work);

/* Returns 0 or -ENOMEM. */
int work_push(struct work *work, struct work_queue *queue, uint32_t block);

/*
 * Takes a block. If this thread has none left, returns false; with @waits, waits for others' blocks
 * first, until all threads wait.
 */
bool work_pop(struct work *work, struct work_queue *queue, bool waits, uint32_t *ret);

#endif
