/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/records/perf_sample.h"

#include "common/schema/reach_class.h"
#include "parser/records/perf_formats.h"

#include <errno.h>
#include <string.h>

/* Linux 6.8 and 6.18 (uapi/linux/perf_event.h). Older headers lack them. */
#define BRANCH_HW_INDEX	 (1ULL << 17)
#define BRANCH_COUNTERS	 (1ULL << 19)
#define FORMAT_LOST	 (1ULL << 4)
#define BRANCH_ENTRY_U64 3 /* struct perf_branch_entry */

/* The words of a sample that are still to be decoded. */
struct cursor {
	uint64_t *words;
	size_t left;
};

static bool read_word(struct cursor *cursor, uint64_t *ret)
{
	if (cursor->left == 0)
		return false;
	*ret = *cursor->words++;
	cursor->left--;
	return true;
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

	if ((read_format & PERF_FORMAT_GROUP) && !read_word(cursor, &nr))
		return false;
	return skip(cursor, times, 1) && skip(cursor, nr, words_each);
}

/*
 * True if the chain has only the user's marker, as nearly all do. Markers are negative numbers. No
 * machine has user addresses there, but a wrong frame pointer may point anywhere.
 */
static bool is_user_chain(const uint64_t *chain, uint64_t nr)
{
	uint64_t all = 0, i = 1;

	if (nr == 0 || chain[0] != (uint64_t)PERF_CONTEXT_USER)
		return false;
	for (; i + 3 < nr; i += 4)
		all |= chain[i] | chain[i + 1] | chain[i + 2] | chain[i + 3];
	for (; i < nr; i++)
		all |= chain[i];
	if ((int64_t)all >= 0)
		return true;
	for (i = 1; i < nr && chain[i] < (uint64_t)PERF_CONTEXT_MAX; i++)
		;
	return i == nr;
}

/*
 * Finds the user addresses, and moves them to the front if markers are among them. Addresses after
 * a second user marker were interrupted (docs/perf-data.md).
 */
static bool read_callchain(struct cursor *cursor, uint16_t misc, struct perf_sample *sample)
{
	bool in_user = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
	uint64_t nr, kernel = 0, interrupted = 0, *chain;
	size_t nr_kept = 0;

	if (!read_word(cursor, &nr))
		return false;
	chain = cursor->words;
	if (!skip(cursor, nr, 1))
		return false;
	/* The kernel's part comes first. */
	if (nr > 0 && chain[0] == (uint64_t)PERF_CONTEXT_KERNEL)
		while (kernel < nr && chain[kernel] != (uint64_t)PERF_CONTEXT_USER)
			kernel++;
	if (is_user_chain(chain + kernel, nr - kernel)) {
		sample->callchain = chain + kernel + 1;
		sample->nr_callchain = (size_t)(nr - kernel) - 1;
		return true;
	}
	for (uint64_t i = 0; i < nr; i++) {
		if (chain[i] >= (uint64_t)PERF_CONTEXT_MAX) {
			in_user = chain[i] == (uint64_t)PERF_CONTEXT_USER;
			interrupted = in_user && nr_kept ? STACK_INTERRUPTED : 0;
		} else if (in_user) {
			chain[nr_kept++] = chain[i] | interrupted;
			interrupted = 0;
		}
	}
	sample->callchain = chain;
	sample->nr_callchain = nr_kept;
	return true;
}

/* The kernel pads raw data, together with its size word, to 8 bytes. */
static bool read_raw(struct cursor *cursor, const uint8_t **ret, size_t *ret_bytes)
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

	return read_word(cursor, &nr) &&
	       (!(branch_sample_type & BRANCH_HW_INDEX) || read_word(cursor, &hw_index)) &&
	       skip(cursor, nr, BRANCH_ENTRY_U64) &&
	       (!(branch_sample_type & BRANCH_COUNTERS) || skip(cursor, nr, 1));
}

static bool read_user_regs(struct cursor *cursor, uint64_t regs_mask, struct stack_dump *dump)
{
	dump->regs_mask = regs_mask;
	if (!read_word(cursor, &dump->regs_abi))
		return false;
	dump->regs = cursor->words;
	return dump->regs_abi == PERF_SAMPLE_REGS_ABI_NONE ||
	       skip(cursor, (uint64_t)__builtin_popcountll(regs_mask), 1);
}

static bool read_user_stack(struct cursor *cursor, struct stack_dump *dump)
{
	uint64_t size_bytes, used_bytes;

	if (!read_word(cursor, &size_bytes))
		return false;
	if (size_bytes == 0)
		return true;
	dump->bytes = (const uint8_t *)cursor->words;
	if (size_bytes % sizeof(uint64_t) != 0 || !skip(cursor, size_bytes / sizeof(uint64_t), 1) ||
	    !read_word(cursor, &used_bytes))
		return false;
	dump->nr_bytes = used_bytes < size_bytes ? used_bytes : size_bytes;
	return true;
}

/* The word at @place of the record. If @place is 0, there is none: @none. */
static uint64_t word_at(const struct perf_record *record, uint16_t place, uint64_t none)
{
	uint64_t word = none;

	if (place)
		memcpy(&word, record->bytes + place, sizeof(word));
	return word;
}

/* Reads the one-word fields, whose positions are known. */
static void read_words(const struct perf_event *event, const struct perf_record *record,
		       struct perf_sample *sample)
{
	uint64_t task = word_at(record, event->sample.tid, UINT64_MAX);

	sample->ip = word_at(record, event->sample_ip, 0);
	sample->origin = (struct perf_origin){
		.time_ns = word_at(record, event->sample.time, 0),
		.pid = (pid_t)(uint32_t)task,
		.tid = (pid_t)(task >> 32),
		.cpu = (uint32_t)word_at(record, event->sample.cpu, 0),
	};
}

/* Clears all that read_words() does not read. A mark's text stays if the event is not a mark. */
static void clear_sample(const struct perf_event *event, struct perf_sample *ret)
{
	ret->event = &event->desc;
	ret->callchain = NULL;
	ret->nr_callchain = 0;
	ret->whole_chain = ret->has_dump = false;
	ret->dump = (struct stack_dump){0};
	for (size_t i = 0; i < PERF_MAX_ARGS; i++)
		ret->args[i] = 0;
	ret->ret = ret->block = ret->caller = 0;
	ret->probe_address = ret->return_address = ret->inside = 0;
	ret->newtask_pid = 0;
	ret->newtask_clone_flags = 0;
	ret->mark_number = 0;
	ret->mark_text[0] = '\0';
}

static bool read_probe(const struct perf_event *event, const uint8_t *raw, size_t raw_bytes,
		       struct perf_sample *sample)
{
	if (raw_bytes < event->raw_bytes_needed || (!raw && event->nr_copies))
		return false;
	for (uint32_t i = 0; i < event->nr_copies; i++) {
		const struct perf_field_copy *copy = &event->copies[i];
		uint64_t value;

		if (copy->field.size_bytes == sizeof(value))
			memcpy(&value, raw + copy->field.offset, sizeof(value));
		else
			value = perf_field_load(&copy->field, raw);
		memcpy((uint8_t *)sample + copy->to, &value, sizeof(value));
	}
	if (event->desc.point == PROBE_EXIT && event->desc.schema)
		sample->probe_address -= sample->args[0];
	/* An int in a 64-bit register: the ABI leaves the upper half undefined. */
	if (event->desc.schema && event->desc.schema->effect == HEAP_ALLOC_TO_PTR &&
	    probe_point_is_return(event->desc.point))
		sample->ret = (uint32_t)sample->ret;
	return true;
}

/* A longer text is cut. */
static bool read_mark_text(const struct perf_event *event, const uint8_t *raw, size_t raw_bytes,
			   struct perf_sample *sample)
{
	size_t max = event->desc.is_holder ? HOLDER_TEXT_BYTES : PROBE_TEXT_BYTES, at, len;
	uint64_t place;

	if (!perf_field_read(&event->fields.mark_text, raw, raw_bytes, &place))
		return false;
	/* perf record on leakprobe's probes: only the address is known. */
	if (event->fields.mark_text.size_bytes == sizeof(place)) {
		snprintf(sample->mark_text, max, PROBE_UNREAD_TEXT, place);
		return true;
	}
	at = place & 0xffff;
	len = place >> 16 & 0xffff;
	if (at > raw_bytes || len > raw_bytes - at)
		return false;
	snprintf(sample->mark_text, max, "%.*s", (int)len, (const char *)raw + at);
	return true;
}

static bool read_held(const struct perf_event *event, const uint8_t *raw, size_t raw_bytes,
		      struct perf_sample *sample)
{
	uint64_t at;

	if (!read_mark_text(event, raw, raw_bytes, sample) ||
	    !perf_field_read(&event->fields.mark_number, raw, raw_bytes, &sample->mark_number) ||
	    !perf_field_read(&event->fields.args[0], raw, raw_bytes, &at) || at > raw_bytes ||
	    sample->mark_number > (raw_bytes - at) / (HELD_NR_VALUES * sizeof(uint64_t)))
		return false;
	sample->held = raw + at;
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

/*
 * Reads what follows the raw data, up to the fields that no caller needs (weights, ...). It gets
 * its own cursor, so that the caller's can stay in registers.
 */
static __attribute__((noinline)) bool read_rest(const struct perf_event *event,
						struct cursor cursor, struct perf_sample *sample)
{
	const struct perf_event_attr *attr = &event->desc.attr;
	uint64_t type = attr->sample_type;

	if (((type & PERF_SAMPLE_BRANCH_STACK) &&
	     !skip_branch_stack(&cursor, attr->branch_sample_type)) ||
	    ((type & PERF_SAMPLE_REGS_USER) &&
	     !read_user_regs(&cursor, attr->sample_regs_user, &sample->dump)) ||
	    ((type & PERF_SAMPLE_STACK_USER) && !read_user_stack(&cursor, &sample->dump)))
		return false;
	sample->has_dump = (type & PERF_SAMPLE_STACK_USER) &&
			   sample->dump.regs_abi != PERF_SAMPLE_REGS_ABI_NONE;
	return true;
}

/* Reads the fields of other events than operations. */
static __attribute__((noinline)) bool read_others(const struct perf_event *event,
						  const uint8_t *raw, size_t raw_bytes,
						  struct perf_sample *sample)
{
	size_t nr_values = 0;

	if (event->desc.is_newtask && !read_newtask(event, raw, raw_bytes, sample))
		return false;
	if (event->desc.is_probe_mark)
		return read_mark_text(event, raw, raw_bytes, sample);
	if (event->desc.is_holder && !read_mark_text(event, raw, raw_bytes, sample))
		return false;
	if (event->desc.is_memory)
		nr_values = MEMORY_NR_VALUES;
	else if (event->desc.is_reach)
		nr_values = REACH_NR_VALUES;
	else if (event->desc.is_look)
		nr_values = LOOK_NR_VALUES;
	else if (event->desc.is_calls)
		nr_values = CALLS_NR_VALUES;
	else if (event->desc.is_segment)
		nr_values = SEGMENT_NR_VALUES;
	else if (event->desc.is_window)
		nr_values = WINDOW_NR_VALUES;
	for (size_t i = 0; i < nr_values; i++)
		if (!perf_field_read(&event->fields.args[i], raw, raw_bytes, &sample->args[i]))
			return false;
	if (event->desc.is_held)
		return read_held(event, raw, raw_bytes, sample);
	return !event->desc.is_mark ||
	       perf_field_read(&event->fields.mark_number, raw, raw_bytes, &sample->mark_number);
}

int perf_sample_decode(const struct perf_event *event, const struct perf_record *record,
		       struct perf_sample *ret)
{
	uint64_t type = event->desc.attr.sample_type;
	struct cursor cursor;
	const uint8_t *raw = NULL;
	size_t raw_bytes = 0;

	clear_sample(event, ret);
	if (record->header.size < event->sample_words_bytes)
		return -EINVAL;
	read_words(event, record, ret);
	cursor.words = (uint64_t *)(void *)(record->bytes + event->sample_words_bytes);
	cursor.left = (record->header.size - event->sample_words_bytes) / sizeof(uint64_t);
	if (((type & PERF_SAMPLE_READ) && !skip_read(&cursor, event->desc.attr.read_format)) ||
	    ((type & PERF_SAMPLE_CALLCHAIN) &&
	     !read_callchain(&cursor, record->header.misc, ret)) ||
	    ((type & PERF_SAMPLE_RAW) && !read_raw(&cursor, &raw, &raw_bytes)) ||
	    (!event->is_plain && !read_rest(event, cursor, ret)) ||
	    (perf_event_is_operation(&event->desc) && !read_probe(event, raw, raw_bytes, ret)) ||
	    (!event->is_plain && !read_others(event, raw, raw_bytes, ret)))
		return -EINVAL;
	return 0;
}

bool perf_sample_peek_block(const struct perf_event *event, const struct perf_record *record,
			    uint64_t *ret)
{
	uint64_t type = event->desc.attr.sample_type, nr;
	size_t size_bytes = record->header.size, at = event->sample_words_bytes;

	if (event->block.size_bytes == 0 || record->header.type != PERF_RECORD_SAMPLE ||
	    (type & PERF_SAMPLE_READ) || !(type & PERF_SAMPLE_RAW))
		return false;
	if (type & PERF_SAMPLE_CALLCHAIN) {
		if (at + sizeof(nr) > size_bytes)
			return false;
		memcpy(&nr, record->bytes + at, sizeof(nr));
		if (nr > size_bytes / sizeof(nr))
			return false;
		at += (1 + nr) * sizeof(nr);
	}
	at += sizeof(uint32_t) + event->block.offset;
	if (at + sizeof(*ret) > size_bytes)
		return false;
	memcpy(ret, record->bytes + at, sizeof(*ret));
	return true;
}
