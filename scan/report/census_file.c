/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/report/census_file.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILE_BYTES (256u << 20)
#define HEAD_BYTES     256

/* No process has more; and sums cannot overflow. */
#define MAX_COUNT (1ull << 40)

/* Takes @expected off the text; false: it is not there. */
static bool take(char **at, const char *expected)
{
	size_t len = strlen(expected);

	if (strncmp(*at, expected, len) != 0)
		return false;
	*at += len;
	return true;
}

/* A number, or null, which counts as 0. */
static bool take_number(char **at, uint64_t *ret)
{
	char *end = *at;

	*ret = 0;
	if (take(at, "null"))
		return true;
	for (; *end >= '0' && *end <= '9'; end++) {
		*ret = *ret * 10 + (uint64_t)(*end - '0');
		if (*ret > MAX_COUNT)
			return false;
	}
	if (end == *at)
		return false;
	*at = end;
	return true;
}

static bool take_head(char *at, struct census_file *file)
{
	return take(&at, "{\"format\":\"leakscan\",\"version\":1,\"pid\":") &&
	       take_number(&at, &file->pid) && take(&at, ",\"start\":") &&
	       take_number(&at, &file->start_ticks) && take(&at, ",\"time_s\":") &&
	       take_number(&at, &file->taken_s) && take(&at, ",\"whole\":") &&
	       ((file->is_whole = take(&at, "true")) || take(&at, "false")) && take(&at, ",\n");
}

static bool take_row(char **at, struct census_file_row *ret)
{
	uint64_t lost;
	char *end;

	if (!take(at, "{\"size\":") || !take_number(at, &ret->size_bytes) ||
	    !take(at, ",\"blocks\":") || !take_number(at, &ret->nr) || !take(at, ",\"lost\":") ||
	    !take_number(at, &lost) || !take(at, ",\"type\":"))
		return false;
	ret->type = *at;
	end = strchr(*at, '\n');
	if (!end || end == *at)
		return false;
	*at = end;
	end -= end[-1] == ',';
	if (end == ret->type || end[-1] != '}')
		return false;
	end[-1] = '\0';
	return true;
}

static int refuse(const char *path, const char *why)
{
	diag_error("cannot compare with %s: %s", path, why);
	return -EINVAL;
}

static int refuse_text(const char *path)
{
	return refuse(path, "it is not as leakscan --format json writes it");
}

/* Reads all of @size bytes. */
static int read_text(const struct census_file *file, char *text, size_t size)
{
	size_t nr = 0;

	while (nr < size) {
		ssize_t len = pread(file->fd, text + nr, size - nr, (off_t)nr);

		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			return refuse(file->path, len < 0 ? strerror(errno) : "it was truncated");
		nr += (size_t)len;
	}
	text[size] = '\0';
	return 0;
}

int census_file_open(struct census_file *ret, const char *path)
{
	char head[HEAD_BYTES + 1];
	struct stat stat;
	int err;

	*ret = (struct census_file){.path = path,
				    .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
	if (ret->fd < 0 || fstat(ret->fd, &stat) < 0)
		return refuse(path, strerror(errno));
	if (!S_ISREG(stat.st_mode))
		return refuse(path, "it is no file");
	if (stat.st_size > MAX_FILE_BYTES)
		return refuse(path, "it has more than 256 MiB");
	ret->size_bytes = (uint64_t)stat.st_size;
	err = read_text(ret, head, ret->size_bytes < HEAD_BYTES ? ret->size_bytes : HEAD_BYTES);
	return err || take_head(head, ret) ? err : refuse_text(path);
}

void census_file_close(struct census_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

int census_file_read(const struct census_file *file,
		     int (*on_row)(void *context, const struct census_file_row *row), void *context)
{
	_cleanup_free_ char *text = malloc(file->size_bytes + 1);
	struct census_file_row row;
	char *at;
	int err;

	if (!text)
		return refuse(file->path, strerror(ENOMEM));
	err = read_text(file, text, file->size_bytes);
	if (err)
		return err;
	at = strstr(text, "\n\"rows\":[\n");
	if (!at)
		return refuse_text(file->path);
	take(&at, "\n\"rows\":[\n");
	while (*at == '{') {
		if (!take_row(&at, &row) || !take(&at, "\n"))
			return refuse_text(file->path);
		err = on_row(context, &row);
		if (err)
			return err;
	}
	return strcmp(at, "]}\n") == 0 ? 0 : refuse_text(file->path);
}
