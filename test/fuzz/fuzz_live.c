/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes any text as the state of a recording that goes on, which leakparse --from-live prints. The
 * first byte of the input says how.
 */
#include "report/live/live_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/tmp/fuzz_live_XXXXXX";
static char path[64];
static int state_fd;

static void remove_directory(void)
{
	unlink(path);
	rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (!mkdtemp(directory) || atexit(remove_directory))
		abort();
	snprintf(path, sizeof(path), "%s/" LIVE_STATE_NAME, directory);
	state_fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (state_fd < 0)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return -1;
	if (ftruncate(state_fd, 0) || pwrite(state_fd, data + 1, size - 1, 0) < 0)
		abort();
	live_state_print(directory, data[0] & 1, data[0] & 2, data[0] >> 2);
	return 0;
}
