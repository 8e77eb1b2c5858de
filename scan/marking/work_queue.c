/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/marking/work_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void work_queue_init(struct work_queue *queue, unsigned nr_threads)
{
	*queue = (struct work_queue){.nr_threads = nr_threads};
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

void work_queue_leave(struct work_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->nr_threads--;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

void work_queue_stop(struct work_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->is_done = true;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

void work_deinit(struct work *work)
{
	free(work->blocks);
	*work = (struct work){0};
}

/* Gives the oldest blocks, which lead to more than the newest, to those that wait. */
static void give(struct work *work, struct work_queue *queue)
{
	struct work_batch *batch = malloc(sizeof(*batch));

	/* Without memory this thread does the work itself. */
	if (!batch)
		return;
	batch->nr = WORK_BATCH;
	memcpy(batch->blocks, work->blocks, sizeof(batch->blocks));
	memmove(work->blocks, work->blocks + WORK_BATCH,
		(work->nr - WORK_BATCH) * sizeof(*work->blocks));
	work->nr -= WORK_BATCH;
	pthread_mutex_lock(&queue->lock);
	batch->next = queue->batches;
	queue->batches = batch;
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

int work_init(struct work *work)
{
	*work = (struct work){.capacity = 4 * WORK_BATCH};
	work->blocks = calloc(work->capacity, sizeof(*work->blocks));
	return work->blocks ? 0 : -ENOMEM;
}

int work_push(struct work *work, struct work_queue *queue, uint32_t block)
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
	if (work->nr % (2 * WORK_BATCH) == 0 && work->nr < 64 * WORK_BATCH &&
	    atomic_load_explicit(&queue->nr_waiting, memory_order_relaxed))
		give(work, queue);
	return 0;
}

/* Waits for a batch. Returns NULL when all threads wait. */
static struct work_batch *take(struct work_queue *queue)
{
	struct work_batch *batch;

	pthread_mutex_lock(&queue->lock);
	atomic_fetch_add(&queue->nr_waiting, 1);
	while (!queue->batches && !queue->is_done && queue->nr_waiting < queue->nr_threads)
		pthread_cond_wait(&queue->changed, &queue->lock);
	batch = queue->is_done ? NULL : queue->batches;
	if (batch) {
		queue->batches = batch->next;
		atomic_fetch_sub(&queue->nr_waiting, 1);
	} else {
		queue->is_done = true;
		pthread_cond_broadcast(&queue->changed);
	}
	pthread_mutex_unlock(&queue->lock);
	return batch;
}

bool work_pop(struct work *work, struct work_queue *queue, bool waits, uint32_t *ret)
{
	if (!work->nr && waits) {
		struct work_batch *batch = take(queue);

		if (!batch)
			return false;
		memcpy(work->blocks, batch->blocks, batch->nr * sizeof(*batch->blocks));
		work->nr = batch->nr;
		free(batch);
	}
	if (!work->nr)
		return false;
	*ret = work->blocks[--work->nr];
	return true;
}
