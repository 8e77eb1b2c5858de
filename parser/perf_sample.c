/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perf_sample.h"

#include "parser/perf_formats.h"

#include <errno.h>
#include <string.h>

/* Linux 6.8 and 6.18 (uapi/linux/perf_event.h); older headers lack them. */
#define BRANCH_HW_INDEX	 (1ULL << 17)
#define BRANCH_COUNTERS	 (1ULL << 19)
#define FORMAT_LOST	 (1ULL << 4)
#define BRANCH_ENTRY_U64 3 /* struct perf_branch_entry */

/* The words of a sample that are not decoded yet. */
struct cursor {
	uint64_t *words;
	size_t left;
};

static bool take(struct cursor *cursor, uint64_t *ret)
{
	if (cursor->left == 0)
		return false;
	*ret = *cursor->words++;
	cursor->left--;
	return true;
}

static bool take_if(bool present, struct cursor *cursor, uint64_t *ret)
{
	return !present || take(cursor, ret);
}

static bool skip(struct cursor *cursor, uint64_t nr, uint64_t words_each)
{
	if (words_each && nr > cursor->left / words_each)
		return false;
	cursor->words += nr * words_each;
	cursor->left -= nr * words_each;
	return true;
}

static bool skip_read(struct cursor *cursor, uint64_t read_format)
{
	uint64_t words_each = 1 + !!(read_format & PERF_FORMAT_ID) + !!(read_format & FORMAT_LOST);
	uint64_t nr = 1, times = !!(read_format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
				 !!(read_format & PERF_FORMAT_TOTAL_TIME_RUNNING);

	if ((read_format & PERF_FORMAT_GROUP) && !take(cursor, &nr))
		return false;
	return skip(cursor, times, 1) && skip(cursor, nr, words_each);
}

/* Moves the user addresses to the front, where the chain began. */
static bool take_callchain(struct cursor *cursor, uint16_t misc, struct perf_sample *sample)
{
	bool in_user = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
	uint64_t nr, *chain;
	size_t nr_kept = 0;

	if (!take(cursor, &nr))
		return false;
	chain = cursor->words;
	if (!skip(cursor, nr, 1))
		return false;
	for (uint64_t i = 0; i < nr; i++) {
		if (chain[i] >= (uint64_t)PERF_CONTEXT_MAX)
			in_user = chain[i] == (uint64_t)PERF_CONTEXT_USER;
		else if (in_user)
			chain[nr_kept++] = chain[i];
	}
	sample->callchain = chain;
	sample->nr_callchain = nr_kept;
	return true;
}

/* The kernel pads raw data, together with its size word, to 8 bytes. */
static bool take_raw(struct cursor *cursor, const uint8_t **ret, size_t *ret_bytes)
{
	uint32_t size_bytes;

	if (cursor->left == 0)
		return false;
	memcpy(&size_bytes, cursor->words, sizeof(size_bytes));
	*ret = (const uint8_t *)cursor->words + sizeof(size_bytes);
	*ret_bytes = size_bytes;
	if ((size_bytes + sizeof(size_bytes)) % sizeof(uint64_t) != 0)
		return false;
	return skip(cursor, (size_bytes + sizeof(size_bytes)) / sizeof(uint64_t), 1);
}

static bool skip_branch_stack(struct cursor *cursor, uint64_t branch_sample_type)
{
	uint64_t nr, hw_index;

	return take(cursor, &nr) &&
	       take_if(branch_sample_type & BRANCH_HW_INDEX, cursor, &hw_index) &&
	       skip(cursor, nr, BRANCH_ENTRY_U64) &&
	       (!(branch_sample_type & BRANCH_COUNTERS) || skip(cursor, nr, 1));
}

static bool take_user_regs(struct cursor *cursor, uint64_t regs_mask, struct stack_dump *dump)
{
	dump->regs_mask = regs_mask;
	if (!take(cursor, &dump->regs_abi))
		return false;
	dump->regs = cursor->words;
	return dump->regs_abi == PERF_SAMPLE_REGS_ABI_NONE ||
	       skip(cursor, (uint64_t)__builtin_popcountll(regs_mask), 1);
}

static bool take_user_stack(struct cursor *cursor, struct stack_dump *dump)
{
	uint64_t size_bytes, used_bytes;

	if (!take(cursor, &size_bytes))
		return false;
	if (size_bytes == 0)
		return true;
	dump->bytes = (const uint8_t *)cursor->words;
	if (size_bytes % sizeof(uint64_t) != 0 || !skip(cursor, size_bytes / sizeof(uint64_t), 1) ||
	    !take(cursor, &used_bytes))
		return false;
	dump->nr_bytes = used_bytes < size_bytes ? used_bytes : size_bytes;
	return true;
}

/* The fields of one word each, in their order in the record. */
static bool take_words(struct cursor *cursor, uint64_t type, struct perf_sample *sample)
{
	uint64_t tid_pid = UINT64_MAX, cpu = 0, unused;

	if (!take_if(type & PERF_SAMPLE_IDENTIFIER, cursor, &unused) ||
	    !take_if(type & PERF_SAMPLE_IP, cursor, &sample->ip) ||
	    !take_if(type & PERF_SAMPLE_TID, cursor, &tid_pid) ||
	    !take_if(type & PERF_SAMPLE_TIME, cursor, &sample->origin.time_ns) ||
	    !take_if(type & PERF_SAMPLE_ADDR, cursor, &unused) ||
	    !take_if(type & PERF_SAMPLE_ID, cursor, &unused) ||
	    !take_if(type & PERF_SAMPLE_STREAM_ID, cursor, &unused) ||
	    !take_if(type & PERF_SAMPLE_CPU, cursor, &cpu) ||
	    !take_if(type & PERF_SAMPLE_PERIOD, cursor, &unused))
		return false;
	/* Pairs of u32: the pid and the cpu come first. */
	uint32_t pair[2];

	memcpy(pair, &tid_pid, sizeof(pair));
	sample->origin.pid = (pid_t)pair[0];
	sample->origin.tid = (pid_t)pair[1];
	memcpy(pair, &cpu, sizeof(pair));
	sample->origin.cpu = pair[0];
	return true;
}

/* Most events lack most fields: *@ret is then left as it is, 0. */
static bool read_field(const struct perf_field *field, const uint8_t *raw, size_t raw_bytes,
		       uint64_t *ret)
{
	return field->size_bytes == 0 || perf_field_read(field, raw, raw_bytes, ret);
}

static bool read_probe(const struct perf_event *event, const uint8_t *raw, size_t raw_bytes,
		       struct perf_sample *sample)
{
	const struct perf_event_fields *fields = &event->fields;
	const struct probe_schema *schema = event->desc.schema;

	for (int i = 0; i < schema->nr_args; i++)
		if (!read_field(&fields->args[i], raw, raw_bytes, &sample->args[i]))
			return false;
	if (!read_field(&fields->ret, raw, raw_bytes, &sample->ret) ||
	    !read_field(&fields->block, raw, raw_bytes, &sample->block) ||
	    !read_field(&fields->caller, raw, raw_bytes, &sample->caller) ||
	    !read_field(&fields->probe_address, raw, raw_bytes, &sample->probe_address) ||
	    !read_field(&fields->return_address, raw, raw_bytes, &sample->return_address))
		return false;
	/* An int in a 64-bit register: the ABI leaves the upper half undefined. */
	if (schema->effect == HEAP_ALLOC_TO_PTR && probe_point_is_return(event->desc.point))
		sample->ret = (uint32_t)sample->ret;
	return true;
}

static bool read_newtask(const struct perf_event *event, const uint8_t *raw, size_t raw_bytes,
			 struct perf_sample *sample)
{
	uint64_t pid;

	if (!perf_field_read(&event->fields.newtask_pid, raw, raw_bytes, &pid) ||
	    !perf_field_read(&event->fields.newtask_clone_flags, raw, raw_bytes,
			     &sample->newtask_clone_flags))
		return false;
	sample->newtask_pid = (pid_t)pid;
	return true;
}

int perf_sample_decode(const struct perf_event *event, const struct perf_record *record,
		       struct perf_sample *ret)
{
	const struct perf_event_attr *attr = &event->desc.attr;
	uint64_t type = attr->sample_type;
	struct cursor cursor = {
		.words = (uint64_t *)(void *)(record->bytes + sizeof(record->header)),
		.left = (record->header.size - sizeof(record->header)) / sizeof(uint64_t),
	};
	const uint8_t *raw = NULL;
	size_t raw_bytes = 0;

	*ret = (struct perf_sample){.event = &event->desc};
	if (!take_words(&cursor, type, ret) ||
	    ((type & PERF_SAMPLE_READ) && !skip_read(&cursor, attr->read_format)) ||
	    ((type & PERF_SAMPLE_CALLCHAIN) &&
	     !take_callchain(&cursor, record->header.misc, ret)) ||
	    ((type & PERF_SAMPLE_RAW) && !take_raw(&cursor, &raw, &raw_bytes)) ||
	    ((type & PERF_SAMPLE_BRANCH_STACK) &&
	     !skip_branch_stack(&cursor, attr->branch_sample_type)) ||
	    ((type & PERF_SAMPLE_REGS_USER) &&
	     !take_user_regs(&cursor, attr->sample_regs_user, &ret->dump)) ||
	    ((type & PERF_SAMPLE_STACK_USER) && !take_user_stack(&cursor, &ret->dump)))
		return -EINVAL;
	/* What may follow (weights, data sources, the interrupted registers, ...) has no use here.
	 */
	ret->has_dump =
		(type & PERF_SAMPLE_STACK_USER) && ret->dump.regs_abi != PERF_SAMPLE_REGS_ABI_NONE;
	if (event->desc.schema && !read_probe(event, raw, raw_bytes, ret))
		return -EINVAL;
	if (event->desc.is_newtask && !read_newtask(event, raw, raw_bytes, ret))
		return -EINVAL;
	return 0;
}
