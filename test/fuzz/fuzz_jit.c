/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes any text as a perf-PID.map file: the names of the code that a process has generated. */
#include "unwind/names/jit_names.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/tmp/fuzz_jit_XXXXXX"; /* stands for "/" */
static char path[64];
static int map_fd;

static void remove_directory(void)
{
	char tmp[64];

	snprintf(tmp, sizeof(tmp), "%s/tmp", directory);
	unlink(path);
	rmdir(tmp);
	rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (!mkdtemp(directory) || atexit(remove_directory))
		abort();
	snprintf(path, sizeof(path), "%s/tmp", directory);
	if (mkdir(path, 0700))
		abort();
	snprintf(path, sizeof(path), "%s/tmp/perf-1.map", directory);
	map_fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (map_fd < 0)
		abort();
	return 0;
}

/* The piece has a name, and is the last one that holds the address. */
static void find(const struct jit_names *names, uint64_t address)
{
	const struct jit_piece *piece = jit_names_find(names, address);

	if (piece && (address < piece->start || address >= piece->end || !*piece->name ||
		      strlen(piece->name) > JIT_MAX_NAME))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_names names;

	if (ftruncate(map_fd, 0) || (size && pwrite(map_fd, data, size, 0) != (ssize_t)size) ||
	    jit_names_init(&names, 1, directory))
		abort();
	find(&names, 0);
	find(&names, UINT64_MAX);
	for (size_t i = 0; i < names.nr; i++) {
		find(&names, names.pieces[i].start);
		find(&names, names.pieces[i].end - 1);
		find(&names, names.pieces[i].end);
	}
	jit_names_deinit(&names);
	return 0;
}
