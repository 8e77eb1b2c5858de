/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/bytes/perf_source.h"

#include "common/broker/broker.h"
#include "common/broker/named_file.h"
#include "common/diag.h"
#include "common/output_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COPY_BYTES ((size_t)256 << 10)
#define PIPE_BYTES (1 << 20) /* the limit for users (fs.pipe-max-size) */

void perf_source_init(struct perf_source *source, int fd, const char *name)
{
	struct stat st;

	*source = (struct perf_source){.fd = fd, .spool_fd = -1, .name = name};
	if (fstat(fd, &st) < 0)
		return;
	/* A larger pipe makes writer and reader wait less often. A refusal does no harm. */
	if (S_ISFIFO(st.st_mode))
		fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
	if (S_ISREG(st.st_mode)) {
		source->seekable = true;
		source->size_bytes = (uint64_t)st.st_size;
		source->mappable = file_window_may_map(fd);
	}
}

void perf_source_init_compressed(struct perf_source *source, struct perf_decompressor *decompressor)
{
	*source = (struct perf_source){
		.fd = -1,
		.spool_fd = -1,
		.name = decompressor->name,
		.decompressor = decompressor,
	};
}

void perf_source_deinit(struct perf_source *source)
{
	if (source->spool_fd >= 0)
		close(source->spool_fd);
	source->spool_fd = -1;
}

/* read(2) or pread(2), depending on the source; restarted after signals. */
static ssize_t read_once(const struct perf_source *source, uint64_t offset, void *buffer,
			 size_t size_bytes)
{
	ssize_t got;

	if (source->seekable && offset > INT64_MAX)
		return 0;
	do {
		got = source->seekable ? pread(source->fd, buffer, size_bytes, (off_t)offset)
				       : read(source->fd, buffer, size_bytes);
	} while (got < 0 && errno == EINTR);
	if (got < 0) {
		int err = errno;

		diag_error("%s: reading at offset %" PRIu64 ": %s", source->name, offset,
			   strerror(err));
		return -err;
	}
	return got;
}

ssize_t perf_source_read(struct perf_source *source, void *buffer, size_t size_bytes)
{
	ssize_t got = source->decompressor
			      ? perf_decompressor_read(source->decompressor, buffer, size_bytes)
			      : read_once(source, source->position, buffer, size_bytes);

	if (got > 0)
		source->position += (uint64_t)got;
	return got;
}

ssize_t perf_source_read_full(struct perf_source *source, void *buffer, size_t size_bytes)
{
	size_t done = 0;

	while (done < size_bytes) {
		ssize_t got = perf_source_read(source, (uint8_t *)buffer + done, size_bytes - done);

		if (got < 0)
			return got;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

int perf_source_map(struct perf_source *source, uint64_t offset, uint64_t end, size_t size_bytes,
		    struct file_window *ret)
{
	struct stat st;

	if (fstat(source->fd, &st) == 0 && end > (uint64_t)st.st_size)
		end = (uint64_t)st.st_size; /* it may have grown */
	if (source->position >= end)
		return 0;
	if (file_window_map(ret, source->fd, offset, end, size_bytes, &source->is_cut)) {
		source->mappable = false;
		return 0;
	}
	source->position = ret->offset + ret->size_bytes;
	if (source->size_bytes < source->position)
		source->size_bytes = source->position;
	return 1;
}

int perf_source_check(const struct perf_source *source)
{
	struct stat st;

	if (!source->seekable || fstat(source->fd, &st) < 0 ||
	    (!source->is_cut && (uint64_t)st.st_size >= source->size_bytes))
		return 0;
	diag_error("%s: the file was truncated or failed during the reading; the result may be "
		   "wrong",
		   source->name);
	return -EIO;
}

int perf_source_read_at(const struct perf_source *source, uint64_t offset, void *buffer,
			size_t size_bytes)
{
	size_t done = 0;

	while (done < size_bytes) {
		ssize_t got = read_once(source, offset + done, (uint8_t *)buffer + done,
					size_bytes - done);

		if (got < 0)
			return (int)got;
		if (got == 0)
			return -ENODATA;
		done += (size_t)got;
	}
	return 0;
}

bool perf_source_contains(const struct perf_source *source, uint64_t offset,
			  uint64_t section_size_bytes)
{
	return offset <= source->size_bytes && section_size_bytes <= source->size_bytes - offset;
}

int perf_source_open(const char *path)
{
	return named_file_open(path);
}

int perf_source_open_in(int dir_fd, const char *name, const char *path)
{
	int fd;

	if (broker_is_used())
		return broker_open(BROKER_OPEN_INPUT, path, NULL);
	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/* Where temporary files are made. */
static const char *temporary_directory(void)
{
	const char *directory = getenv("TMPDIR");

	return directory && *directory ? directory : "/tmp";
}

int perf_source_open_temporary(void)
{
	const char *directory = temporary_directory();
	_cleanup_free_ char *path = NULL;
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (errno != EOPNOTSUPP && errno != EISDIR)
		return -errno;
	/* The file system lacks O_TMPFILE. */
	if (asprintf(&path, "%s/leakparse.XXXXXX", directory) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

int perf_source_spool(struct perf_source *source, const void *head, size_t head_bytes)
{
	_cleanup_free_ uint8_t *buffer = malloc(COPY_BYTES);
	_cleanup_close_ int fd = -1;
	ssize_t got;
	int err;

	if (!buffer)
		return -ENOMEM;
	fd = broker_is_used() ? broker_open(BROKER_OPEN_TEMPORARY, NULL, NULL)
			      : perf_source_open_temporary();
	err = fd < 0 ? fd : output_write_all(fd, head, head_bytes);
	while (!err && (got = perf_source_read(source, buffer, COPY_BYTES)) != 0) {
		if (got < 0)
			return (int)got;
		err = output_write_all(fd, buffer, (size_t)got);
	}
	if (err) {
		diag_error("%s: a perf.data file in a pipe needs a temporary copy in %s: %s; "
			   "redirect the file to standard input instead, or set TMPDIR",
			   source->name, temporary_directory(), strerror(-err));
		return err;
	}
	source->size_bytes = source->position;
	source->spool_fd = source->fd = steal_fd(fd);
	source->seekable = source->mappable = true;
	return 0;
}
