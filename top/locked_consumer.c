/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/locked_consumer.h"

#define _cleanup_leave_ __attribute__((cleanup(leave)))

static struct locked_consumer *enter(void *context)
{
	struct locked_consumer *locked = context;

	pthread_mutex_lock(&locked->mutex);
	while (__atomic_load_n(&locked->is_wanted, __ATOMIC_RELAXED))
		pthread_cond_wait(&locked->unwanted, &locked->mutex);
	return locked;
}

static void leave(struct locked_consumer **locked)
{
	pthread_mutex_unlock(&(*locked)->mutex);
}

void locked_consumer_acquire(struct locked_consumer *locked)
{
	__atomic_store_n(&locked->is_wanted, true, __ATOMIC_RELAXED);
	pthread_mutex_lock(&locked->mutex);
}

void locked_consumer_release(struct locked_consumer *locked)
{
	__atomic_store_n(&locked->is_wanted, false, __ATOMIC_RELAXED);
	pthread_cond_signal(&locked->unwanted);
	pthread_mutex_unlock(&locked->mutex);
}

static int on_sample(void *context, const struct perf_sample *sample)
{
	_cleanup_leave_ struct locked_consumer *locked = enter(context);

	return locked->inner.on_sample(locked->inner.context, sample);
}

static int on_mmap(void *context, const struct perf_mmap_record *record)
{
	_cleanup_leave_ struct locked_consumer *locked = enter(context);

	return locked->inner.on_mmap(locked->inner.context, record);
}

static int on_fork(void *context, const struct perf_task_record *record)
{
	_cleanup_leave_ struct locked_consumer *locked = enter(context);

	return locked->inner.on_fork(locked->inner.context, record);
}

static int on_exit_task(void *context, const struct perf_task_record *record)
{
	_cleanup_leave_ struct locked_consumer *locked = enter(context);

	return locked->inner.on_exit(locked->inner.context, record);
}

static int on_comm(void *context, const struct perf_comm_record *record)
{
	_cleanup_leave_ struct locked_consumer *locked = enter(context);

	return locked->inner.on_comm(locked->inner.context, record);
}

static int on_lost(void *context, const struct perf_lost_record *record)
{
	_cleanup_leave_ struct locked_consumer *locked = enter(context);

	return locked->inner.on_lost(locked->inner.context, record);
}

static int on_build_id(void *context, const char *path, const uint8_t *build_id, uint8_t size)
{
	_cleanup_leave_ struct locked_consumer *locked = enter(context);

	return locked->inner.on_build_id(locked->inner.context, path, build_id, size);
}

struct perf_consumer locked_consumer_init(struct locked_consumer *locked,
					  const struct perf_consumer *inner)
{
	*locked = (struct locked_consumer){
		.inner = *inner,
		.mutex = PTHREAD_MUTEX_INITIALIZER,
		.unwanted = PTHREAD_COND_INITIALIZER,
	};
	return (struct perf_consumer){
		.context = locked,
		.resources = inner->resources,
		.block_prefetch = inner->block_prefetch,
		.on_sample = on_sample,
		.on_mmap = on_mmap,
		.on_fork = on_fork,
		.on_exit = on_exit_task,
		.on_comm = on_comm,
		.on_lost = on_lost,
		.on_build_id = on_build_id,
	};
}
