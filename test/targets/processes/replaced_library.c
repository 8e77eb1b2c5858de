// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Replaces the allocator that it has loaded by a link to another file, then forks:
 * `replaced_library [--wait] LIBRARY OTHER` has loaded LIBRARY by dlopen() when it prints that it
 * is ready. This process and its child call the library's functions; then it prints "forked" and
 * waits for another line.
 *
 * Exact: the calls of the library's functions, and held_*.
 */
#include "truth.h"

#include <dlfcn.h>

struct allocator {
	void *(*malloc)(size_t size_bytes);
	void (*free)(void *p);
};

static struct allocator loaded;

/* truth.h's macros call these. */
#define malloc(size_bytes) loaded.malloc(size_bytes)
#define free(p)		   loaded.free(p)

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		truth_die("replaced_library: cannot load the library\n");
	loaded.malloc = (void *(*)(size_t))dlsym(library, "malloc");
	loaded.free = (void (*)(void *))dlsym(library, "free");
}

/* Some blocks are freed and some are held. */
static void work(size_t size_bytes)
{
	for (size_t i = 0; i < 20; i++) {
		void *block = t_malloc(size_bytes);

		if (i % 4 != 0)
			t_free(block);
	}
}

int main(int argc, char **argv)
{
	pid_t child;
	char go;

	if (argc < 3)
		truth_die("replaced_library: LIBRARY OTHER\n");
	load(argv[argc - 2]);
	truth_init(argc, argv);
	truth_begin();
	work(5001);
	if (unlink(argv[argc - 2]) || symlink(argv[argc - 1], argv[argc - 2]))
		truth_die("replaced_library: cannot replace the library\n");
	child = fork();
	if (child == 0) {
		truth_forked();
		work(5002);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	/* Now the test can look at the recorder's effects on other processes. */
	if (write(STDOUT_FILENO, "forked\n", 7) != 7 || read(STDIN_FILENO, &go, 1) != 1)
		truth_die("replaced_library: standard input has ended\n");
	truth_print();
	return 0;
}
