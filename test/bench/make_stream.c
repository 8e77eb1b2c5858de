/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a recording of any length to standard output, in perf's pipe format, of a program with
 * --events events. The program allocates --live blocks. After that it releases a random one for
 * each block that it allocates. There are --stacks call paths of 12 frames, and rings of two CPUs,
 * which are drained in rounds. The tests' writer makes what precedes the samples, and a pattern for
 * each kind of sample. The values are put into copies of the patterns.
 *
 *	make_stream --events 10000000 --live 10000 --stacks 500 | leakparse
 */
#include "test/support/perf_data_writer.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH	     12
#define PID	     4242
#define NR_CPUS	     2
#define ROUND	     8192 /* events */
#define FIRST_BLOCK  0x7f0000000000u
#define FIRST_NS     1000000000u
#define STEP_NS	     100u
#define MAX_BYTES    1024 /* of a sample */
#define PROGRAM	     0x555500000000u
#define PROGRAM_SIZE 0x10000000u

/* Marks in a pattern, which show where the values go. */
enum value { VALUE_TIME, VALUE_CPU, VALUE_BLOCK, VALUE_SIZE, VALUE_FRAMES, NR_VALUES };
#define MARK(value) (0x1122334455660000u + (value))

/* A sample, and the offsets of its values; 0: it has no such value. */
struct pattern {
	uint8_t bytes[MAX_BYTES];
	size_t nr_bytes;
	size_t places[NR_VALUES];
};

/* The records of a CPU's ring that are not written yet. */
struct ring {
	uint8_t bytes[ROUND / NR_CPUS * MAX_BYTES];
	size_t nr_bytes;
};

struct stream {
	uint64_t nr_events, nr_live, nr_stacks;
	struct pattern allocation, release, round;
	struct ring rings[NR_CPUS];
	/* Addresses: @nr_live in use, then as many that are free. */
	uint64_t *addresses;
	uint64_t slot; /* of those in use, where a block is replaced */
	uint64_t random;
};

static void die(const char *what)
{
	fprintf(stderr, "make_stream: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t draw(struct stream *stream, uint64_t below)
{
	stream->random = stream->random * 6364136223846793005u + 1442695040888963407u;
	return (stream->random >> 33) % below;
}

static void find_values(struct pattern *pattern)
{
	for (size_t at = 0; at + sizeof(uint64_t) <= pattern->nr_bytes; at += sizeof(uint32_t)) {
		for (int value = 0; value < NR_VALUES; value++) {
			const uint64_t mark = MARK((uint64_t)value);

			if (value == VALUE_CPU)
				continue;
			if (memcmp(pattern->bytes + at, &mark, sizeof(mark)) == 0)
				pattern->places[value] = at;
		}
	}
	pattern->places[VALUE_CPU] = pattern->places[VALUE_TIME] + sizeof(uint64_t);
}

/* Makes a pattern from what one more sample adds to the recording. */
static void make_pattern(struct perf_data_writer *writer, const struct perf_data_sample *sample,
			 struct pattern *ret)
{
	size_t before, after;
	uint8_t *image = perf_data_image(writer, PERF_DATA_PIPE, &before);

	free(image);
	perf_data_sample(writer, sample);
	image = perf_data_image(writer, PERF_DATA_PIPE, &after);
	if (after <= before || after - before > sizeof(ret->bytes))
		die("a sample has another size than expected");
	ret->nr_bytes = after - before;
	memcpy(ret->bytes, image + before, ret->nr_bytes);
	free(image);
	find_values(ret);
}

static void put_value(uint8_t *sample, const struct pattern *pattern, enum value value, uint64_t v)
{
	memcpy(sample + pattern->places[value], &v,
	       value == VALUE_CPU ? sizeof(uint32_t) : sizeof(v));
}

static void put_frames(uint8_t *sample, const struct pattern *pattern, uint64_t stack)
{
	uint64_t frames[DEPTH];

	for (uint64_t i = 0; i < DEPTH; i++)
		frames[i] = PROGRAM + 0x1000 + ((stack >> i) * 64 + i * 4096 * 64) % PROGRAM_SIZE;
	memcpy(sample + pattern->places[VALUE_FRAMES], frames, sizeof(frames));
}

/* True if event @number is a release, which makes room for the next block. */
static bool is_release(const struct stream *stream, uint64_t number)
{
	return number >= stream->nr_live && (number - stream->nr_live) % 2 == 0;
}

static void exchange(struct stream *stream, uint64_t a, uint64_t b)
{
	uint64_t address = stream->addresses[a];

	stream->addresses[a] = stream->addresses[b];
	stream->addresses[b] = address;
}

/* Puts event @number into the ring of its CPU. */
static void add_event(struct stream *stream, uint64_t number)
{
	bool releases = is_release(stream, number);
	const struct pattern *pattern = releases ? &stream->release : &stream->allocation;
	struct ring *ring = &stream->rings[number % NR_CPUS];
	uint8_t *sample = ring->bytes + ring->nr_bytes;

	if (number < stream->nr_live)
		stream->slot = number;
	else if (releases)
		stream->slot = draw(stream, stream->nr_live);
	else
		exchange(stream, stream->slot, stream->nr_live + draw(stream, stream->nr_live));
	memcpy(sample, pattern->bytes, pattern->nr_bytes);
	ring->nr_bytes += pattern->nr_bytes;
	put_value(sample, pattern, VALUE_TIME, FIRST_NS + number * STEP_NS);
	put_value(sample, pattern, VALUE_CPU, number % NR_CPUS);
	if (!releases) {
		put_value(sample, pattern, VALUE_SIZE, 16 + draw(stream, 48));
		put_frames(sample, pattern, draw(stream, stream->nr_stacks));
	}
	put_value(sample, pattern, VALUE_BLOCK, stream->addresses[stream->slot]);
}

static void write_all(const void *bytes, size_t nr_bytes)
{
	if (nr_bytes && fwrite(bytes, nr_bytes, 1, stdout) != 1)
		die("standard output");
}

static void write_events(struct stream *stream)
{
	for (uint64_t first = 0; first < stream->nr_events; first += ROUND) {
		for (uint64_t i = first; i < first + ROUND && i < stream->nr_events; i++)
			add_event(stream, i);
		for (size_t cpu = 0; cpu < NR_CPUS; cpu++) {
			write_all(stream->rings[cpu].bytes, stream->rings[cpu].nr_bytes);
			stream->rings[cpu].nr_bytes = 0;
		}
		write_all(stream->round.bytes, stream->round.nr_bytes);
	}
	if (fflush(stdout))
		die("standard output");
}

/* Writes what precedes the first sample, and makes the patterns of samples. */
static void begin(struct stream *stream)
{
	const uint64_t call[] = {PROGRAM - 0x1000, PROGRAM + 0x1040, MARK(VALUE_SIZE),
				 MARK(VALUE_BLOCK)};
	const uint64_t release[] = {PROGRAM - 0x800, MARK(VALUE_BLOCK), PROGRAM + 0x2000};
	uint64_t frames[DEPTH] = {MARK(VALUE_FRAMES)};
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	struct perf_data_sample sample = {
		.event = perf_data_add_probe(writer, "malloc", PROBE_CALL),
		.pid = PID,
		.tid = PID,
		.time_ns = MARK(VALUE_TIME),
		.fields = call,
		.callchain = frames,
		.nr_callchain = DEPTH,
	};
	int release_event = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	size_t nr_bytes, nr_before;
	uint8_t *image;

	perf_data_comm(writer, PID, PID, 1, "made-up", true);
	perf_data_mmap(writer, PID, 2, PROGRAM, PROGRAM_SIZE, 0, "/made-up");
	image = perf_data_image(writer, PERF_DATA_PIPE, &nr_before);
	write_all(image, nr_before);
	free(image);
	perf_data_finished_round(writer);
	image = perf_data_image(writer, PERF_DATA_PIPE, &nr_bytes);
	stream->round.nr_bytes = nr_bytes - nr_before;
	memcpy(stream->round.bytes, image + nr_before, stream->round.nr_bytes);
	free(image);
	make_pattern(writer, &sample, &stream->allocation);
	sample.event = release_event;
	sample.fields = release;
	sample.nr_callchain = 0;
	make_pattern(writer, &sample, &stream->release);
	perf_data_writer_destroy(writer);
}

static int parse_count(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno || end == text || *end || *text == '-' || *ret == 0 || *ret > 1ull << 40
		       ? -EINVAL
		       : 0;
}

static int parse_options(int argc, char **argv, struct stream *stream)
{
	static const struct option options[] = {
		{"events", required_argument, NULL, 'e'},
		{"live", required_argument, NULL, 'l'},
		{"stacks", required_argument, NULL, 's'},
		{0},
	};
	int opt, err = 0;

	while (!err && (opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'e')
			err = parse_count(optarg, &stream->nr_events);
		else if (opt == 'l')
			err = parse_count(optarg, &stream->nr_live);
		else if (opt == 's')
			err = parse_count(optarg, &stream->nr_stacks);
		else
			err = -EINVAL;
	}
	return err || optind < argc ? -EINVAL : 0;
}

int main(int argc, char **argv)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		die("memory");
	*stream = (struct stream){
		.nr_events = 1000000,
		.nr_live = 10000,
		.nr_stacks = 500,
		.random = 1,
	};
	if (parse_options(argc, argv, stream)) {
		fputs("usage: make_stream [--events N] [--live N] [--stacks N] >STREAM\n", stderr);
		return 2;
	}
	stream->addresses = calloc(2 * stream->nr_live, sizeof(*stream->addresses));
	if (!stream->addresses)
		die("memory");
	for (uint64_t i = 0; i < 2 * stream->nr_live; i++)
		stream->addresses[i] = FIRST_BLOCK + i * 64;
	begin(stream);
	write_events(stream);
	free(stream->addresses);
	free(stream);
	return 0;
}
