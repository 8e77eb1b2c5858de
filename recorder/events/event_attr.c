/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/event_attr.h"

#include "common/schema/resource_schema.h"
#include "common/scope.h"
#include "recorder/events/sample_format.h"

#include <sys/syscall.h>
#include <time.h>

/* An event that counts nothing. Opening one shows whether the kernel knows an attribute. */
#define DUMMY_ATTR                                                                                 \
	{                                                                                          \
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(struct perf_event_attr),                \
		.config = PERF_COUNT_SW_DUMMY, .disabled = 1, .exclude_kernel = 1                  \
	}

static bool kernel_takes(struct perf_event_attr *attr)
{
	_cleanup_close_ int fd =
		(int)syscall(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd >= 0;
}

/* Linux 6.0 added PERF_FORMAT_LOST. Older kernels refuse an event that has it. */
uint64_t event_attr_read_format(void)
{
	struct perf_event_attr attr = DUMMY_ATTR;

	attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	return kernel_takes(&attr) ? attr.read_format : PERF_FORMAT_ID;
}

/*
 * A context with an inherited event that has PERF_SAMPLE_READ is not swapped (nr_no_switch_fast,
 * kernel/events/core.c). Linux 6.12 is the first to accept such an event, if it has
 * PERF_SAMPLE_TID, too; record_events.c and fork_follow.c then open some. Older kernels swap
 * contexts, which loses events (context_breakers.h).
 */
void event_attr_want_own_context(struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_READ;
}

bool event_attr_contexts_swap(void)
{
	struct perf_event_attr attr = DUMMY_ATTR;

	attr.inherit = 1;
	attr.sample_period = 1;
	attr.sample_type = RECORD_SAMPLE_TYPE;
	attr.read_format = PERF_FORMAT_ID;
	event_attr_want_own_context(&attr);
	return !kernel_takes(&attr);
}

void event_attr_init(struct perf_event_attr *attr, uint64_t format)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.sample_period = 1,
		.sample_type = RECORD_SAMPLE_TYPE,
		.read_format = format,
		.disabled = 1,
		.inherit = 1,
		.sample_id_all = 1,
		/* One clock for all CPUs and for user space. */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

void event_attr_want_stack(struct perf_event_attr *attr, const struct record_config *config)
{
	if (config->call_graph == CALL_GRAPH_NONE)
		return;
	/* perf script unwinds a dump only if the sample has a callchain, which may be empty. */
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	attr->exclude_callchain_kernel = 1;
	if (config->call_graph == CALL_GRAPH_DWARF) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->exclude_callchain_user = 1;
		attr->sample_regs_user = RECORD_REGS_MASK;
		/* The kernel writes the dump, not our programs. */
		attr->sample_stack_user = record_config_dump_bytes(config, false);
	}
}

void event_attr_describe_stack(struct perf_event_attr *attr, const struct record_config *config)
{
	/* A dump without registers is not for the file. */
	bool is_stack = attr->sample_type & PERF_SAMPLE_REGS_USER;

	if (is_stack && !record_config_unwinds(config))
		return;
	event_attr_describe_text(attr);
	if (is_stack)
		attr->exclude_callchain_user = 0;
}

/* A dump ends where a page is not in memory (perf_output_sample_ustack(), Linux 6.1). */
void event_attr_want_text(struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = 1ULL << RECORD_REG_SP;
	attr->sample_stack_user = EVENT_ATTR_TEXT_STACK_BYTES;
	attr->watermark = 0;
	attr->wakeup_events = 1;
}

void event_attr_describe_text(struct perf_event_attr *attr)
{
	attr->sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	attr->sample_regs_user = 0;
	attr->sample_stack_user = 0;
}

/* Like every dump, this one does not wait for a page (see above). */
uint16_t event_attr_want_caller(struct perf_event_attr *attr, const struct probe *probe)
{
	const char *field = strstr(probe->fetch_args, PROBE_FIELD_CALLER "=");
	/* Common fields and __probe_ip come first. Each field has eight bytes. */
	uint16_t offset = 16;

	if (!probe->fetches_caller_at)
		return 0;
	for (const char *at = probe->fetch_args; at < field; at++)
		offset += *at == ' ' ? sizeof(uint64_t) : 0;
	if (!(attr->sample_type & PERF_SAMPLE_STACK_USER)) {
		attr->sample_type |= PERF_SAMPLE_STACK_USER;
		attr->sample_stack_user = sizeof(uint64_t);
	}
	return offset;
}

/*
 * An allocation has its stack at its return: at the entry, a walk by frame pointers misses the
 * caller. A stack costs more than the rest of an event, so a release has only its caller's address
 * without --free-stacks. A resource's call that has no return event has its stack at the entry; one
 * that gives the resource back, only with --free-stacks.
 */
bool event_attr_entry_has_stack(const struct probe *probe, const struct record_config *config)
{
	const struct resource_call *call = resource_call_of(probe->schema);

	if (call)
		return probe->point == PROBE_ENTRY && !call->has_return &&
		       (call->role != RESOURCE_TAKE || config->free_stacks);
	/* It releases a block. posix_memalign()'s argument says where a block will be stored. */
	return config->free_stacks && probe->point == PROBE_ENTRY &&
	       probe->schema->block_arg >= 0 && probe->schema->effect != HEAP_ALLOC_TO_PTR;
}

bool event_attr_syscall_has_stack(const struct syscall_schema *schema, bool is_exit,
				  const struct record_config *config)
{
	return config->call_graph != CALL_GRAPH_NONE &&
	       (is_exit ? schema->gives : schema->takes && config->free_stacks);
}

void event_attr_want_wakeup_at(struct perf_event_attr *attr, uint32_t pages)
{
	attr->watermark = 1;
	attr->wakeup_watermark = pages * (uint32_t)getpagesize();
}

/*
 * The reader has to wake up before backpressure believes three quarters of the ring to be full, and
 * backpressure overestimates a record up to twelve times.
 */
void event_attr_want_wakeup(struct perf_event_attr *attr, const struct record_config *config)
{
	attr->watermark = 1;
	attr->wakeup_watermark = config->ring_pages * (uint32_t)getpagesize() / 32;
}
