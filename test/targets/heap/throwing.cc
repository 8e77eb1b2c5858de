// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Exceptions, forced unwinding, jumps and coroutines that leave probed functions: C++'s operators,
 * and open_thing(), which gives what close_thing() takes. Built with OWN_OPERATORS it has operators
 * of its own, on an arena.
 *
 * Prints "truth held_SIZE N" for the blocks that it keeps, "truth thing_given N", "truth
 * thing_taken N", "truth thing_held N" and "truth thrown N". It exits with 0 only if each exception
 * was caught where it should be. --things: only opens things. --switch: opens one in a coroutine
 * that changes its thread.
 */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define TOO_MUCH     ((std::size_t)1 << 50)
#define NOINLINE     __attribute__((noinline))
#define NR_ROUNDS    60
#define NR_THREADS   4
#define MAX_DEPTH    40
#define NR_THINGS    64
#define ARENA_BYTES  (1 << 22)
#define STACK_BYTES  65536
#define HELD_REFUSED 3001
#define HELD_HANDLER 3002
#define HELD_DEEP    3003
#define HELD_THREAD  3004
#define HELD_CHILD   3005

static long nr_thrown, nr_given, nr_taken, nr_held[8];

static long add(long *counter, long n)
{
	return __atomic_add_fetch(counter, n, __ATOMIC_SEQ_CST);
}

static void expect(bool is_so, const char *what)
{
	if (is_so)
		return;
	dprintf(2, "throwing: %s\n", what);
	_exit(97);
}

#ifdef OWN_OPERATORS
static char arena[ARENA_BYTES];
static std::size_t arena_used;

void *operator new(std::size_t size)
{
	std::size_t rounded = (size + 15) & ~(std::size_t)15, at;

	while (size >= sizeof(arena)) {
		std::new_handler handler = std::get_new_handler();

		if (!handler)
			throw std::bad_alloc();
		handler();
	}
	at = __atomic_fetch_add(&arena_used, rounded, __ATOMIC_SEQ_CST);
	if (at + rounded > sizeof(arena))
		throw std::bad_alloc();
	return arena + at;
}

void *operator new[](std::size_t size)
{
	return operator new(size);
}

void operator delete(void *) noexcept
{
}

void operator delete(void *, std::size_t) noexcept
{
}

void operator delete[](void *) noexcept
{
}

void operator delete[](void *, std::size_t) noexcept
{
}
#endif

/* Hides the block from the compiler. */
static char *pass(char *block)
{
	__asm__ volatile("" : "+r"(block) : : "memory");
	return block;
}

static void keep(int size)
{
	pass(new char[(std::size_t)size]);
	add(&nr_held[size - HELD_REFUSED], 1);
}

static NOINLINE bool is_refused(std::size_t size)
{
	try {
		pass(new char[size]);
	} catch (const std::bad_alloc &) {
		add(&nr_thrown, 1);
		return true;
	}
	return false;
}

/* Throws between allocations, some of which are released. */
static void refuse(int held_size)
{
	std::size_t volatile too_much = TOO_MUCH;

	for (int i = 0; i < NR_ROUNDS; i++) {
		char *block;

		expect(is_refused(too_much), "a block too large was not refused");
		block = pass(new char[100 + (std::size_t)i]);
		if (i % 3 == 0)
			keep(held_size);
		delete[] block;
	}
	expect(!pass(new (std::nothrow) char[too_much]), "new (nothrow) was not refused");
}

/* The handler allocates by the operator that called it, catches exceptions of its own, and throws. */
static NOINLINE void handle_refusal()
{
	keep(HELD_HANDLER);
	std::set_new_handler(nullptr);
	expect(is_refused(TOO_MUCH), "no exception in the handler");
	try {
		throw std::runtime_error("first");
	} catch (const std::runtime_error &) {
		expect(is_refused(TOO_MUCH), "no exception in a catch clause");
	}
	throw std::bad_alloc();
}

static void use_handler()
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		std::set_new_handler(handle_refusal);
		expect(is_refused(TOO_MUCH), "the handler's exception was lost");
	}
	std::set_new_handler(nullptr);
}

/* Throws an exception through @depth frames. */
static NOINLINE void go_deep(int depth, std::size_t size)
{
	char *block = nullptr;

	if (depth > 0) {
		go_deep(depth - 1, size);
		return;
	}
	block = pass(new char[size]);
	delete[] block;
}

static void throw_from_depths()
{
	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		try {
			go_deep(depth, TOO_MUCH);
			expect(false, "no exception from a depth");
		} catch (const std::bad_alloc &) {
			add(&nr_thrown, 1);
			keep(HELD_DEEP);
		}
		go_deep(depth, 50);
	}
}

static void *run_thread(void *)
{
	refuse(HELD_THREAD);
	return nullptr;
}

static void use_threads()
{
	pthread_t threads[NR_THREADS];

	for (pthread_t &thread : threads)
		expect(!pthread_create(&thread, nullptr, run_thread, nullptr), "no thread");
	for (pthread_t &thread : threads)
		pthread_join(thread, nullptr);
}

static void fork_between()
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		long before = nr_held[HELD_CHILD - HELD_REFUSED];

		refuse(HELD_CHILD);
		_exit(nr_held[HELD_CHILD - HELD_REFUSED] - before == NR_ROUNDS / 3 ? 0 : 96);
	}
	expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child failed");
	add(&nr_held[HELD_CHILD - HELD_REFUSED], NR_ROUNDS / 3);
}

/* --- open_thing() and close_thing() --- */

enum way { RETURN, THROW, JUMP, WAIT, SWITCH, EXIT };

static int things[NR_THINGS];
static std::jmp_buf jump_out;
static int wake[2], waiting[2];
static ucontext_t main_context, own_context;

extern "C" {

NOINLINE int *open_thing(enum way way, int number)
{
	char byte = 0;

	switch (way) {
	case RETURN:
		break;
	case THROW:
		throw std::runtime_error("busy");
	case JUMP:
		std::longjmp(jump_out, 1);
	case WAIT: /* the thread is cancelled here */
		expect(write(waiting[1], &byte, 1) == 1, "no pipe");
		expect(read(wake[0], &byte, 1) == 1, "no pipe");
		break;
	case SWITCH:
		swapcontext(&own_context, &main_context);
		break;
	case EXIT:
		pthread_exit(nullptr);
	}
	add(&nr_given, 1);
	return &things[number];
}

NOINLINE void close_thing(int *thing)
{
	add(&nr_taken, thing != nullptr);
	__asm__ volatile("");
}
}

static NOINLINE void jump_over(int number)
{
	if (setjmp(jump_out) == 0)
		open_thing(JUMP, number);
}

static void open_and_throw()
{
	for (int i = 0; i < NR_THINGS; i++) {
		try {
			int *thing = open_thing(i % 4 == 3 ? THROW : RETURN, i);

			if (i % 4)
				close_thing(thing);
		} catch (const std::runtime_error &) {
			add(&nr_thrown, 1);
		}
		jump_over(i);
	}
}

struct cleanup {
	bool *was_run;
	~cleanup() { *was_run = true; }
};

static bool was_cleaned;

static void *be_cancelled(void *)
{
	struct cleanup cleanup = {&was_cleaned};

	open_thing(WAIT, 0);
	return nullptr;
}

static void *exit_inside(void *)
{
	struct cleanup cleanup = {&was_cleaned};

	open_thing(EXIT, 0);
	return nullptr;
}

static void unwind_threads()
{
	pthread_t thread;
	void *result;
	char byte;

	expect(!pthread_create(&thread, nullptr, be_cancelled, nullptr), "no thread");
	expect(read(waiting[0], &byte, 1) == 1, "no pipe");
	pthread_cancel(thread);
	pthread_join(thread, &result);
	expect(result == PTHREAD_CANCELED && was_cleaned, "cancelled without a cleanup");
	was_cleaned = false;
	expect(!pthread_create(&thread, nullptr, exit_inside, nullptr), "no thread");
	pthread_join(thread, nullptr);
	expect(was_cleaned, "pthread_exit() without a cleanup");
}

static void run_coroutine()
{
	close_thing(open_thing(SWITCH, 1));
}

static void *resume(void *)
{
	swapcontext(&main_context, &own_context);
	return nullptr;
}

/* A coroutine that starts on one thread and continues on another. */
static void switch_threads()
{
	static char stack[STACK_BYTES];
	pthread_t thread;

	getcontext(&own_context);
	own_context.uc_stack.ss_sp = stack;
	own_context.uc_stack.ss_size = sizeof(stack);
	own_context.uc_link = &main_context;
	makecontext(&own_context, run_coroutine, 0);
	swapcontext(&main_context, &own_context);
	expect(!pthread_create(&thread, nullptr, resume, nullptr), "no thread");
	pthread_join(thread, nullptr);
}

/* --- */

static void tell(const char *name, long value)
{
	dprintf(1, "truth %s %ld\n", name, value);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[argc - 1] : "";
	char line;

	if (argc > 1 && strcmp(argv[1], "--wait") == 0) {
		dprintf(1, "ready %d\n", (int)getpid());
		expect(read(0, &line, 1) == 1, "no line on standard input");
	}
	expect(!pipe(wake) && !pipe(waiting), "no pipe");
	if (strcmp(what, "--things") == 0) {
		open_and_throw();
		unwind_threads();
	} else if (strcmp(what, "--switch") == 0) {
		switch_threads();
	} else {
		refuse(HELD_REFUSED);
		use_handler();
		throw_from_depths();
		use_threads();
		fork_between();
	}
	for (int i = 0; i < HELD_CHILD - HELD_REFUSED + 1; i++) {
		char name[32];

		std::snprintf(name, sizeof(name), "held_%d", HELD_REFUSED + i);
		if (nr_held[i])
			tell(name, nr_held[i]);
	}
	tell("thing_given", nr_given);
	tell("thing_taken", nr_taken);
	tell("thing_held", nr_given - nr_taken);
	tell("thrown", nr_thrown);
	_exit(0);
}
