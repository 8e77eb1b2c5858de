/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/live_unwinder.h"

#include "common/diag.h"
#include "common/perf_disk.h"
#include "common/scope.h"
#include "recorder/bpf/stack_bases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/mman.h>

/* A record that waits for its time. */
struct waiting {
	uint64_t time_ns;
	uint64_t nr; /* the order of arrival, for records of one time */
	struct perf_event_header *record;
};

#define NR_RECENT_EVENTS 64 /* a power of two */

/* An event that had a sample recently. */
struct recent_event {
	uint64_t id;
	bool has_dump;
};

struct live_unwinder {
	struct stack_store *stacks;
	uint64_t *ids; /* ids of the events whose samples hold dumps, ascending */
	size_t nr_ids;
	struct recent_event recent[NR_RECENT_EVENTS]; /* by the last bits */
	struct waiting *waiting; /* the records from @first to @nr_waiting wait */
	size_t first, nr_waiting, capacity;
	bool sorted;
	uint64_t nr_noted;
	uint64_t nr_dropped;
	unsigned long long *stack_bases; /* the BPF programs' table, or NULL */
	uint32_t max_dump_bytes;
	uint64_t regs_mask;    /* of the registers in a dump */
	size_t nr_regs, sp_at; /* how many they are, and which of them is the stack pointer */
	/* The sample being written: too large for the C stack. */
	uint64_t out[UINT16_MAX / sizeof(uint64_t) + 1];
};

/* Words of a sample before its callchain, by RECORD_SAMPLE_TYPE. */
#define FIXED_WORDS 6

/* A decoded sample that holds a dump. */
struct dumped_sample {
	const uint64_t *raw; /* its size, then its bytes: whole words */
	size_t raw_words;
	struct stack_dump dump;
	bool is_short; /* the dump ends before the size that was asked for */
};

static void set_registers(struct live_unwinder *unwinder, uint64_t mask)
{
	unwinder->regs_mask = mask;
	unwinder->nr_regs = (size_t)__builtin_popcountll(mask);
	unwinder->sp_at = (size_t)__builtin_popcountll(mask & ((1ULL << RECORD_REG_SP) - 1));
}

int live_unwinder_create(struct live_unwinder **ret)
{
	const struct stack_store_options options = {.own_vdso = true, .limit_time = true};
	struct live_unwinder *unwinder = calloc(1, sizeof(*unwinder));
	int err = unwinder ? stack_store_create(&options, &unwinder->stacks) : -ENOMEM;

	if (err) {
		diag_error("cannot set up unwinding: %s", strerror(-err));
		free(unwinder);
		return err;
	}
	set_registers(unwinder, RECORD_REGS_MASK);
	*ret = unwinder;
	return 0;
}

void live_unwinder_destroy(struct live_unwinder *unwinder)
{
	if (!unwinder)
		return;
	for (size_t i = unwinder->first; i < unwinder->nr_waiting; i++)
		free(unwinder->waiting[i].record);
	free(unwinder->waiting);
	free(unwinder->ids);
	stack_store_destroy(unwinder->stacks);
	free(unwinder);
}

const struct stack_unwind_stats *live_unwinder_stats(const struct live_unwinder *unwinder)
{
	return stack_store_unwind_stats(unwinder->stacks);
}

uint64_t live_unwinder_nr_dropped(const struct live_unwinder *unwinder)
{
	return unwinder->nr_dropped;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void live_unwinder_set_stack_bases(struct live_unwinder *unwinder, unsigned long long *stack_bases,
				   uint32_t max_bytes)
{
	unwinder->stack_bases = stack_bases;
	unwinder->max_dump_bytes = max_bytes;
	set_registers(unwinder, RECORD_CALL_REGS_MASK);
}

int live_unwinder_set_events(struct live_unwinder *unwinder, const struct record_events *events)
{
	const struct record_group *group = &events->probes;
	size_t nr = 0;

	for (size_t i = 0; i < group->nr_events; i++)
		nr += group->events[i].has_stack ? group->events[i].nr_ids : 0;
	free(unwinder->ids);
	memset(unwinder->recent, 0, sizeof(unwinder->recent));
	unwinder->nr_ids = 0;
	unwinder->ids = malloc((nr + 1) * sizeof(*unwinder->ids));
	if (!unwinder->ids) {
		diag_error("cannot set up unwinding: out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < group->nr_events; i++) {
		if (!group->events[i].has_stack)
			continue;
		memcpy(unwinder->ids + unwinder->nr_ids, group->events[i].ids,
		       group->events[i].nr_ids * sizeof(*unwinder->ids));
		unwinder->nr_ids += group->events[i].nr_ids;
	}
	qsort(unwinder->ids, unwinder->nr_ids, sizeof(*unwinder->ids), compare_ids);
	return 0;
}

/* --- address spaces --- */

static int apply_mapping(struct live_unwinder *unwinder, const struct perf_event_header *record)
{
	const struct perf_disk_mmap2 *disk = (const void *)record;
	const char *path = (const char *)(disk + 1);
	struct stack_mapping mapping = {.path = path};

	if (!memchr(path, '\0', record->size - sizeof(*disk)))
		return 0;
	mapping.pid = (pid_t)disk->pid;
	mapping.start = disk->address;
	mapping.len = disk->len;
	mapping.file_offset = disk->file_offset;
	if (perf_disk_has_build_id(disk)) {
		mapping.build_id_size = disk->build_id_size;
		memcpy(mapping.build_id, disk->build_id, mapping.build_id_size);
	} else {
		mapping.device = makedev(disk->major, disk->minor);
		mapping.inode = disk->inode;
	}
	return stack_store_map(unwinder->stacks, &mapping);
}

static int apply(struct live_unwinder *unwinder, const struct perf_event_header *record)
{
	const struct perf_disk_task *task = (const void *)record;

	switch (record->type) {
	case PERF_RECORD_MMAP2:
		return apply_mapping(unwinder, record);
	case PERF_RECORD_FORK:
		return stack_store_fork(unwinder->stacks, (pid_t)task->pid, (pid_t)task->ppid);
	case PERF_RECORD_EXIT:
		stack_store_exit(unwinder->stacks, (pid_t)task->pid);
		return 0;
	default:
		stack_store_exec(unwinder->stacks,
				 (pid_t)((const struct perf_disk_comm *)record)->pid);
		return 0;
	}
}

/* True if the record changes an address space. */
static bool is_of_interest(const struct perf_event_header *record)
{
	const struct perf_disk_mmap2 *mapping = (const void *)record;
	const struct perf_disk_task *task = (const void *)record;
	size_t body = record->size - sizeof(struct record_trailer);

	if (record->size < sizeof(struct record_trailer))
		return false;
	switch (record->type) {
	case PERF_RECORD_MMAP2:
		return body > sizeof(*mapping) && (mapping->prot & PROT_EXEC);
	case PERF_RECORD_FORK:
		return body >= sizeof(*task) && task->pid != task->ppid;
	case PERF_RECORD_EXIT:
		return body >= sizeof(*task) && task->pid == task->tid;
	case PERF_RECORD_COMM:
		return body >= sizeof(struct perf_disk_comm) &&
		       (record->misc & PERF_RECORD_MISC_COMM_EXEC);
	default:
		return false;
	}
}

int live_unwinder_note(struct live_unwinder *unwinder, const struct perf_event_header *record)
{
	struct record_trailer trailer;
	struct waiting *entry;

	if (!is_of_interest(record))
		return 0;
	memcpy(&trailer, (const char *)record + record->size - sizeof(trailer), sizeof(trailer));
	if (!trailer.time_ns)
		return apply(unwinder, record);
	if (unwinder->nr_waiting == unwinder->capacity) {
		size_t capacity = unwinder->capacity * 2 + 64;

		entry = reallocarray(unwinder->waiting, capacity, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		unwinder->waiting = entry;
		unwinder->capacity = capacity;
	}
	entry = &unwinder->waiting[unwinder->nr_waiting];
	entry->record = malloc(record->size);
	if (!entry->record)
		return -ENOMEM;
	memcpy(entry->record, record, record->size);
	entry->time_ns = trailer.time_ns;
	entry->nr = unwinder->nr_noted++;
	unwinder->nr_waiting++;
	unwinder->sorted = false;
	return 0;
}

static int compare_times(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->nr < y->nr ? -1 : 1;
}

uint64_t live_unwinder_next_ns(struct live_unwinder *unwinder)
{
	size_t nr = unwinder->nr_waiting - unwinder->first;

	if (!nr)
		return UINT64_MAX;
	if (!unwinder->sorted) {
		memmove(unwinder->waiting, unwinder->waiting + unwinder->first,
			nr * sizeof(*unwinder->waiting));
		unwinder->first = 0;
		unwinder->nr_waiting = nr;
		qsort(unwinder->waiting, nr, sizeof(*unwinder->waiting), compare_times);
		unwinder->sorted = true;
	}
	return unwinder->waiting[unwinder->first].time_ns;
}

int live_unwinder_apply_next(struct live_unwinder *unwinder)
{
	_cleanup_free_ struct perf_event_header *record =
		unwinder->waiting[unwinder->first++].record;

	if (unwinder->first == unwinder->nr_waiting)
		unwinder->first = unwinder->nr_waiting = 0;
	return apply(unwinder, record);
}

/* --- samples --- */

/* Decodes a sample. Returns false if it does not match its event's attribute. */
static bool decode_sample(const struct live_unwinder *unwinder,
			  const struct perf_event_header *record, struct dumped_sample *ret)
{
	const uint64_t *at = (const uint64_t *)record + FIXED_WORDS;
	const uint64_t *end = (const uint64_t *)record + record->size / sizeof(*at);
	uint32_t raw_bytes;

	*ret = (struct dumped_sample){.dump.regs_mask = unwinder->regs_mask};
	if (end - at < 2 || at[0] > (uint64_t)(end - at) - 2)
		return false;
	at += 1 + at[0];
	memcpy(&raw_bytes, at, sizeof(raw_bytes));
	ret->raw = at;
	ret->raw_words = ((size_t)raw_bytes + sizeof(raw_bytes)) / sizeof(*at);
	if (ret->raw_words >= (size_t)(end - at))
		return false;
	at += ret->raw_words;
	ret->dump.regs_abi = *at++;
	if (ret->dump.regs_abi) {
		if ((size_t)(end - at) < unwinder->nr_regs)
			return false;
		ret->dump.regs = at;
		at += unwinder->nr_regs;
	}
	/* A task without a stack has a dump of size 0, with nothing after the size. */
	if (at < end && *at) {
		uint64_t bytes = *at++;

		if (bytes / sizeof(*at) >= (uint64_t)(end - at))
			return false;
		ret->dump.bytes = (const uint8_t *)at;
		ret->dump.nr_bytes = at[bytes / sizeof(*at)];
		if (ret->dump.nr_bytes > bytes)
			ret->dump.nr_bytes = bytes;
		ret->is_short = ret->dump.nr_bytes < bytes;
	}
	return true;
}

/* The size of a dump of a stack whose base is not known yet: enough for most. */
#define USUAL_STACK_BYTES 8192

/*
 * Where the next dump of a stack with its pointer near @sp should end: at the stack's base, or
 * where unwinding failed. After a dump that was too short it is as far as possible, unless the
 * missing bytes are so far away that they may not be part of the stack.
 */
static uint64_t wanted_top(const struct live_unwinder *unwinder, uint64_t sp,
			   const struct stack_end *end)
{
	if (end->is_truncated)
		return end->top - sp <= 2 * (uint64_t)unwinder->max_dump_bytes
			       ? sp + unwinder->max_dump_bytes
			       : sp + USUAL_STACK_BYTES;
	return end->top > sp ? end->top : sp + USUAL_STACK_BYTES;
}

/* Tells the programs where the stack's base is, or that they have dumped too little. */
static void learn_base(struct live_unwinder *unwinder, uint32_t tgid,
		       const struct dumped_sample *sample, const struct stack_end *end)
{
	unsigned long long *slot, hash, entry;
	uint64_t sp, top;

	if (!unwinder->stack_bases || !sample->dump.regs_abi ||
	    (sample->is_short && end->is_truncated))
		return;
	sp = sample->dump.regs[unwinder->sp_at];
	top = wanted_top(unwinder, sp, end);
	if (top >> STACK_BASE_BITS)
		return;
	hash = stack_base_hash(tgid, sp);
	entry = stack_base_entry(hash, top);
	slot = &unwinder->stack_bases[stack_base_index(hash)];
	/* Write only if the entry differs: programs on all CPUs read this cache line. */
	if (__atomic_load_n(slot, __ATOMIC_RELAXED) != entry)
		__atomic_store_n(slot, entry, __ATOMIC_RELAXED);
}

/* Writes @addresses to @out, with a mark before interrupted frames. Returns the end. */
static uint64_t *put_addresses(uint64_t *out, const uint64_t *addresses, size_t nr,
			       const struct stack_end *end)
{
	if (!end->nr_interrupted) {
		memcpy(out, addresses, nr * sizeof(*out));
		return out + nr;
	}
	for (size_t i = 0; i < nr; i++) {
		if (addresses[i] & STACK_INTERRUPTED)
			*out++ = (uint64_t)PERF_CONTEXT_USER;
		*out++ = addresses[i] & ~STACK_INTERRUPTED;
	}
	return out;
}

static int write_chain(struct live_unwinder *unwinder, const struct perf_event_header *record,
		       const struct dumped_sample *sample, const uint64_t *addresses, size_t nr,
		       const struct stack_end *end, struct perf_writer *writer)
{
	/*
	 * What @out has to hold besides: the chain's length, PERF_CONTEXT_USER, the mark at the
	 * chain's end, and the one before interrupted frames.
	 */
	const size_t max = UINT16_MAX / sizeof(uint64_t) - FIXED_WORDS - 3 - end->nr_interrupted;
	uint64_t *out = unwinder->out, *length,
		 mark = end->is_elsewhere   ? STACK_ELSEWHERE
			: end->is_truncated ? STACK_TRUNCATED
					    : STACK_INCOMPLETE;
	bool is_whole = end->is_whole && !end->is_elsewhere;
	size_t size;

	if (sample->raw_words + nr > max) {
		nr = max - sample->raw_words;
		is_whole = false;
		mark = STACK_TRUNCATED;
	}
	memcpy(out, record, FIXED_WORDS * sizeof(*out));
	out += FIXED_WORDS;
	length = out++;
	if (nr) {
		*out++ = (uint64_t)PERF_CONTEXT_USER;
		out = put_addresses(out, addresses, nr, end);
		if (!is_whole)
			*out++ = mark;
	}
	*length = (uint64_t)(out - length) - 1;
	memcpy(out, sample->raw, sample->raw_words * sizeof(*out));
	out += sample->raw_words;
	size = (size_t)(out - unwinder->out) * sizeof(*out);
	((struct perf_event_header *)unwinder->out)->size = (uint16_t)size;
	return perf_writer_add_sample(writer, (const struct perf_event_header *)unwinder->out);
}

static bool has_dump(struct live_unwinder *unwinder, const struct perf_event_header *record)
{
	const uint64_t *words = (const uint64_t *)record;
	struct recent_event *recent;
	uint64_t id;

	if (record->type != PERF_RECORD_SAMPLE || record->size < FIXED_WORDS * sizeof(*words))
		return false;
	id = words[1];
	recent = &unwinder->recent[id & (NR_RECENT_EVENTS - 1)];
	if (recent->id != id)
		*recent = (struct recent_event){
			.id = id,
			.has_dump = bsearch(&id, unwinder->ids, unwinder->nr_ids, sizeof(id),
					    compare_ids),
		};
	return recent->has_dump;
}

int live_unwinder_write(struct live_unwinder *unwinder, const struct perf_event_header *record,
			struct perf_writer *writer, const struct perf_event_header **ret)
{
	const uint32_t *words = (const uint32_t *)record;
	struct dumped_sample sample;
	const uint64_t *addresses;
	struct stack_end end;
	size_t nr = 0;
	int err;

	*ret = record;
	if (!has_dump(unwinder, record))
		return perf_writer_add_sample(writer, record);
	/* Drop it: a sample that does not match its event's attribute makes the file unreadable. */
	if (!decode_sample(unwinder, record, &sample)) {
		unwinder->nr_dropped++;
		*ret = NULL;
		return 0;
	}
	/* The process id follows the identifier and the instruction. */
	err = stack_store_unwind_dump(unwinder->stacks, (pid_t)words[6], &sample.dump, &addresses,
				      &nr, &end);
	if (err) {
		diag_error("cannot unwind: %s", strerror(-err));
		return err;
	}
	learn_base(unwinder, words[6], &sample, &end);
	*ret = (const void *)unwinder->out;
	return write_chain(unwinder, record, &sample, addresses, nr, &end, writer);
}
