// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Does nothing until the go, and then in one of these ways each 10 ms leaks a block of 3333 bytes,
 * until SIGTERM: `new_in_window fork` in a child; `new_in_window load LIBRARY...` by the malloc()
 * of each library, which it loads by dlopen(); `new_in_window exec` when a thread has exec'ed;
 * `new_in_window map FILE` when it has mapped the file's code.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LEAK_BYTES    3333
#define MAX_LIBRARIES 8

static void *(*allocate[MAX_LIBRARIES])(size_t size_bytes) = {malloc};
static size_t nr_allocators = 1;

static _Noreturn void leak(void)
{
	for (;;) {
		for (size_t i = 0; i < nr_allocators; i++)
			allocate[i](LEAK_BYTES);
		usleep(10000);
	}
}

static void load(char **paths)
{
	for (nr_allocators = 0; *paths && nr_allocators < MAX_LIBRARIES; paths++) {
		void *library = dlopen(*paths, RTLD_NOW | RTLD_LOCAL);

		if (!library)
			exit(1);
		allocate[nr_allocators++] = (void *(*)(size_t))dlsym(library, "malloc");
	}
}

static void map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const volatile char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);

	if (code == MAP_FAILED)
		exit(1);
	(void)*code;
}

static void *run_exec(void *path)
{
	execl(path, path, "leak", (char *)NULL);
	exit(1);
}

int main(int argc, char **argv)
{
	char **arguments = argv + 1, path[] = "/proc/self/exe", line;
	pthread_t thread;

	if (argc > 1 && strcmp(argv[1], "leak") == 0)
		leak();
	arguments += argc > 1 && strcmp(argv[1], "--wait") == 0;
	dprintf(STDOUT_FILENO, "ready %d\n", (int)getpid());
	if (!*arguments || read(STDIN_FILENO, &line, 1) < 0)
		return 1;
	if (strcmp(*arguments, "fork") == 0 && fork() > 0) {
		pause();
		return 1;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(*arguments, "exec") == 0) {
		pthread_create(&thread, NULL, run_exec, path);
		pause();
	} else if (strcmp(*arguments, "load") == 0) {
		load(arguments + 1);
	} else if (strcmp(*arguments, "map") == 0) {
		map(arguments[1]);
	}
	leak();
}
