// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loads allocators while it runs: `late_allocator [--wait] LIBRARY...` opens each library by
 * dlopen() and calls its malloc, calloc and free, from the first instruction after dlopen() on, in
 * this process and then in a forked child. With --first-ends the first thread has ended by then.
 *
 * Exact: the calls of the libraries' functions, and held_*. dlopen() itself allocates, too.
 */
#include "truth.h"

#include <dlfcn.h>
#include <sys/syscall.h>

struct allocator {
	void *(*malloc)(size_t size_bytes);
	void *(*calloc)(size_t n, size_t size_bytes);
	void (*free)(void *p);
};

static struct allocator late;

/* truth.h's macros call these. */
#define malloc(size_bytes)    late.malloc(size_bytes)
#define calloc(n, size_bytes) late.calloc(n, size_bytes)
#define free(p)		      late.free(p)

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		truth_die("late_allocator: cannot load the library\n");
	late.malloc = (void *(*)(size_t))dlsym(library, "malloc");
	late.calloc = (void *(*)(size_t, size_t))dlsym(library, "calloc");
	late.free = (void (*)(void *))dlsym(library, "free");
}

/* Of each size, some blocks are freed and some are held. */
static void work(size_t size_bytes)
{
	for (size_t i = 0; i < 20; i++) {
		void *block = i % 3 ? t_malloc(size_bytes) : t_calloc(1, size_bytes);

		if (i % 4 != 0)
			t_free(block);
	}
}

static void run(int argc, char **argv)
{
	size_t size_bytes = 5001;
	pid_t child;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-')
			continue;
		load(argv[i]);
		work(size_bytes++);
	}
	child = fork();
	if (child == 0) {
		truth_forked();
		work(size_bytes);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	truth_print();
}

struct arguments {
	int argc;
	char **argv;
};

/* Only the kernel clears the id: set_tid_address(2). */
static volatile pid_t first_thread;

static void *run_when_first_ended(void *arg)
{
	struct arguments *arguments = arg;

	while (first_thread)
		usleep(1000);
	run(arguments->argc, arguments->argv);
	_exit(0);
}

int main(int argc, char **argv)
{
	static struct arguments arguments;
	struct truth_thread thread;

	arguments = (struct arguments){argc, argv};
	truth_init(argc, argv);
	if (!truth_flag(argc, argv, "--first-ends")) {
		truth_begin();
		run(argc, argv);
		return 0;
	}
	first_thread = getpid();
	truth_thread_start(&thread, run_when_first_ended, &arguments);
	truth_begin();
	syscall(SYS_set_tid_address, &first_thread);
	/* pthread_exit() would load a library, which allocates. */
	syscall(SYS_exit, 0);
}
