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

#define WORK_BATCH 256u

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
	_Atomic unsigned nr_batches, nr_waiting;
	unsigned nr_threads;
	bool is_done;
};

/* One thread's. */
struct work {
	uint32_t *blocks;
	size_t nr, capacity;
};

void work_queue_init(struct work_queue *queue);
void work_queue_deinit(struct work_queue *queue);

/* Each thread calls this before it has work. */
void work_queue_enter(struct work_queue *queue);

/* Wakes everybody: there is no more work. */
void work_queue_stop(struct work_queue *queue);

/* True if threads wait that nobody has given anything. */
static inline bool work_queue_is_hungry(const struct work_queue *queue)
{
	return atomic_load_explicit(&queue->nr_waiting, memory_order_relaxed) >
	       atomic_load_explicit(&queue->nr_batches, memory_order_relaxed);
}

/* Returns 0 or -ENOMEM. Release with work_deinit() in either case. */
int work_init(struct work *work);
void work_deinit(struct work *work);

/* Returns 0 or -ENOMEM. */
int work_push(struct work *work, uint32_t block);

/* Takes the newest block; false: this thread has none left. */
static inline bool work_pop(struct work *work, uint32_t *ret)
{
	if (!work->nr)
		return false;
	*ret = work->blocks[--work->nr];
	return true;
}

/* Gives up to half of the blocks to threads that wait. */
void work_give(struct work *work, struct work_queue *queue);

/*
 * Waits for others' blocks, if this thread has none left. Returns false when all threads that have
 * entered wait, or the work was stopped.
 */
bool work_wait(struct work *work, struct work_queue *queue);

#endif
