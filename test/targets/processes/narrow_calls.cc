// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Allocates and releases by calls of several kinds, each kind from functions of its own, which are
 * named after it: make_new() and take_new(). Of each kind, one block in ten is never released.
 *
 *   --requests N   so many blocks of each kind (500)
 *   --only KIND    only blocks of this kind
 *   --elsewhere    other_take_...() release the second half
 *   --fork         a child does the same again, at the end, and releases another block of its
 * parent's
 *   --wait         prints "ready PID", and waits for a line on stdin
 *
 * Exact: for each kind and process, "truth KIND_made N" and "truth KIND_taken N"; those of a child
 * are "truth child_KIND_made N".
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

#define EACH_KIND(DO)                                                                              \
	DO(malloc, std::malloc(100), std::free(block))                                             \
	DO(calloc, std::calloc(3, 100), std::free(block))                                          \
	DO(realloc, std::realloc(std::realloc(nullptr, 200), 5000), std::free(block))              \
	DO(new, ::operator new(600), ::operator delete(block))                                     \
	DO(wrapped, wrapper(700), std::free(block))

/* Hides blocks from the compiler, and keeps calls from becoming jumps. */
static void *volatile passed;

static void *pass(void *block)
{
	passed = block;
	return passed;
}

extern "C" {

__attribute__((noinline)) void *wrapper(std::size_t bytes)
{
	return pass(std::malloc(bytes));
}

#define FUNCTIONS(kind, make, take)                                                                \
	__attribute__((noinline)) void *make_##kind()                                              \
	{                                                                                          \
		return pass(make);                                                                 \
	}                                                                                          \
	__attribute__((noinline)) void take_##kind(void *block)                                    \
	{                                                                                          \
		take;                                                                              \
		pass(nullptr);                                                                     \
	}                                                                                          \
	__attribute__((noinline)) void other_take_##kind(void *block)                              \
	{                                                                                          \
		take;                                                                              \
		pass(nullptr);                                                                     \
	}
EACH_KIND(FUNCTIONS)
}

/* What a child is to release. */
#define KEPT(kind, make, take) static void *kept_##kind;
EACH_KIND(KEPT)

static long nr_requests = 500;
static bool elsewhere;
static const char *only = "";

static bool is_chosen(const char *kind)
{
	return !*only || std::strcmp(only, kind) == 0;
}

static void work(const char *of, bool is_parent)
{
#define COUNTERS(kind, make, take) long kind##_made = 0, kind##_taken = 0;
	EACH_KIND(COUNTERS)
#define INHERITED(kind, make, take)                                                                \
	if (kept_##kind) {                                                                         \
		take_##kind(kept_##kind);                                                          \
		kind##_taken++;                                                                    \
	}
	EACH_KIND(INHERITED)

	for (long i = 0; i < nr_requests; i++) {
#define ONE(kind, make, take)                                                                      \
	if (is_chosen(#kind)) {                                                                    \
		void *block = make_##kind();                                                       \
                                                                                                   \
		kind##_made++;                                                                     \
		if (i % 10) {                                                                      \
			if (elsewhere && i >= nr_requests / 2)                                     \
				other_take_##kind(block);                                          \
			else                                                                       \
				take_##kind(block);                                                \
			kind##_taken++;                                                            \
		}                                                                                  \
	}
		EACH_KIND(ONE)
	}
#define KEEP(kind, make, take)                                                                     \
	if (is_parent && is_chosen(#kind)) {                                                       \
		kept_##kind = make_##kind();                                                       \
		kind##_made++;                                                                     \
	}
	EACH_KIND(KEEP)
#define PRINT(kind, make, take)                                                                    \
	std::printf("truth %s" #kind "_made %ld\ntruth %s" #kind "_taken %ld\n", of, kind##_made,  \
		    of, kind##_taken);
	EACH_KIND(PRINT)
	std::fflush(stdout);
}

int main(int argc, char **argv)
{
	bool wait_for_line = false, forks = false;
	char line[16];

	for (int i = 1; i < argc; i++) {
		if (std::strcmp(argv[i], "--requests") == 0 && i + 1 < argc)
			nr_requests = std::atol(argv[++i]);
		if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc)
			only = argv[++i];
		elsewhere |= std::strcmp(argv[i], "--elsewhere") == 0;
		forks |= std::strcmp(argv[i], "--fork") == 0;
		wait_for_line |= std::strcmp(argv[i], "--wait") == 0;
	}
	/* Before anything is recorded: the buffers of stdio. */
	std::printf("ready %d\n", static_cast<int>(getpid()));
	std::fflush(stdout);
	if (wait_for_line && read(STDIN_FILENO, line, sizeof(line)) < 0)
		return 1;
	work("", forks);
	if (forks) {
		pid_t child = fork();

		if (child == 0) {
			work("child_", false);
			_exit(0);
		}
		if (child < 0 || waitpid(child, nullptr, 0) != child)
			return 1;
	}
	return 0;
}
