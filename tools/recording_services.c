/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/recording_services.h"

#include "common/schema/segment_name.h"
#include "parser/bytes/perf_source.h"
#include "report/watch/leak_command.h"
#include "unwind/modules/file_services.h"
#include "unwind/names/jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* True if @path is that of a segment in the directory @input. */
static bool is_segment_in(const char *path, const char *input)
{
	size_t len = strlen(input);
	struct segment_name name;

	return strncmp(path, input, len) == 0 && path[len] == '/' &&
	       segment_name_parse(path + len + 1, &name) == 0;
}

/* The directories among the inputs, as they were when first opened; -1: none. There is one broker.
 */
static int *directory_fds;

static int open_whole(const char *input, int *directory_fd)
{
	int fd = perf_source_open(input);
	struct stat st;

	if (fd >= 0 && *directory_fd < 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		*directory_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd;
}

static int open_input(void *context, const struct broker_request *request, int *ret_fd)
{
	const struct recording_services *named = context;
	int err = -EPERM;

	for (size_t i = 0; i < named->nr_inputs && err; i++) {
		const char *input = named->inputs[i];

		if (strcmp(input, request->text) == 0)
			*ret_fd = open_whole(input, &directory_fds[i]);
		/* By a descriptor: who owns the path could have put a link into it since. */
		else if (directory_fds[i] >= 0 && is_segment_in(request->text, input))
			*ret_fd = perf_source_open_in(
				directory_fds[i], request->text + strlen(input) + 1, request->text);
		else
			continue;
		err = *ret_fd < 0 ? *ret_fd : 0;
	}
	return err;
}

static int open_temporary(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)context;
	(void)request;
	*ret_fd = perf_source_open_temporary();
	return *ret_fd < 0 ? *ret_fd : 0;
}

int recording_services_add(const void *context, struct broker_service services[BROKER_NR_OPS])
{
	const struct recording_services *named = context;
	struct leak_command *command;
	int err;

	directory_fds = malloc((named->nr_inputs + 1) * sizeof(int));
	if (!directory_fds)
		return -ENOMEM;
	memset(directory_fds, -1, (named->nr_inputs + 1) * sizeof(int));
	file_services_add(services, named->symfs);
	services[BROKER_OPEN_JIT_NAMES] =
		(struct broker_service){jit_names_serve, (void *)named->symfs};
	services[BROKER_OPEN_INPUT] = (struct broker_service){open_input, (void *)named};
	services[BROKER_OPEN_TEMPORARY].serve = open_temporary;
	if (!named->on_leak)
		return 0;
	err = leak_command_create(named->on_leak, LEAK_COMMAND_MAX_RUN_NS, 0, &command);
	if (err)
		return err;
	services[BROKER_START_COMMAND] = (struct broker_service){leak_command_serve_start, command};
	services[BROKER_COMMAND_RESULT] =
		(struct broker_service){leak_command_serve_result, command};
	services[BROKER_WAIT_FOR_COMMAND] =
		(struct broker_service){leak_command_serve_wait, command};
	return 0;
}
