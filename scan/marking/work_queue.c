/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/marking/work_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void work_queue_init(struct work_queue *queue)
{
	*queue = (struct work_queue){0};
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->changed, NULL);
}

void work_queue_deinit(struct work_queue *queue)
{
	while (queue->batches) {
		struct work_batch *batch = queue->batches;

		queue->batches = batch->next;
		free(batch);
	}
	pthread_mutex_destroy(&queue->lock);
	pthread_cond_destroy(&queue->changed);
}

void work_queue_enter(struct work_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->nr_threads++;
	pthread_mutex_unlock(&queue->lock);
}

void work_queue_stop(struct work_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->is_done = true;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

int work_init(struct work *work)
{
	*work = (struct work){.capacity = 4 * (size_t)WORK_BATCH};
	work->blocks = calloc(work->capacity, sizeof(*work->blocks));
	return work->blocks ? 0 : -ENOMEM;
}

void work_deinit(struct work *work)
{
	free(work->blocks);
	*work = (struct work){0};
}

int work_push(struct work *work, uint32_t block)
{
	if (work->nr == work->capacity) {
		size_t capacity = work->capacity * 2;
		uint32_t *grown = reallocarray(work->blocks, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		work->blocks = grown;
		work->capacity = capacity;
	}
	work->blocks[work->nr++] = block;
	return 0;
}

void work_give(struct work *work, struct work_queue *queue)
{
	size_t nr = work->nr / 2 < WORK_BATCH ? work->nr / 2 : WORK_BATCH;
	struct work_batch *batch = nr ? malloc(sizeof(*batch)) : NULL;

	/* Without memory this thread does the work itself. */
	if (!batch)
		return;
	/* The oldest blocks, which lead to more than the newest. */
	batch->nr = (uint32_t)nr;
	memcpy(batch->blocks, work->blocks, nr * sizeof(*work->blocks));
	work->nr -= nr;
	/* The newest take their place: the order does not matter. */
	memmove(work->blocks, work->blocks + work->nr, nr * sizeof(*work->blocks));
	pthread_mutex_lock(&queue->lock);
	batch->next = queue->batches;
	queue->batches = batch;
	atomic_fetch_add_explicit(&queue->nr_batches, 1, memory_order_relaxed);
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

/* Waits for a batch. Returns NULL when all threads wait. */
static struct work_batch *take(struct work_queue *queue)
{
	struct work_batch *batch;

	pthread_mutex_lock(&queue->lock);
	atomic_fetch_add_explicit(&queue->nr_waiting, 1, memory_order_relaxed);
	while (!queue->batches && !queue->is_done && queue->nr_waiting < queue->nr_threads)
		pthread_cond_wait(&queue->changed, &queue->lock);
	batch = queue->is_done ? NULL : queue->batches;
	if (batch) {
		queue->batches = batch->next;
		atomic_fetch_sub_explicit(&queue->nr_batches, 1, memory_order_relaxed);
		atomic_fetch_sub_explicit(&queue->nr_waiting, 1, memory_order_relaxed);
	} else {
		queue->is_done = true;
		pthread_cond_broadcast(&queue->changed);
	}
	pthread_mutex_unlock(&queue->lock);
	return batch;
}

bool work_wait(struct work *work, struct work_queue *queue)
{
	struct work_batch *batch = work->nr ? NULL : take(queue);

	if (!batch)
		return work->nr;
	memcpy(work->blocks, batch->blocks, batch->nr * sizeof(*batch->blocks));
	work->nr = batch->nr;
	free(batch);
	return true;
}
