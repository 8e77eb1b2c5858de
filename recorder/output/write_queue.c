/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/write_queue.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/sandbox/unprivileged.h"
#include "common/scope.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* After a signal: the time until the user is told that the output is slow. */
#define TELL_AFTER_MS 300
/* After a signal: the time without progress until the rest is dropped, if the output is a pipe. */
#define GIVE_UP_NS 700000000ULL
/* The same for a queue that never waits, at its end. Its reader judges from time to time. */
#define GIVE_UP_LIVE_NS 10000000000ULL
/* How long the thread may take to end after it was woken. */
#define JOIN_NS 300000000

/*
 * A COMPRESSED record holds whole records, except parts of one that is too large. So a recording
 * that ends too early ends between records. Where the records for each end is noted when they are
 * added: to find it out later, the writing thread would wait for the memory of one record after the
 * other, which another CPU has just written.
 */
#define MAX_PIECES (2 * WRITE_QUEUE_BUFFER_BYTES / COMPRESSOR_MAX_CONTENT_BYTES + 2)

struct write_buffer {
	struct write_buffer *next;
	void (*call)(void *context); /* before the bytes are written; or NULL */
	void *call_context;
	bool compressed;
	size_t nr_pieces, piece_start; /* of the piece that is being filled */
	size_t piece_ends[MAX_PIECES];
	size_t filled;
	char bytes[WRITE_QUEUE_BUFFER_BYTES];
};

struct write_queue {
	int fd;
	const char *name;
	bool is_regular;
	_Atomic int error; /* the first failure, a negative errno */
	_Atomic uint64_t written;
	_Atomic size_t nr_unwritten; /* buffers that the thread was given */

	/* used by the thread that adds */
	int signal_fd;
	struct write_buffer *current;
	size_t nr_buffers; /* allocated */
	bool compresses, compressed;
	bool interrupted, told;
	bool never_waits;
	uint64_t progress_bytes, progress_ns; /* since the signal */

	/* used by the thread that writes */
	pthread_t thread;
	struct compressor *compressor;
	char *records; /* of compressor */

	int progress_fd; /* an eventfd: the thread has written a buffer while the other one waited
			  */
	int stop_fd;	 /* an eventfd: stop waiting for the pipe's reader */

	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t work;
	struct write_buffer *first, **last; /* to be written */
	struct write_buffer *unused;
	bool busy; /* the thread has a buffer */
	bool stop;
	bool is_waited_for;
};

static void signal_event(int fd)
{
	static const uint64_t one = 1;

	/*
	 * write() fails only if the counter is at its maximum: the event is signalled then anyway.
	 */
	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

/* Records the first failure of either thread, and reports it: @why, or what @err says. */
static int fail_because(struct write_queue *queue, int err, const char *why)
{
	static const char *const advice[] = {
		[EINTR] = "; what its reader has not taken is dropped",
		[EPIPE] = "; its reader is gone",
		[ENOSPC] = "; what was recorded so far is kept",
	};
	const char *hint = (size_t)err < ARRAY_SIZE(advice) && advice[err] ? advice[err] : "";
	int none = 0;

	if (err == EINTR && queue->is_regular)
		hint = "; what is not written yet is dropped";
	if (atomic_compare_exchange_strong(&queue->error, &none, -err))
		diag_error("cannot write %s: %s%s", queue->name, why ? why : strerror(err), hint);
	return -err;
}

static int fail(struct write_queue *queue, int err)
{
	return fail_because(queue, err, NULL);
}

/* --- The thread that writes --- */

/* The pipe is full. Waits until it takes more, or until there is no point in waiting. */
static void wait_for_reader(struct write_queue *queue)
{
	struct pollfd fds[] = {
		{.fd = queue->fd, .events = POLLOUT},
		{.fd = queue->stop_fd, .events = POLLIN},
	};

	if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
		fail(queue, errno);
}

static int write_bytes(struct write_queue *queue, const char *bytes, size_t size_bytes)
{
	while (size_bytes > 0 && !write_queue_error(queue)) {
		ssize_t n = write(queue->fd, bytes, size_bytes);

		if (n < 0 && errno == EAGAIN) {
			wait_for_reader(queue);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(queue, errno);
		atomic_fetch_add(&queue->written, (uint64_t)n);
		bytes += n;
		size_bytes -= (size_t)n;
	}
	return write_queue_error(queue);
}

/* Compresses the bytes from *@start to @end, or the first of them, and makes room before that if
 * necessary. */
static int compress_part(struct write_queue *queue, const char *bytes, size_t *start, size_t end,
			 size_t *filled)
{
	size_t size_bytes = end - *start, record_bytes = 0;
	int err;

	if (WRITE_QUEUE_BUFFER_BYTES - *filled < COMPRESSOR_RECORD_BYTES) {
		err = write_bytes(queue, queue->records, *filled);
		if (err)
			return err;
		*filled = 0;
	}
	if (size_bytes > COMPRESSOR_MAX_CONTENT_BYTES)
		size_bytes = COMPRESSOR_MAX_CONTENT_BYTES;
	err = compressor_make_record(queue->compressor, bytes + *start, size_bytes,
				     queue->records + *filled, &record_bytes);
	if (err)
		return fail(queue, -err);
	*filled += record_bytes;
	*start += size_bytes;
	return 0;
}

static int write_compressed(struct write_queue *queue, const struct write_buffer *buffer)
{
	size_t start = 0, filled = 0;
	int err = 0;

	for (size_t i = 0; i <= buffer->nr_pieces; i++) {
		size_t end = i < buffer->nr_pieces ? buffer->piece_ends[i] : buffer->filled;

		while (start < end && !err)
			err = compress_part(queue, buffer->bytes, &start, end, &filled);
	}
	return err ? err : write_bytes(queue, queue->records, filled);
}

static void write_buffer(struct write_queue *queue, const struct write_buffer *buffer)
{
	if (buffer->compressed)
		write_compressed(queue, buffer);
	else
		write_bytes(queue, buffer->bytes, buffer->filled);
}

/* The writing thread: writes the queued buffers, and returns them to the pool, until it is stopped.
 */
static void *run(void *arg)
{
	struct write_queue *queue = arg;

	unprivileged_drop_capabilities("the writing thread");
	pthread_mutex_lock(&queue->lock);
	for (;;) {
		struct write_buffer *buffer;

		while (!queue->first && !queue->stop)
			pthread_cond_wait(&queue->work, &queue->lock);
		if (queue->stop)
			break;
		buffer = queue->first;
		queue->first = buffer->next;
		if (!queue->first)
			queue->last = &queue->first;
		queue->busy = true;
		pthread_mutex_unlock(&queue->lock);

		if (buffer->call)
			buffer->call(buffer->call_context);
		if (!write_queue_error(queue))
			write_buffer(queue, buffer);

		pthread_mutex_lock(&queue->lock);
		buffer->next = queue->unused;
		queue->unused = buffer;
		queue->busy = false;
		atomic_fetch_sub(&queue->nr_unwritten, 1);
		if (queue->is_waited_for)
			signal_event(queue->progress_fd);
		queue->is_waited_for = false;
	}
	pthread_mutex_unlock(&queue->lock);
	return NULL;
}

/* --- The thread that adds --- */

static void give_up(struct write_queue *queue, const char *why)
{
	fail_because(queue, EINTR, why);
	signal_event(queue->stop_fd);
}

static void begin_progress(struct write_queue *queue)
{
	queue->progress_bytes = write_queue_written(queue);
	queue->progress_ns = clock_now_ns();
}

/* The first signal ends the recording; the second ends the waiting. */
static void consume_signal(struct write_queue *queue)
{
	struct signalfd_siginfo signal;

	if (read(queue->signal_fd, &signal, sizeof(signal)) != sizeof(signal))
		return;
	if (queue->interrupted)
		give_up(queue, "a second signal came");
	queue->interrupted = true;
	begin_progress(queue);
}

static void tell_why(struct write_queue *queue)
{
	if (!queue->told)
		diag_note("ending; what is recorded %s, Ctrl-C drops it",
			  queue->is_regular ? "is still being written"
					    : "waits for the reader of the pipe");
	queue->told = true;
}

/* After a signal, or if the queue never waits: gives up waiting for a reader that takes nothing. */
static void check_progress(struct write_queue *queue)
{
	uint64_t limit_ns = queue->never_waits ? GIVE_UP_LIVE_NS : GIVE_UP_NS;

	if (write_queue_written(queue) != queue->progress_bytes)
		begin_progress(queue);
	else if (!queue->is_regular && clock_now_ns() - queue->progress_ns > limit_ns)
		give_up(queue, queue->never_waits ? "its reader takes nothing"
						  : "its reader takes nothing after the signal");
}

/* Waits until the thread has written a buffer, or for a signal. */
static void wait_for_progress(struct write_queue *queue)
{
	struct pollfd fds[] = {
		{.fd = queue->progress_fd, .events = POLLIN},
		{.fd = queue->signal_fd, .events = POLLIN},
	};
	bool is_limited = queue->interrupted || queue->never_waits;
	int nr = poll(fds, ARRAY_SIZE(fds), is_limited ? TELL_AFTER_MS : -1);
	uint64_t count;

	if (nr < 0 && errno != EINTR)
		fail(queue, errno);
	if (nr == 0 && !queue->never_waits)
		tell_why(queue);
	if (is_limited)
		check_progress(queue);
	if (nr <= 0)
		return;
	if ((fds[0].revents & POLLIN) && read(queue->progress_fd, &count, sizeof(count)) < 0)
		return;
	if (fds[1].revents & POLLIN)
		consume_signal(queue);
}

static size_t max_buffers(const struct write_queue *queue)
{
	return queue->never_waits ? WRITE_QUEUE_LIVE_BUFFERS + WRITE_QUEUE_MORE_BUFFERS
				  : WRITE_QUEUE_BUFFERS;
}

/* An empty buffer becomes the current one; NULL after a failure. */
static struct write_buffer *get_buffer(struct write_queue *queue)
{
	struct write_buffer *buffer = NULL;

	while (!write_queue_error(queue)) {
		pthread_mutex_lock(&queue->lock);
		buffer = queue->unused;
		if (buffer)
			queue->unused = buffer->next;
		queue->is_waited_for = !buffer;
		pthread_mutex_unlock(&queue->lock);
		if (!buffer && queue->nr_buffers < max_buffers(queue)) {
			buffer = malloc(sizeof(*buffer));
			queue->nr_buffers += buffer != NULL;
			/* With a single buffer recording goes on, but more slowly. */
			if (!buffer && queue->nr_buffers == 0)
				fail(queue, ENOMEM);
		}
		if (buffer) {
			buffer->filled = buffer->piece_start = buffer->nr_pieces = 0;
			buffer->call = NULL;
			buffer->compressed = queue->compressed;
			queue->current = buffer;
			return buffer;
		}
		if (queue->never_waits)
			fail_because(queue, EAGAIN, "its reader is too slow");
		else
			wait_for_progress(queue);
	}
	return NULL;
}

/* Gives the current buffer to the thread. With @if_idle only if nothing else waits for it. */
static void hand_over(struct write_queue *queue, bool if_idle)
{
	struct write_buffer *buffer = queue->current;

	if (!buffer || (!buffer->filled && !buffer->call))
		return;
	pthread_mutex_lock(&queue->lock);
	if (!if_idle || !queue->first) {
		buffer->next = NULL;
		*queue->last = buffer;
		queue->last = &buffer->next;
		queue->current = NULL;
		atomic_fetch_add(&queue->nr_unwritten, 1);
		pthread_cond_signal(&queue->work);
	}
	pthread_mutex_unlock(&queue->lock);
}

/* What is added next goes to another COMPRESSED record. */
static void end_piece(struct write_buffer *buffer)
{
	if (buffer->filled == buffer->piece_start)
		return;
	buffer->piece_ends[buffer->nr_pieces++] = buffer->filled;
	buffer->piece_start = buffer->filled;
}

char *write_queue_reserve(struct write_queue *queue, size_t size_bytes)
{
	struct write_buffer *buffer = queue->current;

	if (write_queue_error(queue))
		return NULL;
	if (buffer && size_bytes > WRITE_QUEUE_BUFFER_BYTES - buffer->filled) {
		hand_over(queue, false);
		buffer = NULL;
	}
	if (!buffer) {
		buffer = get_buffer(queue);
		if (!buffer)
			return NULL;
	}
	if (buffer->filled + size_bytes - buffer->piece_start > COMPRESSOR_MAX_CONTENT_BYTES)
		end_piece(buffer);
	buffer->filled += size_bytes;
	return buffer->bytes + buffer->filled - size_bytes;
}

char *write_queue_offer(struct write_queue *queue, size_t size_bytes)
{
	if (queue->never_waits && atomic_load(&queue->nr_unwritten) >= WRITE_QUEUE_LIVE_BUFFERS)
		return NULL;
	return write_queue_reserve(queue, size_bytes);
}

int write_queue_add(struct write_queue *queue, const char *bytes, size_t size_bytes)
{
	while (size_bytes > 0) {
		size_t part = size_bytes < UINT16_MAX ? size_bytes : UINT16_MAX;
		char *to = write_queue_reserve(queue, part);

		if (!to)
			break;
		memcpy(to, bytes, part);
		bytes += part;
		size_bytes -= part;
	}
	return write_queue_error(queue);
}

void write_queue_set_compressed(struct write_queue *queue, bool compressed)
{
	queue->compressed = compressed && queue->compresses;
	hand_over(queue, false);
	if (queue->current)
		queue->current->compressed = queue->compressed;
}

int write_queue_call(struct write_queue *queue, void (*call)(void *context), void *context)
{
	struct write_buffer *buffer;

	hand_over(queue, false);
	buffer = queue->current ? queue->current : get_buffer(queue);
	if (!buffer)
		return write_queue_error(queue);
	buffer->call = call;
	buffer->call_context = context;
	return 0;
}

void write_queue_set_output(struct write_queue *queue, int fd, const char *name,
			    struct compressor *compressor)
{
	compressor_destroy(queue->compressor);
	queue->compressor = compressor;
	queue->fd = fd;
	queue->name = name;
}

int write_queue_flush(struct write_queue *queue)
{
	hand_over(queue, true);
	return write_queue_error(queue);
}

int write_queue_drain(struct write_queue *queue)
{
	bool idle = false;

	hand_over(queue, false);
	begin_progress(queue);
	for (;;) {
		pthread_mutex_lock(&queue->lock);
		idle = !queue->first && !queue->busy;
		queue->is_waited_for = !idle;
		pthread_mutex_unlock(&queue->lock);
		/* For a regular file, also wait for the write in progress: it ends soon. */
		if (idle || (write_queue_error(queue) && !queue->is_regular))
			return write_queue_error(queue);
		wait_for_progress(queue);
	}
}

uint64_t write_queue_written(const struct write_queue *queue)
{
	return atomic_load(&queue->written);
}

int write_queue_error(const struct write_queue *queue)
{
	return atomic_load_explicit(&queue->error, memory_order_relaxed);
}

bool write_queue_interrupted(const struct write_queue *queue)
{
	return queue->interrupted;
}

void write_queue_never_wait(struct write_queue *queue)
{
	queue->never_waits = true;
}

/* --- Life --- */

static int start_thread(struct write_queue *queue)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&queue->thread, NULL, run, queue);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static void free_queue(struct write_queue *queue)
{
	struct write_buffer *lists[] = {queue->first, queue->unused}, *buffer;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		while ((buffer = lists[i])) {
			lists[i] = buffer->next;
			free(buffer);
		}
	}
	free(queue->current);
	free(queue->records);
	compressor_destroy(queue->compressor);
	if (queue->progress_fd >= 0)
		close(queue->progress_fd);
	if (queue->stop_fd >= 0)
		close(queue->stop_fd);
	pthread_cond_destroy(&queue->work);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

int write_queue_create(int fd, const char *name, int signal_fd, struct compressor *compressor,
		       struct write_queue **ret)
{
	struct write_queue *queue = calloc(1, sizeof(*queue));
	struct stat st;
	int err = 0;

	if (!queue) {
		diag_error("cannot write %s: out of memory", name);
		compressor_destroy(compressor);
		return -ENOMEM;
	}
	queue->fd = fd;
	queue->name = name;
	queue->is_regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	queue->signal_fd = signal_fd;
	queue->compressor = compressor;
	queue->compresses = compressor != NULL;
	queue->last = &queue->first;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->work, NULL);
	queue->progress_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	queue->stop_fd = queue->progress_fd < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->stop_fd < 0)
		err = -errno;
	if (!err && compressor) {
		queue->records = malloc(WRITE_QUEUE_BUFFER_BYTES);
		err = queue->records ? 0 : -ENOMEM;
	}
	if (!err)
		err = start_thread(queue);
	if (err) {
		diag_error("cannot start a thread to write %s: %s", name, strerror(-err));
		free_queue(queue);
		return err;
	}
	*ret = queue;
	return 0;
}

void write_queue_destroy(struct write_queue *queue)
{
	struct timespec deadline;
	int none = 0;

	if (!queue)
		return;
	/* After a failure, or if the recording failed before, the rest is not needed. */
	atomic_compare_exchange_strong(&queue->error, &none, -ECANCELED);
	pthread_mutex_lock(&queue->lock);
	queue->stop = true;
	pthread_cond_signal(&queue->work);
	pthread_mutex_unlock(&queue->lock);
	signal_event(queue->stop_fd);

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_nsec += JOIN_NS;
	deadline.tv_sec += deadline.tv_nsec / 1000000000;
	deadline.tv_nsec %= 1000000000;
	if (queue->is_regular)
		pthread_join(queue->thread, NULL);
	else if (pthread_clockjoin_np(queue->thread, NULL, CLOCK_MONOTONIC, &deadline))
		return; /* the thread hangs in write(): it ends, and the queue is freed, with the
			   process */
	free_queue(queue);
}
