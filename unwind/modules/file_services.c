/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/file_services.h"

#include "common/elf/elf_file.h"
#include "common/elf/root_file.h"
#include "common/proc/living_thread.h"
#include "common/scope.h"
#include "unwind/modules/debug_server.h"

#include <errno.h>

/* Passes @fd, its own, on if it may be. */
static int pass(int fd, int *ret_fd)
{
	if (fd < 0)
		return fd;
	if (!elf_file_is_code(fd)) {
		close(fd);
		return -ENOEXEC;
	}
	*ret_fd = fd;
	return 0;
}

static int open_elf(void *context, const struct broker_request *request, int *ret_fd)
{
	struct stat st;

	(void)context;
	return pass(elf_file_open(request->text, &st), ret_fd);
}

static int open_below(void *context, const struct broker_request *request, int *ret_fd)
{
	const char *symfs = context;
	struct stat st;

	return symfs ? pass(root_file_open(symfs, request->text, &st), ret_fd) : -ENOENT;
}

static int find_thread(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)context;
	(void)ret_fd;
	if (request->number <= 0 || request->number > INT32_MAX)
		return -EINVAL;
	return living_thread((pid_t)request->number);
}

void file_services_add(struct broker_service services[BROKER_NR_OPS], const char *symfs)
{
	services[BROKER_OPEN_ELF].serve = open_elf;
	services[BROKER_OPEN_BELOW] = (struct broker_service){open_below, (void *)symfs};
	services[BROKER_FIND_THREAD].serve = find_thread;
	services[BROKER_FETCH_DEBUG].serve = debug_server_serve;
}
