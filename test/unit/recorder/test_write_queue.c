/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The writing thread: everything arrives in order, and every failure ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/scope.h"
#include "recorder/output/write_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <zstd.h>

#define POOL_BYTES (WRITE_QUEUE_BUFFERS * WRITE_QUEUE_BUFFER_BYTES)
/* The pool has room for this in any case: buffers may be handed over before they are full. */
#define PART_BYTES (POOL_BYTES / 2)

/* A queue whose output is a pipe, and its messages. */
struct fixture {
	struct write_queue *queue;
	int out[2];
	int signals[2]; /* stands for a signalfd */
	int messages, saved_stderr;
	pthread_t reader;
	size_t read_bytes; /* bytes that the reader found right: the numbers in order */
	char *text;	   /* of the messages; set by end() */
};

static void begin_on(struct fixture *fixture, int fd, struct compressor *compressor)
{
	fixture->messages = memfd_create("messages", MFD_CLOEXEC);
	fixture->saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_true(fixture->messages >= 0 && fixture->saved_stderr >= 0);
	assert_true(dup2(fixture->messages, STDERR_FILENO) >= 0);
	assert_int_equal(pipe2(fixture->signals, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(
		write_queue_create(fd, "output", fixture->signals[0], compressor, &fixture->queue),
		0);
}

static void begin(struct fixture *fixture, int pipe_flags)
{
	assert_int_equal(pipe2(fixture->out, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fixture->out[1], F_SETFL, pipe_flags), 0);
	begin_on(fixture, fixture->out[1], NULL);
}

static void end(struct fixture *fixture)
{
	off_t size;

	write_queue_destroy(fixture->queue);
	dup2(fixture->saved_stderr, STDERR_FILENO);
	size = lseek(fixture->messages, 0, SEEK_END);
	fixture->text = calloc(1, (size_t)size + 1);
	assert_non_null(fixture->text);
	assert_int_equal(pread(fixture->messages, fixture->text, (size_t)size, 0), size);
	close(fixture->messages);
	close(fixture->saved_stderr);
	close(fixture->signals[0]);
	close(fixture->signals[1]);
}

static void send_signal(struct fixture *fixture)
{
	static const struct signalfd_siginfo signal;

	assert_int_equal(write(fixture->signals[1], &signal, sizeof(signal)), sizeof(signal));
}

/* There was one message, with the text @what. */
static void assert_told(struct fixture *fixture, const char *what)
{
	const char *newline = strchr(fixture->text, '\n');

	assert_non_null(strstr(fixture->text, what));
	assert_non_null(newline);
	assert_string_equal(newline, "\n");
	free(fixture->text);
}

/* Adds the numbers from @from on, until they take @size_bytes or adding fails. */
static int add_numbers(struct write_queue *queue, uint64_t from, size_t size_bytes)
{
	uint64_t block[1024];

	for (size_t done = 0; done < size_bytes; done += sizeof(block)) {
		char *to = write_queue_reserve(queue, sizeof(block));

		if (!to)
			return write_queue_error(queue);
		for (size_t i = 0; i < ARRAY_SIZE(block); i++)
			block[i] = from++;
		memcpy(to, block, sizeof(block));
		if (done % (100 * sizeof(block)) == 0)
			write_queue_flush(queue);
	}
	return 0;
}

/* Reads numbers until the end, or until one is wrong. */
static void *read_numbers(void *arg)
{
	struct fixture *fixture = arg;
	uint64_t block[512], next = 0;
	size_t filled = 0;
	ssize_t got;

	while ((got = read(fixture->out[0], (char *)block + filled, sizeof(block) - filled)) > 0) {
		filled += (size_t)got;
		if (filled < sizeof(block))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(block); i++)
			if (block[i] != next++)
				return NULL;
		filled = 0;
	}
	fixture->read_bytes = next * sizeof(uint64_t);
	return NULL;
}

/* The same, after the signals that were sent have been read. */
static void *read_after_signals(void *arg)
{
	struct fixture *fixture = arg;
	int unread = 1;

	while (unread > 0 && ioctl(fixture->signals[0], FIONREAD, &unread) == 0)
		usleep(1000);
	return read_numbers(fixture);
}

static void start_reader(struct fixture *fixture)
{
	assert_int_equal(pthread_create(&fixture->reader, NULL, read_numbers, fixture), 0);
}

static size_t finish_reader(struct fixture *fixture)
{
	close(fixture->out[1]);
	pthread_join(fixture->reader, NULL);
	close(fixture->out[0]);
	return fixture->read_bytes;
}

static void everything_arrives(void **state)
{
	static const int flags[] = {0, O_NONBLOCK};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct fixture fixture = {0};

		begin(&fixture, flags[i]);
		start_reader(&fixture);
		assert_int_equal(add_numbers(fixture.queue, 0, 3 * POOL_BYTES), 0);
		assert_int_equal(write_queue_drain(fixture.queue), 0);
		assert_int_equal(write_queue_written(fixture.queue), 3 * POOL_BYTES);
		end(&fixture);
		assert_int_equal(finish_reader(&fixture), 3 * POOL_BYTES);
		assert_string_equal(fixture.text, "");
		free(fixture.text);
	}
}

/* More than a pipe holds. */
static void adding_does_not_wait_for_a_reader_early(void **state)
{
	struct fixture fixture = {0};

	begin(&fixture, O_NONBLOCK);
	assert_int_equal(add_numbers(fixture.queue, 0, PART_BYTES), 0);
	start_reader(&fixture);
	assert_int_equal(write_queue_drain(fixture.queue), 0);
	end(&fixture);
	assert_int_equal(finish_reader(&fixture), PART_BYTES);
	free(fixture.text);
}

/* The first signal is reported while the queue waits. Nothing is lost. */
static void one_signal(void **state)
{
	struct fixture fixture = {0};

	begin(&fixture, O_NONBLOCK);
	assert_int_equal(add_numbers(fixture.queue, 0, PART_BYTES), 0);
	assert_false(write_queue_interrupted(fixture.queue));
	send_signal(&fixture);
	assert_int_equal(pthread_create(&fixture.reader, NULL, read_after_signals, &fixture), 0);
	assert_int_equal(add_numbers(fixture.queue, PART_BYTES / 8, 2 * POOL_BYTES), 0);
	assert_true(write_queue_interrupted(fixture.queue));
	assert_int_equal(write_queue_drain(fixture.queue), 0);
	end(&fixture);
	assert_int_equal(finish_reader(&fixture), PART_BYTES + 2 * POOL_BYTES);
	free(fixture.text);
}

/* A signal that comes while the queue does not wait is left to the caller. */
static void a_signal_of_the_callers(void **state)
{
	struct fixture fixture = {0};

	begin(&fixture, O_NONBLOCK);
	send_signal(&fixture);
	assert_int_equal(add_numbers(fixture.queue, 0, PART_BYTES), 0);
	write_queue_flush(fixture.queue);
	assert_false(write_queue_interrupted(fixture.queue));
	end(&fixture);
	close(fixture.out[0]);
	close(fixture.out[1]);
	assert_string_equal(fixture.text, "");
	free(fixture.text);
}

/* The second signal ends the waiting, even if the thread hangs in write(). */
static void two_signals(void **state)
{
	static const int flags[] = {O_NONBLOCK, 0};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct fixture fixture = {0};

		begin(&fixture, flags[i]);
		send_signal(&fixture);
		send_signal(&fixture);
		assert_int_equal(add_numbers(fixture.queue, 0, 2 * POOL_BYTES), -EINTR);
		assert_true(write_queue_interrupted(fixture.queue));
		assert_int_equal(write_queue_drain(fixture.queue), -EINTR);
		end(&fixture);
		/* The thread that is left still has its descriptors, so they stay open. */
		assert_told(&fixture, "cannot write output: a second signal came; "
				      "what its reader has not taken is dropped");
	}
}

static void one_signal_and_a_reader_that_takes_nothing(void **state)
{
	struct fixture fixture = {0};

	begin(&fixture, O_NONBLOCK);
	send_signal(&fixture);
	assert_int_equal(add_numbers(fixture.queue, 0, 2 * POOL_BYTES), -EINTR);
	assert_int_equal(write_queue_drain(fixture.queue), -EINTR);
	end(&fixture);
	/* After the note that the recording waits for the reader. */
	assert_non_null(strstr(fixture.text, "cannot write output: its reader takes nothing after "
					     "the signal; what its reader has not taken is "
					     "dropped\n"));
	free(fixture.text);
}

/* Offers numbers without a gap until one is refused. Returns how many bytes were taken. */
static size_t offer_numbers(struct write_queue *queue)
{
	uint64_t next = 0;

	for (;;) {
		char *to = write_queue_offer(queue, sizeof(next));

		if (!to)
			return next * sizeof(next);
		memcpy(to, &next, sizeof(next));
		next++;
	}
}

static void a_queue_that_never_waits(void **state)
{
	const size_t all = (size_t)WRITE_QUEUE_LIVE_BUFFERS * WRITE_QUEUE_BUFFER_BYTES;
	struct fixture fixture = {0};
	uint64_t next;
	size_t taken;

	begin(&fixture, O_NONBLOCK);
	write_queue_never_wait(fixture.queue);
	taken = offer_numbers(fixture.queue);
	assert_in_range(taken, all, all + WRITE_QUEUE_BUFFER_BYTES);
	assert_int_equal(write_queue_error(fixture.queue), 0);
	/* What may not be left out has room, and what is offered has none. */
	for (next = taken / sizeof(next); next < taken / sizeof(next) + 1000; next++) {
		char *to = write_queue_reserve(fixture.queue, sizeof(next));

		assert_non_null(to);
		memcpy(to, &next, sizeof(next));
		assert_null(write_queue_offer(fixture.queue, sizeof(next)));
	}
	/* A reader at last: all that was taken arrives. */
	assert_int_equal(pthread_create(&fixture.reader, NULL, read_numbers, &fixture), 0);
	assert_int_equal(write_queue_drain(fixture.queue), 0);
	end(&fixture);
	close(fixture.out[1]);
	pthread_join(fixture.reader, NULL);
	close(fixture.out[0]);
	assert_int_equal(fixture.read_bytes / 4096, next * sizeof(next) / 4096);
	assert_string_equal(fixture.text, "");
	free(fixture.text);
}

static void a_queue_that_never_waits_and_is_full(void **state)
{
	struct fixture fixture = {0};

	begin(&fixture, O_NONBLOCK);
	write_queue_never_wait(fixture.queue);
	assert_int_equal(
		add_numbers(fixture.queue, 0,
			    (WRITE_QUEUE_LIVE_BUFFERS + 2 * (size_t)WRITE_QUEUE_MORE_BUFFERS) *
				    WRITE_QUEUE_BUFFER_BYTES),
		-EAGAIN);
	end(&fixture);
	assert_told(&fixture, "cannot write output: its reader is too slow");
}

static void a_reader_that_goes_away(void **state)
{
	struct fixture fixture = {0};

	signal(SIGPIPE, SIG_IGN);
	begin(&fixture, O_NONBLOCK);
	assert_int_equal(add_numbers(fixture.queue, 0, PART_BYTES), 0);
	close(fixture.out[0]);
	assert_int_equal(add_numbers(fixture.queue, 0, 2 * POOL_BYTES), -EPIPE);
	assert_int_equal(write_queue_drain(fixture.queue), -EPIPE);
	end(&fixture);
	close(fixture.out[1]);
	assert_told(&fixture, "cannot write output: Broken pipe; its reader is gone");
}

static void a_full_disk(void **state)
{
	struct fixture fixture = {0};
	_cleanup_close_ int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		skip();
	begin_on(&fixture, fd, NULL);
	assert_int_equal(add_numbers(fixture.queue, 0, 2 * POOL_BYTES), -ENOSPC);
	assert_int_equal(write_queue_flush(fixture.queue), -ENOSPC);
	assert_int_equal(write_queue_drain(fixture.queue), -ENOSPC);
	assert_null(write_queue_reserve(fixture.queue, 8));
	end(&fixture);
	assert_told(&fixture, "cannot write output: No space left on device");
}

/* Adds a record of @size_bytes that zstd cannot make smaller. */
static void add_record(struct write_queue *queue, uint16_t size_bytes, uint64_t *random,
		       char **copy)
{
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = size_bytes};
	char *to = write_queue_reserve(queue, size_bytes);

	assert_non_null(to);
	for (size_t i = 0; i < size_bytes; i++) {
		*random = *random * 6364136223846793005u + 1442695040888963407u;
		to[i] = (char)(*random >> 33);
	}
	memcpy(to, &header, sizeof(header));
	memcpy(*copy, to, size_bytes);
	*copy += size_bytes;
}

/* Appends the contents of the COMPRESSED record at @at; returns the record's size. */
static size_t unpack(ZSTD_DCtx *context, const char *at, char **to)
{
	struct perf_event_header header;
	ZSTD_outBuffer out = {*to, COMPRESSOR_MAX_CONTENT_BYTES + 1, 0};

	memcpy(&header, at, sizeof(header));
	assert_int_equal(header.type, 81);
	ZSTD_inBuffer in = {at + sizeof(header), header.size - sizeof(header), 0};
	/* perf's reader expects that one call consumes all of it, and returns something. */
	assert_false(ZSTD_isError(ZSTD_decompressStream(context, &out, &in)));
	assert_int_equal(in.pos, in.size);
	assert_in_range(out.pos, 1, COMPRESSOR_MAX_CONTENT_BYTES);
	*to += out.pos;
	return header.size;
}

/* True if a record of @records ends at @at, or one that is too large for a COMPRESSED record is cut
 * there. */
static bool may_end(const char *records, const char *at)
{
	struct perf_event_header header = {0};

	while (records < at) {
		memcpy(&header, records, sizeof(header));
		records += header.size;
	}
	return records == at || header.size > COMPRESSOR_MAX_CONTENT_BYTES;
}

static void compressed_records(void **state)
{
	static const uint16_t sizes[] = {8, 24, 65528, 200, 64000, 64008, 40000, 33000, 65535};
	static const int levels[] = {1, 19};
	const size_t all = (size_t)6 << 20;

	for (size_t level = 0; level < ARRAY_SIZE(levels); level++) {
		struct fixture fixture = {0};
		struct compressor *compressor;
		_cleanup_close_ int fd = memfd_create("output", MFD_CLOEXEC);
		_cleanup_free_ char *expected = malloc(all + UINT16_MAX), *got = malloc(2 * all);
		_cleanup_free_ char *file = malloc(2 * all);
		char *to = expected, *got_to = got;
		uint64_t random = 1;
		ZSTD_DCtx *context = ZSTD_createDCtx();

		assert_true(expected && got && file && context);
		assert_int_equal(compressor_create(levels[level], &compressor), 0);
		begin_on(&fixture, fd, compressor);
		assert_int_equal(write_queue_add(fixture.queue, "plain", 5), 0);
		write_queue_set_compressed(fixture.queue, true);
		for (size_t i = 0; to < expected + all; i++)
			add_record(fixture.queue, sizes[i % ARRAY_SIZE(sizes)], &random, &to);
		write_queue_set_compressed(fixture.queue, false);
		assert_int_equal(write_queue_add(fixture.queue, "end", 3), 0);
		assert_int_equal(write_queue_drain(fixture.queue), 0);
		end(&fixture);

		ssize_t size = pread(fd, file, 2 * all, 0);
		assert_true(size > 8);
		assert_memory_equal(file, "plain", 5);
		assert_memory_equal(file + size - 3, "end", 3);
		for (ssize_t at = 5; at < size - 3;) {
			/* At the first level, each is readable by itself. */
			if (levels[level] == COMPRESSOR_FAST_LEVEL)
				ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
			at += (ssize_t)unpack(context, file + at, &got_to);
			assert_true(may_end(expected, expected + (got_to - got)));
		}
		assert_int_equal(got_to - got, to - expected);
		assert_memory_equal(got, expected, (size_t)(to - expected));
		ZSTD_freeDCtx(context);
		free(fixture.text);
	}
}

static void levels_that_do_not_exist(void **state)
{
	struct compressor *compressor;

	assert_int_equal(compressor_create(0, &compressor), -EINVAL);
	assert_int_equal(compressor_create(23, &compressor), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_arrives),
		cmocka_unit_test(adding_does_not_wait_for_a_reader_early),
		cmocka_unit_test(one_signal),
		cmocka_unit_test(a_signal_of_the_callers),
		cmocka_unit_test(two_signals),
		cmocka_unit_test(one_signal_and_a_reader_that_takes_nothing),
		cmocka_unit_test(a_queue_that_never_waits),
		cmocka_unit_test(a_queue_that_never_waits_and_is_full),
		cmocka_unit_test(a_reader_that_goes_away),
		cmocka_unit_test(a_full_disk),
		cmocka_unit_test(compressed_records),
		cmocka_unit_test(levels_that_do_not_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
