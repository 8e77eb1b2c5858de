// SPDX-License-Identifier: GPL-2.0-or-later
// The blocks of LeakSanitizer's tests, compiler-rt/test/lsan/TestCases, in a program of its own.
// "case TEST/BLOCK VERDICT 0xADDRESS" has LeakSanitizer's verdict, all kinds of roots being in use:
// "held" (no report), "lost" (a direct leak), "lost-through" (an indirect one), or why it has none.
// reach_lsan LIBRARY ["child"]: in a child process. Linked with -fsanitize=leak, it also prints
// LeakSanitizer's own report.
#include "reach.h"
#include "threads.h"

#include <climits>
#include <dlfcn.h>
#include <initializer_list>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

extern "C" __attribute__((weak)) int __lsan_do_recoverable_leak_check();

static const size_t usual = 1337;

static void run(void *(*function)(void *), void *argument, bool detached)
{
	pthread_t thread;

	start(function, argument, nullptr, &thread);
	if (detached)
		pthread_detach(thread);
	else
		pthread_join(thread, nullptr);
}

// --- Data and blocks ---

// Not static: then the compiler would leave out what nothing reads.
void *data_var = (void *)1, *bss_var, *recoverable, **poisoned;
uintptr_t user_pointers[1024];
char unaligned[2 * sizeof(void *)];
struct destructor {
	~destructor()
	{
		p = nullptr;
	}
	void *p = nullptr;
} global_object;
struct with_destructor {
	~with_destructor()
	{
		number = 0;
	}
	char number = 0;
};
with_destructor *empty_array;

static REACH_CASE void data(size_t none)
{
	expect("use_globals_initialized/block", "held", data_var = block_of(usual));
	expect("use_globals_uninitialized/block", "held", bss_var = block_of(usual));
	for (uintptr_t &p : user_pointers) {
		p = (uintptr_t)block_of(sizeof(int *));
		expect("user_pointer/block", "held", (void *)p);
	}
	void **p = (void **)block_of(usual);
	memcpy(unaligned + 1, &p, sizeof(p));
	expect("use_unaligned/block", "lost", p);
	expect("pointer_to_self/block", "lost", p = (void **)block_of(usual));
	*p = p;
	expect("malloc_zero/block", "lost", need(malloc(0)));
	expect("large_allocation_leak/block", "lost", need(malloc(1 << 25)));
	expect("leak_check_at_exit/block", "lost", block_of(usual));
	expect("recoverable_leak_check/block", "lost", block_of(usual));
	expect("recoverable_leak_check/p", "held", recoverable = block_of(23));
	expect("do_leak_check_override/object", "held", global_object.p = block_of(usual));
	expect("do_leak_check_override/block", "lost", block_of(666));
	empty_array = new with_destructor[none];
	expect("new_array_with_dtor_0/block", "held", (char *)empty_array - 8);
	poisoned = (void **)block_of(sizeof(void *));
	expect("use_poisoned_asan/p", "held", poisoned);
	expect("use_poisoned_asan/block", "poisoned", *poisoned = block_of(usual));
}

// Programs tell LeakSanitizer to ignore these; there is nothing of that in their memory.
static REACH_CASE void ignored()
{
	static const char *const tests[][3] = {
		{"disabler/p", "disabler/block", "disabler/q"},
		{"ignore_object/p", "ignore_object/block", "ignore_object/q"},
	};

	for (const auto &names : tests) {
		void **p = (void **)block_of(sizeof(void *));

		expect(names[0], "ignored", p);
		expect(names[1], "ignored", *p = block_of(666));
		expect(names[2], "lost", block_of(usual));
	}
	expect("lsan_annotations/x", "ignored", block_of(sizeof(int)));
	expect("lsan_annotations/y", "ignored", block_of(sizeof(int)));
	expect("lsan_annotations/z", "ignored", block_of(1000000 * sizeof(int)));
	expect("link_turned_off/x", "ignored", block_of(sizeof(int)));
	for (const char *test : {"suppressions_default", "suppressions_file"}) {
		char name[64];

		snprintf(name, sizeof(name), "%s/suppressed", test);
		expect(name, "ignored", block_of(666));
		snprintf(name, sizeof(name), "%s/block", test);
		expect(name, "lost", block_of(usual));
	}
}

static REACH_CASE void mappings()
{
	const size_t page = 4096;

	for (const char *name :
	     {"register_root_region/registered", "register_root_region/not-registered"}) {
		char *p = (char *)mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE))
			abort();
		expect(name, strstr(name, "not") ? "lost" : "held", *(void **)p = block_of(usual));
	}
}

// LeakSanitizer gives up at pages that it may not read: of data, of a block with a mapping of its
// own, in the heap.
static REACH_CASE void leak_check_segv()
{
	static void *forbidden[8192] __attribute__((aligned(4096)));
	const size_t bytes = 16384;
	char *p = (char *)need(malloc(10 << 20)),
	     *page = (char *)(((uintptr_t)p + 4095) & ~(uintptr_t)4095);

	expect("leak_check_segv/mapped", "crash", forbidden[0] = p);
	expect("leak_check_segv/in-heap", "crash",
	       forbidden[1] = p = (char *)need(aligned_alloc(4096, 65536)));
	if (mprotect(page, bytes, PROT_NONE) || mprotect(p, bytes, PROT_NONE) ||
	    mprotect(forbidden, bytes, PROT_NONE))
		abort();
}

// --- Stacks ---

// Far below what is called next.
static REACH_CASE void stale_stack()
{
	void *volatile locals[2048];

	expect("stale_stack_leak/block", "lost", locals[0] = block_of(usual));
}

static ucontext_t original, child_context;

static REACH_CASE void coroutine(int on_heap)
{
	expect(on_heap ? "swapcontext/on-heap" : "swapcontext/on-stack",
	       on_heap ? "ignored" : "lost", block_of(666 * sizeof(int)));
}

static REACH_CASE void run_coroutine(char *stack, size_t bytes, int on_heap)
{
	getcontext(&child_context);
	child_context.uc_stack.ss_sp = stack;
	child_context.uc_stack.ss_size = bytes;
	child_context.uc_link = &original;
	makecontext(&child_context, (void (*)())coroutine, 1, on_heap);
	swapcontext(&original, &child_context);
}

static REACH_CASE void swapcontext_test()
{
	char in_frame[65536] __attribute__((aligned(16)));
	char *on_heap = (char *)block_of(1 << 20);

	run_coroutine(in_frame, sizeof(in_frame), 0);
	memset(in_frame, 0, sizeof(in_frame));
	run_coroutine(on_heap, 1 << 20, 1);
	free(on_heap);
}

// --- Threads ---

__thread void *tls_var, *many_vars[5];
__thread void *before_fork;
static pthread_key_t near_key, far_key, destroyed_key, ending_key, many_keys[PTHREAD_KEYS_MAX];
static size_t nr_many_keys;
static pthread_mutex_t never_unlocked = PTHREAD_MUTEX_INITIALIZER;

static REACH_CASE void *use_registers(void *unused)
{
	void *block = block_of(usual);

	expect("use_registers/block", "held", block);
	clear_stack();
	sem_post(&ready);
	HOLD_IN("mov %%rax, %%r12\n", block);
	return unused;
}

static REACH_CASE void *use_registers_extra(void *unused)
{
	void *block = block_of(usual);

	expect("use_registers_extra/block", "held", block);
	clear_stack();
	sem_post(&ready);
	HOLD_IN("movq %%rax, %%xmm0\n xor %%r12d, %%r12d\n", block);
	return unused;
}

static REACH_CASE void *use_stacks_threaded(void *unused)
{
	void *volatile block = block_of(usual);

	expect("use_stacks_threaded/block", "held", block);
	sleep_for_ever();
	(void)block;
	return unused;
}

static REACH_CASE void *many_tls_keys(void *unused)
{
	for (size_t i = 0; i < nr_many_keys; i++) {
		pthread_setspecific(many_keys[i], block_of(123));
		expect("many_tls_keys_pthread/block", "held", pthread_getspecific(many_keys[i]));
	}
	for (size_t i = 0; i < 5; i++)
		expect("many_tls_keys_thread/block", "held",
		       many_vars[i] = block_of(1111 * (i + 1)));
	clear_stack();
	sleep_for_ever();
	return unused;
}

static void waits_in_destructor(void *unused)
{
	(void)unused;
	clear_stack();
	sleep_for_ever();
}

static REACH_CASE void *cleanup_in_tsd_destructor(void *unused)
{
	dlsym(RTLD_DEFAULT, "no_such_symbol"); // detached_thread_dlsym: the libc keeps its message
	expect("cleanup_in_tsd_destructor/block", "held", tls_var = block_of(usual));
	pthread_setspecific(ending_key, (void *)1);
	return unused;
}

static void allocates_in_destructor(void *unused)
{
	(void)unused;
	expect("disabler_in_tsd_destructor/block", "ignored", block_of(usual));
}

static REACH_CASE void *disabler_in_tsd_destructor(void *unused)
{
	pthread_setspecific(destroyed_key, (void *)1);
	return unused;
}

static REACH_CASE void *waits_for_mutex(void *argument)
{
	sem_post(&ready);
	pthread_mutex_lock(&never_unlocked);
	free(argument);
	return nullptr;
}

static REACH_CASE void leak_check_before_thread_started()
{
	void *argument = block_of(usual);

	expect("leak_check_before_thread_started/argument", "held", argument);
	pthread_mutex_lock(&never_unlocked);
	start(waits_for_mutex, argument, nullptr, nullptr);
	argument = nullptr;
	sem_wait(&ready);
}

static ucontext_t guarded;

static REACH_CASE void guarded_coroutine()
{
	sleep_for_ever();
}

static REACH_CASE void *guard_page(void *unused)
{
	void *stack = block_of(4096);

	expect("guard-page/stack", "held", stack);
	getcontext(&guarded);
	guarded.uc_stack.ss_sp = stack;
	guarded.uc_stack.ss_size = 4096;
	stack = nullptr;
	makecontext(&guarded, guarded_coroutine, 0);
	setcontext(&guarded);
	return unused;
}

static volatile pid_t ended;

static REACH_CASE void *returns_block(void *verdict)
{
	void *block = block_of(234);

	expect("create_thread_leak/result", (const char *)verdict, block);
	ended = (pid_t)syscall(SYS_gettid);
	return block;
}

static REACH_CASE void *keeps_argument(void *argument)
{
	(void)argument;
	return nullptr;
}

static REACH_CASE void create_thread_leak()
{
	char path[64];

	for (int i = 0; i < 10; i++) {
		void *argument = block_of(123);

		expect("create_thread_leak/argument", "lost", argument);
		run(keeps_argument, argument, false);
		argument = nullptr;
		run(returns_block, (void *)"lost", false);
		ended = 0;
		run(returns_block, (void *)"lost", true);
		while (!ended)
			usleep(1000);
		snprintf(path, sizeof(path), "/proc/self/task/%d", ended);
		while (access(path, F_OK) == 0)
			usleep(1000);
	}
}

static REACH_CASE void threads()
{
	if (pthread_key_create(&near_key, nullptr) ||
	    pthread_key_create(&ending_key, waits_in_destructor) ||
	    pthread_key_create(&destroyed_key, allocates_in_destructor))
		abort();
	while (nr_many_keys < PTHREAD_KEYS_MAX &&
	       pthread_key_create(&many_keys[nr_many_keys], nullptr) == 0)
		nr_many_keys++;
	far_key = many_keys[32];
	create_thread_leak();
	run(disabler_in_tsd_destructor, nullptr, false);
	start_and_wait(cleanup_in_tsd_destructor);
	start_and_wait(use_registers);
	start_and_wait(use_registers_extra);
	start_and_wait(use_stacks_threaded);
	start_and_wait(guard_page);
	leak_check_before_thread_started();
	for (int i = 0; i < 10; i++)
		start_and_wait(many_tls_keys);
}

static REACH_CASE void thread_locals(const char *path)
{
	void *library = need(dlopen(path, RTLD_NOW)), *block = block_of(usual);
	void (*set)(int, void *) = (void (*)(int, void *))need(dlsym(library, "reach_set"));

	set(1, block);
	expect("use_tls_dynamic/block", "held", block);
	expect("use_tls_static/block", "held", tls_var = block_of(usual));
	pthread_setspecific(near_key, block_of(usual));
	expect("use_tls_pthread_specific_static/block", "held", pthread_getspecific(near_key));
	pthread_setspecific(far_key, block_of(usual));
	expect("use_tls_pthread_specific_dynamic/block", "held", pthread_getspecific(far_key));
}

// --- The process ---

static sigset_t alarms;

static void handler(int)
{
}

// signal_during_stop_the_world
static void interrupt_always()
{
	struct sigaction action = {};
	itimerval every = {{0, 1000}, {0, 1000}};

	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	if (sigaction(SIGALRM, &action, nullptr) || setitimer(ITIMER_REAL, &every, nullptr) ||
	    pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr))
		abort();
}

// exit_atexit_stale_stack: the same frame again, which does not write to its variable.
static REACH_CASE void frame(bool writes)
{
	void *volatile slots[8];

	if (writes) {
		expect("exit_atexit_stale_stack/block", "lost", slots[3] = block_of(100));
		return;
	}
	__asm__ volatile("" : : "r"(slots) : "memory");
	wait_now();
}

static REACH_CASE void in_child()
{
	before_fork = block_of(usual);
	pid_t pid = fork();
	if (pid) {
		int status;

		waitpid(pid, &status, 0);
		exit(!WIFEXITED(status) || WEXITSTATUS(status));
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	expect("fork_threaded/block", "held", before_fork);
	for (int i = 0; i < 10; i++)
		expect("fork_and_leak/block", "lost", block_of(usual));
}

int main(int argc, char **argv)
{
	void *volatile on_stack;

	sem_init(&ready, 0, 0);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms,
			nullptr); // one thread has a stack that is too small for a signal
	if (argc > 2)
		in_child();
	expect("use_stacks/block", "held", on_stack = block_of(usual));
	data(argc / 100);
	ignored();
	mappings();
	threads();
	thread_locals(argv[1]);
	swapcontext_test();
	if (!__lsan_do_recoverable_leak_check)
		leak_check_segv();
	interrupt_always();
	clear_stack();
	stale_stack();
	frame(true);
	if (__lsan_do_recoverable_leak_check)
		__lsan_do_recoverable_leak_check();
	frame(false);
	recoverable = nullptr;
	wait_for_line();
	(void)on_stack;
	return 0;
}
