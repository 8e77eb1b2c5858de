/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perfdata/perf_script_text.h"

#include "common/diag.h"
#include "common/schema/probe_events.h"
#include "common/scope.h"
#include "parser/perfdata/perf_script_line.h"
#include "parser/perfdata/perf_script_places.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define BUFFER_BYTES	 ((size_t)256 << 10)
#define MAX_LINE_BYTES	 ((size_t)64 << 10) /* a longer line is not one of ours */
#define MAX_FIELDS	 16
#define NR_POINTS	 5
#define MAX_SCHEMAS	 64
#define LINES_TO_BE_SURE 10000 /* without an event: it is another kind of text */
#define FIELDS		 "comm,pid,tid,cpu,time,event,trace,ip,sym,symoff,dso"

struct text_field {
	const char *name;
	uint64_t value;
};

struct text_reader {
	struct perf_source *source;
	const struct perf_consumer *consumer;
	struct perf_input_stats *stats;
	struct perf_script_places *places;
	struct perf_event_desc descs[MAX_SCHEMAS][NR_POINTS];
	struct perf_event_desc newtask;

	/* The event whose stack is being read. */
	bool has_sample;
	struct perf_sample sample;
	uint64_t chain[STACK_MAX_FRAMES];
	size_t nr_chain;
	bool is_return;
	struct perf_sample last; /* the previous probe's sample; event NULL: none */

	uint64_t last_ns;
	uint64_t sequence;
	uint64_t lines_before, samples_before, probes_before; /* in files read before */
	bool incomplete_warned;

	size_t filled, next;
	bool ended, skipping; /* @skipping: the rest of a line that is too long */
	char buffer[BUFFER_BYTES + 1];
};

bool perf_script_text_begins(const uint8_t *head, size_t head_bytes)
{
	for (size_t i = 0; i < head_bytes; i++)
		if (!isprint(head[i]) && !isspace(head[i]) && head[i] < 0x80)
			return false;
	return head_bytes > 0;
}

/* --- Lines --- */

static int fill(struct text_reader *reader)
{
	ssize_t got;

	memmove(reader->buffer, reader->buffer + reader->next, reader->filled - reader->next);
	reader->filled -= reader->next;
	reader->next = 0;
	got = perf_source_read(reader->source, reader->buffer + reader->filled,
			       BUFFER_BYTES - reader->filled);
	if (got < 0)
		return (int)got;
	reader->ended = got == 0;
	reader->filled += (size_t)got;
	return 0;
}

/*
 * Gets the next line, without its newline. Returns 1; 0 at the end; or a negative errno (reported).
 */
static int next_line(struct text_reader *reader, char **ret)
{
	for (;;) {
		char *line = reader->buffer + reader->next;
		size_t left = reader->filled - reader->next;
		char *end = memchr(line, '\n', left);
		bool too_long = !end && left >= MAX_LINE_BYTES;
		bool skipped = reader->skipping;
		int err;

		if (!end && !too_long && !reader->ended) {
			err = fill(reader);
			if (err)
				return err;
			continue;
		}
		if (left == 0)
			return 0;
		if (!end)
			end = line + left;
		reader->next = (size_t)(end - reader->buffer) + (end < line + left);
		reader->skipping = too_long;
		if (skipped || too_long)
			continue;
		/* A Windows line end. */
		if (end > line && end[-1] == '\r')
			end--;
		*end = '\0';
		*ret = line;
		return 1;
	}
}

/* --- Events --- */

static const struct text_field *find_field(const struct text_field *fields, size_t nr,
					   const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static bool read_field(const struct text_field *fields, size_t nr, const char *name, uint64_t *ret)
{
	const struct text_field *field = find_field(fields, nr, name);

	if (field)
		*ret = field->value;
	return field;
}

/* Finds the arguments by the schema's names, by perf probe's numbers, or by their order. */
static bool read_args(const struct text_field *fields, size_t nr, const struct probe_schema *schema,
		      uint64_t *ret_args, uint32_t *ret_found)
{
	char number[] = "arg0";
	size_t nr_own = 0;

	*ret_found = 0;
	for (int i = 0; i < schema->nr_args; i++) {
		number[3] = (char)('1' + i);
		if (read_field(fields, nr, schema->arg_names[i], &ret_args[i]) ||
		    read_field(fields, nr, number, &ret_args[i]))
			*ret_found |= 1u << i;
	}
	for (size_t i = 0; i < nr; i++)
		nr_own += strcmp(fields[i].name, PROBE_FIELD_CALLER) != 0;
	if (*ret_found || nr_own != (size_t)schema->nr_args)
		return true;
	for (size_t i = 0, arg = 0; i < nr; i++)
		if (strcmp(fields[i].name, PROBE_FIELD_CALLER) != 0)
			ret_args[arg++] = fields[i].value;
	*ret_found = (1u << schema->nr_args) - 1;
	return true;
}

/* True if the arguments suffice. */
static bool has_needed(const struct probe_schema *schema, uint32_t found)
{
	const int needed[] = {schema->size_arg, schema->count_arg,
			      schema->effect == HEAP_ALLOC_TO_PTR ? -1 : schema->block_arg};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (needed[i] >= 0 && !(found >> needed[i] & 1))
			return false;
	return true;
}

/* Copies a probe's arguments into @sample. Returns false if one that is needed is missing. */
static bool read_fields(const struct text_field *fields, size_t nr,
			const struct probe_schema *schema, enum probe_point point,
			struct perf_sample *sample)
{
	uint32_t found;

	switch (point) {
	case PROBE_ENTRY:
		read_field(fields, nr, PROBE_FIELD_CALLER, &sample->caller);
		return read_args(fields, nr, schema, sample->args, &found) &&
		       has_needed(schema, found);
	case PROBE_RETURN:
		if (!read_field(fields, nr, PROBE_FIELD_RET, &sample->ret) &&
		    !read_field(fields, nr, "arg1", &sample->ret)) {
			if (nr != 1)
				return false;
			sample->ret = fields[0].value;
		}
		break;
	case PROBE_EXIT:
		if (!read_field(fields, nr, PROBE_FIELD_RET, &sample->ret) ||
		    !read_field(fields, nr, PROBE_FIELD_CALLER, &sample->return_address) ||
		    !read_field(fields, nr, PROBE_FIELD_FROM_ENTRY, &sample->args[0]))
			return false;
		sample->probe_address -= sample->args[0];
		break;
	case PROBE_STORE:
		if (schema->block_arg >= 0)
			read_field(fields, nr, schema->arg_names[schema->block_arg],
				   &sample->args[schema->block_arg]);
		return read_field(fields, nr, PROBE_FIELD_BLOCK, &sample->block);
	case PROBE_CALL:
		sample->caller = sample->return_address;
		read_field(fields, nr, PROBE_FIELD_RET, &sample->ret);
		read_field(fields, nr, PROBE_FIELD_BLOCK, &sample->block);
		if (!read_args(fields, nr, schema, sample->args, &found) ||
		    !has_needed(schema, found))
			return false;
		break;
	}
	if (schema->effect == HEAP_ALLOC_TO_PTR)
		sample->ret = (uint32_t)sample->ret;
	return true;
}

static size_t split_fields(char *text, struct text_field *fields)
{
	const char *name, *value;
	size_t nr = 0;

	while (nr < MAX_FIELDS && perf_script_next_field(&text, &name, &value))
		if (perf_script_number(value, &fields[nr].value))
			fields[nr++].name = name;
	return nr;
}

/* A thread may free NULL twice in a microsecond at one instruction. */
static bool frees_null(const struct perf_sample *sample)
{
	const struct probe_schema *schema = sample->event->schema;

	return schema->effect == HEAP_RELEASE && sample->args[schema->block_arg] == 0;
}

/* True if @sample repeats the one before (perf_input.h). */
static bool is_repeated(const struct perf_sample *sample, const struct perf_sample *last)
{
	return !frees_null(sample) && sample->event == last->event &&
	       sample->origin.time_ns == last->origin.time_ns &&
	       sample->origin.tid == last->origin.tid && sample->origin.cpu == last->origin.cpu &&
	       sample->probe_address == last->probe_address &&
	       sample->return_address == last->return_address && sample->ret == last->ret &&
	       sample->block == last->block && sample->caller == last->caller &&
	       memcmp(sample->args, last->args, sizeof(sample->args)) == 0;
}

/* Begins a probe's sample. Other tracepoints, and probes that lack an argument, are skipped. */
static void begin_probe(struct text_reader *reader, const struct perf_script_event *event)
{
	struct perf_sample *sample = &reader->sample;
	struct text_field fields[MAX_FIELDS];
	const struct probe_schema *schema, *table;
	enum probe_point point;
	size_t nr_rows, nr;

	table = probe_schema_table(&nr_rows);
	if (!event->has_address || probe_schema_parse_event(event->name, &schema, &point) ||
	    schema - table >= MAX_SCHEMAS)
		return;
	nr = split_fields(event->rest, fields);
	sample->probe_address = event->address;
	sample->return_address = event->return_address;
	if (!read_fields(fields, nr, schema, point, sample)) {
		if (!reader->incomplete_warned)
			diag_warn("%s: event %s lacks an argument: such samples are not used",
				  reader->source->name, event->name);
		reader->incomplete_warned = true;
		reader->stats->undecodable++;
		return;
	}
	sample->event = &reader->descs[schema - table][point];
	reader->descs[schema - table][point].name = schema->function;
	reader->descs[schema - table][point].schema = schema;
	reader->descs[schema - table][point].point = point;
	if (is_repeated(sample, &reader->last)) {
		reader->stats->repeated++;
		return;
	}
	reader->last = *sample;
	reader->is_return = probe_point_is_return(point);
	sample->origin.sequence = ++reader->sequence;
	reader->stats->probe_samples++;
	reader->has_sample = true;
}

/* Parses "pid=4171 comm=emacs clone_flags=3d0f00 ...". The flags are hexadecimal. */
static void begin_newtask(struct text_reader *reader, const struct perf_script_event *event)
{
	const char *pid = strstr(event->rest, "pid="), *flags = strstr(event->rest, "clone_flags=");

	if (!pid || !flags)
		return;
	reader->sample.newtask_pid = (pid_t)strtol(pid + strlen("pid="), NULL, 10);
	reader->sample.newtask_clone_flags = strtoull(flags + strlen("clone_flags="), NULL, 16);
	reader->sample.event = &reader->newtask;
	reader->has_sample = true;
}

/* Delivers the event, which ends with its last frame, the next event or the text. */
static int deliver_sample(struct text_reader *reader)
{
	struct perf_sample *sample = &reader->sample;
	const struct perf_consumer *consumer = reader->consumer;

	if (!reader->has_sample)
		return 0;
	reader->has_sample = false;
	sample->callchain = reader->chain;
	sample->nr_callchain = reader->nr_chain;
	sample->whole_chain = true;
	if (sample->event->schema) {
		int err;

		perf_script_places_learn(reader->places, sample);
		err = perf_script_places_complete(reader->places, sample, reader->chain,
						  STACK_MAX_FRAMES, &sample->nr_callchain);
		if (err)
			return err;
	}
	return consumer->on_sample ? consumer->on_sample(consumer->context, sample) : 0;
}

/* Parses "(8001:8002):(8000:8000)": process and thread of the child and of its parent. */
static int handle_task(struct text_reader *reader, const struct perf_origin *origin,
		       const char *text, bool is_fork)
{
	const struct perf_consumer *consumer = reader->consumer;
	struct perf_task_record task = {.origin = *origin};

	if (sscanf(text, "(%9d:%9d):(%9d:%9d)", &task.pid, &task.tid, &task.ppid, &task.ptid) != 4)
		return 0;
	if (is_fork) {
		int err = perf_script_places_fork(reader->places, &task);

		if (err)
			return err;
		return consumer->on_fork ? consumer->on_fork(consumer->context, &task) : 0;
	}
	return consumer->on_exit ? consumer->on_exit(consumer->context, &task) : 0;
}

/* Parses " exec: sh:8000/8000". The name may hold anything. */
static int handle_comm(struct text_reader *reader, const struct perf_origin *origin, char *text)
{
	const struct perf_consumer *consumer = reader->consumer;
	struct perf_comm_record comm = {.origin = *origin};
	char *colon = strrchr(text, ':');
	const char *name;

	if (strncmp(text, " exec: ", 7) == 0) {
		comm.exec = true;
		name = text + 7;
	} else if (strncmp(text, ": ", 2) == 0) {
		name = text + 2;
	} else {
		return 0;
	}
	if (!colon || colon < name || sscanf(colon, ":%9d/%9d", &comm.pid, &comm.tid) != 2)
		return 0;
	*colon = '\0';
	comm.comm = name;
	if (comm.exec)
		perf_script_places_exec(reader->places, comm.pid);
	return consumer->on_comm ? consumer->on_comm(consumer->context, &comm) : 0;
}

static int handle_lost(struct text_reader *reader, const struct perf_origin *origin,
		       const char *text)
{
	const struct perf_consumer *consumer = reader->consumer;
	struct perf_lost_record record = {.origin = *origin};

	if (sscanf(text, " lost %18" SCNu64, &record.lost) != 1 || !consumer->on_lost)
		return 0;
	return consumer->on_lost(consumer->context, &record);
}

/* Parses "PERF_RECORD_FORK(8001:..." of --show-task-events and --show-lost-events. */
static int handle_record(struct text_reader *reader, const struct perf_origin *origin, char *text)
{
	static const char prefix[] = "PERF_RECORD_";
	size_t len;

	if (strncmp(text, prefix, strlen(prefix)) != 0)
		return 0;
	text += strlen(prefix);
	len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	if (len == 4 && memcmp(text, "FORK", len) == 0)
		return handle_task(reader, origin, text + len, true);
	if (len == 4 && memcmp(text, "EXIT", len) == 0)
		return handle_task(reader, origin, text + len, false);
	if (len == 4 && memcmp(text, "COMM", len) == 0)
		return handle_comm(reader, origin, text + len);
	if (len == 4 && memcmp(text, "LOST", len) == 0)
		return handle_lost(reader, origin, text + len);
	return 0;
}

static int name_thread(struct text_reader *reader, const struct perf_origin *origin,
		       const char *name)
{
	struct perf_comm_record comm = {.origin = *origin, .comm = name};
	bool is_new;
	int err = perf_script_places_name(reader->places, origin->tid, name, &is_new);

	if (err || !is_new || !reader->consumer->on_comm)
		return err;
	comm.pid = origin->pid;
	comm.tid = origin->tid;
	return reader->consumer->on_comm(reader->consumer->context, &comm);
}

/* An event's first line: the event before it is complete, and this one begins. */
static int handle_event(struct text_reader *reader, const struct perf_script_event *event)
{
	struct perf_origin *origin = &reader->sample.origin;
	int err = deliver_sample(reader);

	if (err)
		return err;
	reader->stats->samples += event->name != NULL;
	reader->sample = (struct perf_sample){0};
	reader->nr_chain = 0;
	*origin = (struct perf_origin){
		.time_ns = event->time_ns,
		.sequence = reader->sequence,
		.tid = event->tid,
		.cpu = event->cpu,
	};
	err = perf_script_places_process(reader->places, event->pid, event->tid, &origin->pid);
	if (err)
		return err;
	if (origin->time_ns < reader->last_ns)
		reader->stats->out_of_order++;
	else
		reader->last_ns = origin->time_ns;
	if (!event->name)
		return handle_record(reader, origin, event->rest);
	err = name_thread(reader, origin, event->comm);
	if (strcmp(event->name, "task_newtask") == 0)
		begin_newtask(reader, event);
	else
		begin_probe(reader, event);
	return err;
}

static int handle_frame(struct text_reader *reader, const struct perf_script_frame *frame)
{
	if (!reader->has_sample || frame->inlined || reader->nr_chain == STACK_MAX_FRAMES)
		return 0;
	if (reader->nr_chain == 0)
		perf_script_places_begin_stack(reader->places, &reader->sample, frame);
	return perf_script_places_frame(reader->places, reader->sample.origin.pid, frame,
					&reader->chain[reader->nr_chain++]);
}

static int handle_line(struct text_reader *reader, char *line)
{
	struct perf_script_event event;
	struct perf_script_frame frame;
	bool blank = line[strspn(line, " \t\r")] == '\0';

	reader->stats->records++;
	if (blank || *line == '#') /* perf's optional header */
		return 0;
	if (perf_script_parse_event(line, &event))
		return handle_event(reader, &event);
	if (perf_script_parse_frame(line, &frame))
		return handle_frame(reader, &frame);
	reader->stats->unknown_records++;
	return 0;
}

static int no_events(const struct text_reader *reader)
{
	bool none = reader->stats->samples == reader->samples_before;

	if (none)
		diag_error("%s: neither a perf.data file (it does not begin with \"PERFILE2\") nor "
			   "the text of perf script",
			   reader->source->name);
	else
		diag_error("%s: no allocator events; record probes on malloc, free and the "
			   "like (leakprobe add, leakrec)",
			   reader->source->name);
	return none ? -EINVAL : -ENODATA;
}

static int read_lines(struct text_reader *reader)
{
	char *line = NULL;
	int ret, err;

	while ((ret = next_line(reader, &line)) > 0) {
		ret = handle_line(reader, line);
		if (ret)
			return ret;
		if (reader->stats->records - reader->lines_before == LINES_TO_BE_SURE &&
		    reader->stats->samples == reader->samples_before)
			break;
	}
	err = deliver_sample(reader);
	if (ret < 0 || err)
		return ret < 0 ? ret : err;
	return reader->stats->probe_samples > reader->probes_before ? 0 : no_events(reader);
}

int perf_script_text_read(struct perf_source *source, const uint8_t *head, size_t head_bytes,
			  const struct perf_consumer *consumer, struct perf_input_stats *stats)
{
	_cleanup_free_ struct text_reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader || head_bytes > BUFFER_BYTES)
		return -ENOMEM;
	reader->source = source;
	reader->consumer = consumer;
	reader->stats = stats;
	reader->sequence = stats->probe_samples;
	reader->lines_before = stats->records;
	reader->samples_before = stats->samples;
	reader->probes_before = stats->probe_samples;
	reader->newtask.is_newtask = true;
	reader->newtask.name = "task_newtask";
	memcpy(reader->buffer, head, head_bytes);
	reader->filled = head_bytes;
	err = perf_script_places_create(consumer, &reader->places);
	if (err)
		return err;
	err = read_lines(reader);
	if (!err && perf_script_places_guessed(reader->places))
		diag_note("%s: the text does not tell processes from threads and was read as one "
			  "process; print it by perf script -F " FIELDS,
			  source->name);
	if (!err && perf_script_places_in_memory(reader->places))
		diag_note("%s: the text has addresses in memory and none in files, so lines are "
			  "missing; print it by perf script -F " FIELDS ",dsoff",
			  source->name);
	perf_script_places_destroy(reader->places);
	return err;
}
