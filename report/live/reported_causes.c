/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/live/reported_causes.h"

#include "common/diag.h"
#include "common/scope.h"
#include "report/live/live_services.h"
#include "report/text/cause_frames.h"
#include "report/text/stack_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct reported_causes {
	char *lines[REPORTED_CAUSES_MAX]; /* without their line ends */
	size_t nr;
	size_t nr_before;  /* that the file had */
	bool is_unwritten; /* the file does not have them all */
};

/* --- The file --- */

/* Returns the text, which the caller frees; NULL and *@ret_err: 0 if there is no file. */
static char *read_file(int *ret_err)
{
	_cleanup_close_ int fd = live_services_open_reported();
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	ssize_t len;

	*ret_err = fd >= 0 || fd == -ENOENT ? 0 : fd;
	if (fd < 0)
		return NULL;
	text = malloc(REPORTED_CAUSES_MAX_BYTES + 1);
	if (!text) {
		*ret_err = -ENOMEM;
		return NULL;
	}
	while ((len = read(fd, text + size, REPORTED_CAUSES_MAX_BYTES - size)) > 0)
		size += (size_t)len;
	if (len < 0) {
		*ret_err = -errno;
		return NULL;
	}
	text[size] = '\0';
	return steal_ptr(text);
}

/* Takes @line over. */
static void add_line(struct reported_causes *causes, char *line)
{
	if (causes->nr == REPORTED_CAUSES_MAX) {
		free(causes->lines[0]);
		memmove(causes->lines, causes->lines + 1,
			(causes->nr - 1) * sizeof(*causes->lines));
		causes->nr--;
		causes->nr_before -= causes->nr_before > 0;
	}
	causes->lines[causes->nr++] = line;
}

int reported_causes_create(struct reported_causes **ret)
{
	struct reported_causes *causes = calloc(1, sizeof(*causes));
	_cleanup_free_ char *text = NULL;
	char *rest, *line;
	int err;

	*ret = causes;
	if (!causes)
		return -ENOMEM;
	text = read_file(&err);
	if (err)
		diag_warn("cannot read what was reported before, %s: %s; all is reported again",
			  REPORTED_CAUSES_NAME, strerror(-err));
	rest = text;
	while (rest && (line = strsep(&rest, "\n"))) {
		char *copy = *line ? strdup(line) : NULL;

		if (*line && !copy)
			return -ENOMEM;
		if (copy)
			add_line(causes, copy);
	}
	causes->nr_before = causes->nr;
	return 0;
}

int reported_causes_write(struct reported_causes *causes)
{
	_cleanup_free_ char *text = NULL;
	size_t size, first = causes->nr, bytes = 0;
	FILE *out;
	int err;

	if (!causes->is_unwritten)
		return 0;
	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	/* What is written can be read again. */
	while (first > 0 &&
	       (bytes += strlen(causes->lines[first - 1]) + 1) <= REPORTED_CAUSES_MAX_BYTES)
		first--;
	for (size_t i = first; i < causes->nr; i++)
		fprintf(out, "%s\n", causes->lines[i]);
	if (fclose(out))
		return -ENOMEM;
	err = live_services_replace(LIVE_REPORTED, text, size);
	causes->is_unwritten = err != 0;
	return err;
}

/* --- Causes --- */

/* "query_font leaky_daemon": escaped, as in the `leaks` text. */
int reported_causes_name(const struct leak_report *report, const struct leak_cause *cause,
			 char **ret)
{
	struct name_pool *names = name_pool_create();
	struct cause_frames frames = {.stack = {.names = names, .wrappers = &report->wrappers}};
	_cleanup_free_ char *function = NULL;
	const char *module = NULL;
	size_t size;
	FILE *out = NULL;
	int err = names ? cause_frames_load(&frames, report, cause,
					    &report->sites_by_cause[cause->first])
			: -ENOMEM;

	if (!err) {
		function = stack_lines_name(&frames.stack, frames.first);
		out = function ? open_memstream(ret, &size) : NULL;
		err = out ? 0 : -ENOMEM;
	}
	if (!err && frames.first < frames.stack.nr)
		module = frames.stack.frames[frames.first].module;
	if (!err) {
		diag_print_escaped(out, function, " \t");
		fputc(' ', out);
		diag_print_escaped(out, module ? named_stack_basename(module) : "?", " \t");
		if (fclose(out))
			err = -ENOMEM;
	}
	named_stack_deinit(&frames.stack);
	name_pool_destroy(names);
	return err;
}

bool reported_causes_had(const struct reported_causes *causes, const char *name)
{
	for (size_t i = 0; i < causes->nr_before; i++)
		if (strcmp(causes->lines[i], name) == 0)
			return true;
	return false;
}

int reported_causes_add(struct reported_causes *causes, char *name)
{
	add_line(causes, name);
	causes->is_unwritten = true;
	return reported_causes_write(causes);
}
