/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks held by threads: registers, stacks, thread-local variables, coroutines, ended threads. */
#include "reach.h"
#include "threads.h"

#include <asm/prctl.h>
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

static __thread void *volatile local, *volatile local_array[40];
static pthread_key_t near_key, far_key;
void *below_arena;

/* --- Registers --- */

static REACH_CASE void *in_register(void *unused)
{
	void *block = block_of(24);

	expect("register", "held", block);
	clear_stack();
	sem_post(&ready);
	HOLD_IN("mov %%rax, %%r12\n", block);
	return unused;
}

static REACH_CASE void *in_vector(void *unused)
{
	void *block = block_of(24);

	expect("vector-register", "held", block);
	clear_stack();
	sem_post(&ready);
	HOLD_IN("movq %%rax, %%xmm6\n xor %%r12d, %%r12d\n", block);
	return unused;
}

/* Of what it works on, as the runtimes of some languages and emulators do. */
static REACH_CASE void *in_segment_base(void *unused)
{
	void *block = block_of(24);

	expect("segment-base", "held", block);
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, block))
		abort();
	clear_stack();
	sem_post(&ready);
	HOLD_IN("xor %%eax, %%eax\n xor %%r12d, %%r12d\n", block);
	return unused;
}

static REACH_CASE void *in_red_zone(void *unused)
{
	void *block = block_of(24);

	expect("red-zone", "weak", block);
	clear_stack();
	sem_post(&ready);
	HOLD_IN("mov %%rax, -64(%%rsp)\n xor %%r12d, %%r12d\n", block);
	return unused;
}

/* --- Stacks and thread-local variables --- */

static REACH_CASE void leave_on_stack(void)
{
	void *volatile blocks[200]; /* far below what is called next */

	expect("stale-stack", "lost", blocks[3] = block_of(24));
}

static REACH_CASE void *on_stack(void *unused)
{
	void *volatile block = block_of(24);
	void *volatile *dynamic = __builtin_alloca(64);

	expect("thread-stack", "held", block);
	expect("alloca", "held", dynamic[3] = block_of(24));
	expect("thread-local", "held", local = block_of(24));
	expect("thread-local-array", "held", local_array[39] = block_of(24));
	pthread_setspecific(near_key, block_of(24));
	expect("thread-specific", "held", pthread_getspecific(near_key));
	pthread_setspecific(far_key, block_of(24));
	expect("thread-specific-far", "held", pthread_getspecific(far_key));
	expect("thread-arena-lost", "lost", block_of(1000));
	clear_stack();
	leave_on_stack();
	sleep_for_ever();
	(void)block;
	(void)dynamic;
	return unused;
}

static REACH_CASE void *has_argument(void *argument)
{
	sleep_for_ever();
	return argument;
}

static REACH_CASE void start_with_argument(void)
{
	void *block = block_of(24);

	expect("thread-argument", "held", block);
	start(has_argument, block, NULL, NULL);
	block = NULL;
	sem_wait(&ready);
}

static REACH_CASE void start_on_own_stack(void)
{
	pthread_attr_t attributes;
	char *stack =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *block = block_of(24);

	if (stack == MAP_FAILED)
		abort();
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, 1 << 20);
	expect("own-stack", "held", block);
	start(has_argument, block, &attributes, NULL);
	block = NULL;
	sem_wait(&ready);
}

/* --- Descriptors --- */

static REACH_CASE void watch(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll, fds[2];

	if (unshare(CLONE_FILES) || (epoll = epoll_create1(0)) < 0 || pipe(fds))
		abort();
	expect("epoll-own-table", "held", event.data.ptr = block_of(24));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event))
		abort();
}

/* Its descriptors are not the process's. */
static REACH_CASE void *has_own_table(void *unused)
{
	watch();
	clear_stack();
	sleep_for_ever();
	return unused;
}

/* --- Threads that have ended --- */

static REACH_CASE void *ends(void *argument)
{
	void *volatile block = block_of(24);

	expect("ended-thread-stack", "lost", block);
	expect("ended-thread-local", "lost", local = block_of(24));
	(void)argument;
	return NULL;
}

static REACH_CASE void end_one(void)
{
	void *argument = block_of(24);
	pthread_t thread;

	expect("ended-thread-argument", "lost", argument);
	start(ends, argument, NULL, &thread);
	argument = NULL;
	pthread_join(thread, NULL);
}

static REACH_CASE void *returns_block(void *unused)
{
	void *block = block_of(24);

	expect("thread-result", "held", block);
	(void)unused;
	return block;
}

static pthread_t not_joined;

static REACH_CASE void end_unjoined(void)
{
	char path[64];

	start(returns_block, NULL, NULL, &not_joined);
	/* Until the kernel does not list it any more. */
	snprintf(path, sizeof(path), "/proc/self/task/%d", ((int *)not_joined)[720 / 4]);
	while (access(path, F_OK) == 0 && ((volatile int *)not_joined)[720 / 4])
		usleep(1000);
}

/* --- Other stacks --- */

static REACH_CASE void handler(int signal)
{
	void *volatile block = block_of(24);

	expect("signal-stack", "held", block);
	sleep_for_ever();
	(void)signal;
	(void)block;
}

static REACH_CASE void *interrupted(void *unused)
{
	stack_t stack = {.ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			 .ss_size = 65536};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	void *volatile block = block_of(24);

	expect("interrupted-stack", "held", block);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR2, &action, NULL);
	raise(SIGUSR2);
	(void)block;
	return unused;
}

static ucontext_t main_context, contexts[2];

static REACH_CASE void coroutine(int nr)
{
	void *volatile block = block_of(24);

	expect(nr ? "coroutine-mapped" : "coroutine-malloc", "held", block);
	swapcontext(&contexts[nr], &main_context);
	(void)block;
}

static REACH_CASE void start_coroutine(int nr, void *stack)
{
	getcontext(&contexts[nr]);
	contexts[nr].uc_stack.ss_sp = stack;
	contexts[nr].uc_stack.ss_size = 65536;
	contexts[nr].uc_link = &main_context;
	makecontext(&contexts[nr], (void (*)(void))coroutine, 1, nr);
	swapcontext(&main_context, &contexts[nr]);
}

/* A thread that runs on a stack in the heap now. */
static ucontext_t back, on_heap;

static REACH_CASE void heap_coroutine(void)
{
	void *volatile block = block_of(24);

	expect("running-on-heap-stack", "held", block);
	sleep_for_ever();
	(void)block;
}

static REACH_CASE void *on_heap_stack(void *unused)
{
	getcontext(&on_heap);
	on_heap.uc_stack.ss_sp = block_of(65536);
	on_heap.uc_stack.ss_size = 65536;
	on_heap.uc_link = &back;
	makecontext(&on_heap, heap_coroutine, 0);
	swapcontext(&back, &on_heap);
	return unused;
}

/* --- Libraries --- */

typedef void library_set(int, void *);

static REACH_CASE void libraries(const char *path)
{
	void *library = dlopen(path, RTLD_NOW), *block;
	library_set *set = library ? (library_set *)dlsym(library, "reach_set") : NULL;

	if (!set) {
		fprintf(stderr, "%s\n", dlerror());
		abort();
	}
	set(0, block = block_of(24));
	expect("library-data", "held", block);
	set(1, block = block_of(24));
	expect("library-thread-local", "held", block);
}

/* --- Another process in the same memory --- */

static void *volatile given;

static int hold_in_register(void *unused)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	HOLD_IN("mov %%rax, %%r12\n", given);
	return unused != NULL;
}

static REACH_CASE void give_to_process(void)
{
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect("register-of-process", "unknown", given = block_of(24));
	if (stack == MAP_FAILED ||
	    clone(hold_in_register, stack + 65536, CLONE_VM | SIGCHLD, NULL) < 0)
		abort();
	while (given)
		usleep(1000);
}

/* --- The main thread --- */

static REACH_CASE void deep(int levels, const char *library)
{
	void *volatile block = block_of(24);

	if (levels) {
		deep(levels - 1, library);
	} else {
		start_and_wait(in_register);
		start_and_wait(in_vector);
		start_and_wait(in_segment_base);
		start_and_wait(in_red_zone);
		start_and_wait(on_stack);
		start_and_wait(has_own_table);
		start_with_argument();
		start_on_own_stack();
		start_and_wait(interrupted);
		start_and_wait(on_heap_stack);
		start_coroutine(0, block_of(65536));
		start_coroutine(1, mmap(NULL, 65536, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		if (library)
			libraries(library);
		end_one();
		end_unjoined();
		expect("main-local", "held", local = block_of(24));
		pthread_setspecific(near_key, block_of(24));
		expect("main-specific", "held", pthread_getspecific(near_key));
		/* Larger than the gaps between arenas, so it lies directly below the lowest one. */
		expect("mapped-below-arena", "held", below_arena = need(malloc(65 << 20)));
		leave_on_stack();
		expect("main-stack", "held", block);
		wait_for_line();
	}
	(void)block;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--process") == 0) {
		give_to_process();
		wait_for_line();
		return 0;
	}
	sem_init(&ready, 0, 0);
	pthread_key_create(&near_key, NULL);
	for (int i = 0; i < 40; i++)
		pthread_key_create(&far_key, NULL);
	deep(3, argc > 1 ? argv[1] : NULL);
	return 0;
}
