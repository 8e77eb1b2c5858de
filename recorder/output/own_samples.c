/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/own_samples.h"

#include "common/schema/call_counts.h"
#include "common/schema/look_state.h"
#include "common/schema/probe_schema.h"
#include "common/schema/reach_class.h"
#include "common/schema/segment_values.h"
#include "common/scope.h"
#include "recorder/programs/bpf_sites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	const char *first;			   /* a field of 32 bits */
	const char *others[OWN_SAMPLE_MAX_VALUES]; /* of 64 bits; NULL: there is none */
	bool has_text;				   /* in place of the others */
} layouts[OWN_SAMPLE_NR] = {
	[OWN_MARK] = {"mark", "by_signal", {"number"}, false},
	[OWN_DOUBT] = {"doubt", "by_signal", {"number"}, false},
	[OWN_RECORDING] = {"recording", "end", {NULL}, false},
	[OWN_MEMORY] = {"memory", MEMORY_FIELD_TURN, MEMORY_VALUE_NAMES, false},
	[OWN_REACH] = {"reach", REACH_FIELD_CLASS, REACH_VALUE_NAMES, false},
	[OWN_HOLDER] = {"holder", HOLDER_FIELD_NUMBER, {NULL}, true},
	[OWN_WINDOW] = {"window", WINDOW_FIELD_OPEN, {WINDOW_FIELD_PACE}, false},
	[OWN_LOOK] = {"look", LOOK_FIELD_STATE, LOOK_VALUE_NAMES, false},
	[OWN_SEGMENT] = {"segment", SEGMENT_FIELD_NUMBER, SEGMENT_VALUE_NAMES, false},
	[OWN_HELD] = {"held", HELD_FIELD_NUMBER, {NULL}, false},
	[OWN_CALLS] = {"calls", CALLS_FIELD_NUMBER, CALLS_VALUE_NAMES, false},
	[OWN_UNSEEN] = {"unseen", HOLDER_FIELD_NUMBER, {NULL}, true},
};

/* The layout of perf_event_open(2) for RECORD_SAMPLE_TYPE, with the raw data of the format. */
struct own_record {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint32_t raw_bytes; /* the size of what follows */
	uint16_t common_type;
	uint8_t common_flags, common_preempt_count;
	int32_t common_pid;
	uint32_t first;
	union {
		uint64_t values[OWN_SAMPLE_MAX_VALUES];
		struct {
			uint32_t text_place; /* its size << 16, and its offset in the raw data */
			char text[HOLDER_TEXT_BYTES + 4];
		};
	};
};

_Static_assert(offsetof(struct own_record, values) == 64 &&
		       offsetof(struct own_record, text) == 68 && sizeof(struct own_record) == 200,
	       "no padding");

static const char common_fields[] =
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/* Ids and types just below those of events that BPF programs write. */
static uint64_t id_of(enum own_sample kind)
{
	return BPF_FIRST_ID - 1 - kind;
}

static uint16_t type_of(enum own_sample kind)
{
	return (uint16_t)(BPF_FIRST_TYPE - 1 - kind);
}

static size_t nr_values(enum own_sample kind)
{
	size_t nr = 0;

	while (nr < OWN_SAMPLE_MAX_VALUES && layouts[kind].others[nr])
		nr++;
	return nr;
}

/* The event's format, as tracefs would show it; the caller frees it. NULL: out of memory. */
static char *make_format(enum own_sample kind)
{
	const char *const *others = layouts[kind].others;
	size_t nr = nr_values(kind), size;
	_cleanup_free_ char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "name: %s\nID: %d\nformat:\n%s", layouts[kind].name, type_of(kind),
		common_fields);
	fprintf(out, "\tfield:unsigned int %s;\toffset:8;\tsize:4;\tsigned:0;\n",
		layouts[kind].first);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "\tfield:u64 %s;\toffset:%zu;\tsize:8;\tsigned:0;\n", others[i],
			12 + 8 * i);
	if (layouts[kind].has_text)
		fputs("\tfield:__data_loc char[] " PROBE_FIELD_TEXT
		      ";\toffset:12;\tsize:4;\tsigned:1;\n",
		      out);
	fputs("\nprint fmt: \"", out);
	if (layouts[kind].has_text)
		fputs(PROBE_FIELD_TEXT "=%s ", out);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "%s=%%Lu ", others[i]);
	fprintf(out, "%s=%%u\"", layouts[kind].first);
	if (layouts[kind].has_text)
		fputs(", __get_str(" PROBE_FIELD_TEXT ")", out);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, ", REC->%s", others[i]);
	fprintf(out, ", REC->%s\n", layouts[kind].first);
	return fclose(out) == 0 ? steal_ptr(text) : NULL;
}

/* What follows the first field in OWN_HELD. The blocks come last. */
struct held_fields {
	uint32_t text_place; /* its size << 16, and its offset in the raw data */
	uint32_t blocks_at;  /* their offset in the raw data */
	char function[HELD_FUNCTION_BYTES];
};

static char *make_held_format(void)
{
	char *text;

	if (asprintf(&text,
		     "name: held\nID: %d\nformat:\n%s"
		     "\tfield:unsigned int " HELD_FIELD_NUMBER ";\toffset:8;\tsize:4;\tsigned:0;\n"
		     "\tfield:__data_loc char[] " PROBE_FIELD_TEXT
		     ";\toffset:12;\tsize:4;\tsigned:1;\n"
		     "\tfield:unsigned int " HELD_FIELD_AT ";\toffset:16;\tsize:4;\tsigned:0;\n"
		     "\nprint fmt: \"" PROBE_FIELD_TEXT "=%%s " HELD_FIELD_NUMBER
		     "=%%u\", __get_str(" PROBE_FIELD_TEXT "), REC->" HELD_FIELD_NUMBER "\n",
		     type_of(OWN_HELD), common_fields) < 0)
		return NULL;
	return text;
}

int own_samples_describe(struct record_events *events, const struct record_config *config,
			 enum own_sample kind)
{
	bool is_held = kind == OWN_HELD;
	char *full_name = NULL;
	int err;

	if (asprintf(&full_name, "leakrec:%s", layouts[kind].name) < 0)
		full_name = NULL;
	err = record_events_add_written(events, config, full_name,
					is_held ? make_held_format() : make_format(kind),
					type_of(kind), id_of(kind), false);
	/* Whatever is recorded of stacks, this is a callchain. */
	if (!err && is_held) {
		struct perf_event_attr *attr =
			&events->probes.events[events->probes.nr_events - 1].attr;

		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr->exclude_callchain_kernel = 1;
	}
	return err;
}

static struct own_record make_record(enum own_sample kind, pid_t pid, uint64_t time_ns,
				     uint32_t first, size_t end)
{
	return (struct own_record){
		.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (uint16_t)end},
		.id = id_of(kind),
		.pid = (uint32_t)pid,
		.tid = (uint32_t)pid,
		.time_ns = time_ns,
		.raw_bytes = (uint32_t)(end - offsetof(struct own_record, common_type)),
		.common_type = type_of(kind),
		.common_pid = pid,
		.first = first,
	};
}

int own_samples_write(struct perf_writer *writer, enum own_sample kind, pid_t pid, uint64_t time_ns,
		      uint32_t first, const uint64_t *values)
{
	size_t nr = nr_values(kind), end = offsetof(struct own_record, values) + 8 * nr;
	struct own_record record = make_record(kind, pid, time_ns, first, end);

	if (nr)
		memcpy(record.values, values, nr * sizeof(*values));
	return perf_writer_add_record(writer, &record.header);
}

int own_samples_write_text(struct perf_writer *writer, enum own_sample kind, pid_t pid,
			   uint64_t time_ns, uint32_t first, const char *text)
{
	size_t len = strnlen(text, HOLDER_TEXT_BYTES - 1);
	size_t at = offsetof(struct own_record, text), end = (at + len + 1 + 7) & ~(size_t)7;
	struct own_record record = make_record(kind, pid, time_ns, first, end);

	record.text_place =
		(uint32_t)((len + 1) << 16 | (at - offsetof(struct own_record, common_type)));
	memcpy(record.text, text, len);
	return perf_writer_add_record(writer, &record.header);
}

static char *put(char *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	return to + size;
}

int own_samples_write_held(struct perf_writer *writer, pid_t pid, uint64_t time_ns,
			   const struct own_held *held)
{
	const size_t head_bytes = offsetof(struct own_record, raw_bytes);
	const size_t fields_bytes =
		offsetof(struct own_record, values) - head_bytes + sizeof(struct held_fields);
	size_t values_bytes = held->nr_blocks * HELD_NR_VALUES * sizeof(uint64_t);
	size_t chain_bytes = held->nr_chain * sizeof(uint64_t);
	size_t raw_bytes = (fields_bytes + values_bytes + 7) & ~(size_t)7;
	size_t size = head_bytes + sizeof(uint64_t) + chain_bytes + raw_bytes;
	uint64_t words[UINT16_MAX / sizeof(uint64_t) + 1], nr_chain = held->nr_chain;
	struct held_fields fields = {0};
	struct own_record record;
	char *at = (char *)words;

	if (size > UINT16_MAX)
		return 0;
	record = make_record(OWN_HELD, pid, time_ns, held->nr_blocks, size);
	record.raw_bytes = (uint32_t)(raw_bytes - sizeof(record.raw_bytes));
	fields.blocks_at = (uint32_t)(fields_bytes - sizeof(record.raw_bytes));
	fields.text_place = (uint32_t)(sizeof(fields.function) << 16 |
				       (fields.blocks_at - sizeof(fields.function)));
	snprintf(fields.function, sizeof(fields.function), "%s", held->function);
	words[size / sizeof(uint64_t) - 1] = 0;
	at = put(at, &record, head_bytes);
	at = put(at, &nr_chain, sizeof(nr_chain));
	at = put(at, held->chain, chain_bytes);
	at = put(at, &record.raw_bytes, fields_bytes - sizeof(fields));
	at = put(at, &fields, sizeof(fields));
	put(at, held->values, values_bytes);
	return perf_writer_add_record(writer, (const void *)words);
}
