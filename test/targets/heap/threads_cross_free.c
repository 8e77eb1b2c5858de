// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads in a ring: each allocates blocks, hands them to its neighbour, and frees what it gets.
 * The receiver of every 50th block forgets it.
 *
 * Exact: malloc, calloc, allocations, frees, held_*. The free events are these frees and what glibc
 * frees at the threads' exits.
 */
#include "truth.h"

#define NR_THREADS 4
#define RING_SIZE  64

struct ring {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void *items[RING_SIZE];
	size_t head, tail; /* items [tail, head) are waiting */
};

struct worker {
	struct truth_thread thread;
	struct ring inbox;
	struct ring *neighbour;
	long nr_blocks;
};

static void ring_push(struct ring *ring, void *item)
{
	pthread_mutex_lock(&ring->lock);
	while (ring->head - ring->tail == RING_SIZE)
		pthread_cond_wait(&ring->changed, &ring->lock);
	ring->items[ring->head++ % RING_SIZE] = item;
	pthread_cond_broadcast(&ring->changed);
	pthread_mutex_unlock(&ring->lock);
}

/* Returns NULL if the ring is empty and @wait is false. */
static void *ring_pop(struct ring *ring, bool wait)
{
	void *item = NULL;

	pthread_mutex_lock(&ring->lock);
	while (wait && ring->head == ring->tail)
		pthread_cond_wait(&ring->changed, &ring->lock);
	if (ring->head != ring->tail) {
		item = ring->items[ring->tail++ % RING_SIZE];
		pthread_cond_broadcast(&ring->changed);
	}
	pthread_mutex_unlock(&ring->lock);
	return item;
}

static void free_from_neighbour(void *block, long nth)
{
	if (nth % 50 != 0)
		t_free(block);
}

static void *worker_run(void *arg)
{
	struct worker *worker = arg;
	long received = 0;

	for (long i = 0; i < worker->nr_blocks; i++) {
		void *block;

		/*
		 * Empties the inbox between sends. Otherwise full rings could wait for each other.
		 */
		while ((block = ring_pop(&worker->inbox, false)))
			free_from_neighbour(block, received++);
		if (i % 8 == 0)
			ring_push(worker->neighbour, t_calloc(4, 24 + (size_t)(i % 64) * 8));
		else
			ring_push(worker->neighbour, t_malloc(16 + (size_t)(i % 128) * 24));
	}
	while (received < worker->nr_blocks)
		free_from_neighbour(ring_pop(&worker->inbox, true), received++);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[NR_THREADS];

	truth_init(argc, argv);
	truth_begin();
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_mutex_init(&workers[i].inbox.lock, NULL);
		pthread_cond_init(&workers[i].inbox.changed, NULL);
		workers[i].neighbour = &workers[(i + 1) % NR_THREADS].inbox;
		workers[i].nr_blocks = truth_option(argc, argv, "--blocks", 2000);
	}
	for (int i = 0; i < NR_THREADS; i++)
		truth_thread_start(&workers[i].thread, worker_run, &workers[i]);
	for (int i = 0; i < NR_THREADS; i++)
		truth_thread_join(&workers[i].thread);
	truth_print();
	return 0;
}
