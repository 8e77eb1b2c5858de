/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds dumps of this program's own stack, and compares the result with the functions that it
 * called and with backtrace(3).
 */
#include "unwind/stacks/stack_store.h"

#include "common/scope.h"

#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#define MAX_DUMP_BYTES (64u << 10)
#define NO_TAIL_CALL() __asm__ volatile("")
#if __has_attribute(noipa)
/* Otherwise GCC names a changed copy "level_1.isra.0". */
#define NOT_CLONED __attribute__((noipa))
#else
#define NOT_CLONED __attribute__((noinline))
#endif
#define NOT_SANITIZED __attribute__((noinline, no_sanitize("address", "undefined")))

/* A stack as perf would sample it, and backtrace(3)'s result. */
static struct captured {
	uint64_t regs[33];
	uint64_t regs_mask, sp;
	uint8_t bytes[MAX_DUMP_BYTES];
	size_t nr_bytes;
	void *backtrace[64];
	int nr_backtrace;
} captured;

/* The top of this thread's stack. */
static uint64_t stack_end(void)
{
	pthread_attr_t attr;
	size_t size = 0;
	void *start = NULL;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	pthread_attr_getstack(&attr, &start, &size);
	pthread_attr_destroy(&attr);
	return (uint64_t)start + size;
}

/* Reads whole frames, which the sanitizer would report. */
NOT_SANITIZED static void copy_stack(uint64_t sp, uint64_t end)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): an address from a register */
	const volatile uint64_t *from = (const uint64_t *)sp;
	size_t nr = (end - sp) / sizeof(*from);

	if (nr > MAX_DUMP_BYTES / sizeof(*from))
		nr = MAX_DUMP_BYTES / sizeof(*from);
	for (size_t i = 0; i < nr; i++)
		((uint64_t *)captured.bytes)[i] = from[i];
	captured.nr_bytes = nr * sizeof(*from);
}

#if defined(__x86_64__)
static void set_registers(const ucontext_t *context)
{
	/* In the order of the kernel's asm/perf_regs.h, without flags and segments. */
	static const int order[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
				    REG_RBP, REG_RSP, REG_RIP, REG_R8,	REG_R9,	 REG_R10,
				    REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		captured.regs[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
	captured.regs_mask = 0xff01ff;
	captured.sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
}
#elif defined(__aarch64__)
static void set_registers(const ucontext_t *context)
{
	for (int i = 0; i < 31; i++)
		captured.regs[i] = context->uc_mcontext.regs[i];
	captured.regs[31] = captured.sp = context->uc_mcontext.sp;
	captured.regs[32] = context->uc_mcontext.pc;
	captured.regs_mask = 0x1ffffffff;
}
#endif

NOT_CLONED static int capture(void)
{
	ucontext_t context;
	uint64_t end = stack_end();

	captured.nr_backtrace = backtrace(captured.backtrace, ARRAY_SIZE(captured.backtrace));
	getcontext(&context);
	set_registers(&context);
	copy_stack(captured.sp, end);
	return captured.nr_backtrace;
}

/* Twelve functions deep. */
#define DEFINE_LEVEL(n, next)                                                                      \
	NOT_CLONED static int level_##n(int (*f)(void))                                            \
	{                                                                                          \
		int result = (next);                                                               \
                                                                                                   \
		NO_TAIL_CALL();                                                                    \
		return result + (n);                                                               \
	}
DEFINE_LEVEL(1, f())
DEFINE_LEVEL(2, level_1(f))
DEFINE_LEVEL(3, level_2(f))
DEFINE_LEVEL(4, level_3(f))
DEFINE_LEVEL(5, level_4(f))
DEFINE_LEVEL(6, level_5(f))
DEFINE_LEVEL(7, level_6(f))
DEFINE_LEVEL(8, level_7(f))
DEFINE_LEVEL(9, level_8(f))
DEFINE_LEVEL(10, level_9(f))
DEFINE_LEVEL(11, level_10(f))
DEFINE_LEVEL(12, level_11(f))

static struct stack_dump captured_dump(void)
{
	return (struct stack_dump){
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = captured.regs_mask,
		.regs = captured.regs,
		.bytes = captured.bytes,
		.nr_bytes = captured.nr_bytes,
	};
}

/* Feeds this process's executable mappings, as perf does. */
static void map_self(struct stack_store *store)
{
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], path[4096], protection[8];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		struct stack_mapping mapping = {.pid = getpid(), .path = path};
		uint64_t end;

		path[0] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]",
			   &mapping.start, &end, protection, &mapping.file_offset, path) < 4 ||
		    protection[2] != 'x')
			continue;
		mapping.len = end - mapping.start;
		assert_int_equal(stack_store_map(store, &mapping), 0);
	}
}

static int setup(void **state)
{
	struct stack_store *store;
	int err = stack_store_create(NULL, &store);

	if (!err)
		map_self(store);
	*state = store;
	return err;
}

static int teardown(void **state)
{
	stack_store_destroy(*state);
	return 0;
}

static uint32_t add_dump(struct stack_store *store)
{
	struct stack_dump dump = captured_dump();
	uint32_t id = STACK_NONE;

	assert_int_equal(stack_store_add_dump(store, getpid(), &dump, &id), 0);
	assert_int_not_equal(id, STACK_NONE);
	return id;
}

static struct stack_frame frame_at(struct stack_store *store, uint32_t id, size_t index)
{
	struct stack_frame frame;

	assert_int_equal(stack_store_frame(store, id, index, &frame), 0);
	return frame;
}

static void assert_function(struct stack_store *store, uint32_t id, size_t index, const char *name)
{
	struct stack_frame frame = frame_at(store, id, index);

	assert_non_null(frame.function);
	assert_string_equal(frame.function, name);
}

static void assert_levels(struct stack_store *store, uint32_t id, size_t first)
{
	for (int level = 1; level <= 12; level++) {
		char name[16];

		snprintf(name, sizeof(name), "level_%d", level);
		assert_function(store, id, first + (size_t)level - 1, name);
	}
}

/*
 * Compares all frames but the innermost, where another instruction called backtrace(). Under a
 * sanitizer backtrace() starts in the sanitizer's wrapper, a frame earlier.
 */
static void assert_as_backtrace(struct stack_store *store, uint32_t id)
{
	size_t nr = stack_store_nr_frames(store, id), skipped = (size_t)captured.nr_backtrace - nr;

	assert_in_range(skipped, 0, 1);
	for (size_t i = 1; i < nr; i++)
		assert_int_equal(frame_at(store, id, i).address,
				 (uint64_t)captured.backtrace[i + skipped]);
}

static void unwinds_to_the_start(void **state)
{
	struct stack_store *store = *state;

	level_12(capture);
	uint32_t id = add_dump(store);
	assert_int_equal(stack_store_unwind_failures(store), 0);
	assert_int_equal(stack_store_unwind_stats(store)->by_dwfl, 0);
	assert_as_backtrace(store, id);
	assert_function(store, id, 0, "capture");
	assert_levels(store, id, 1);
	assert_function(store, id, 13, __func__);
	assert_function(store, id, stack_store_nr_frames(store, id) - 1, "_start");
}

static void *run_thread(void *unused)
{
	level_12(capture);
	NO_TAIL_CALL();
	return unused;
}

static void unwinds_threads(void **state)
{
	struct stack_store *store = *state;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_thread, NULL), 0);
	pthread_join(thread, NULL);
	uint32_t id = add_dump(store);
	assert_int_equal(stack_store_unwind_failures(store), 0);
	assert_as_backtrace(store, id);
	assert_levels(store, id, 1);
	assert_function(store, id, 13, "run_thread");
}

static void on_signal(int signal)
{
	level_12(capture);
	NO_TAIL_CALL();
}

/*
 * A signal's frame is an interrupted instruction, not a return address: here the first one of a
 * function, so that the byte before it would have another name.
 */
NOT_CLONED static int trap(void)
{
#if defined(__x86_64__)
	__asm__ volatile("int3\n"
			 "	.globl after_trap\n"
			 "	.type after_trap, @function\n"
			 "after_trap:\n"
			 "	nop\n"
			 "	.size after_trap, . - after_trap\n");
#else
	raise(SIGTRAP);
#endif
	return 0;
}

/* Dumps the stack in a signal's handler. */
static uint32_t dump_in_signal(struct stack_store *store, int flags)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
	level_12(trap);
	signal(SIGTRAP, SIG_DFL);
	uint32_t id = add_dump(store);
	assert_int_equal(stack_store_unwind_failures(store), 0);
	assert_levels(store, id, 1);
	assert_function(store, id, 13, "on_signal");
	return id;
}

static void unwinds_through_signals(void **state)
{
	static char own_stack[1 << 20];
	struct stack_store *store = *state;
	if (!getauxval(AT_SYSINFO_EHDR)) /* qemu-user: it has no vdso */
		skip();
	uint32_t id = dump_in_signal(store, 0);

	assert_as_backtrace(store, id);
#if defined(__x86_64__)
	extern const char after_trap[];
	struct stack_frame frame = frame_at(store, id, 15);

	assert_int_equal(frame.address, (uint64_t)after_trap);
	assert_string_equal(frame.function, "after_trap");
	assert_int_equal(frame.function_offset, 0);
	assert_levels(store, id, 16);
#endif
	/* With a stack of its own: the dump holds nothing of the interrupted one. */
	sigaltstack(&(stack_t){.ss_sp = own_stack, .ss_size = sizeof(own_stack) / 2}, NULL);
	id = dump_in_signal(store, SA_ONSTACK);
	assert_int_equal(frame_at(store, id, 16).address, STACK_ELSEWHERE);
}

static void same_stack_same_id(void **state)
{
	struct stack_store *store = *state;
	uint32_t first = STACK_NONE, again = STACK_NONE, other;

	/* volatile: an unrolled loop would call from two places */
	for (volatile int i = 0; i < 2; i++) {
		again = first;
		level_12(capture);
		first = add_dump(store);
	}
	assert_int_equal(first, again);
	level_11(capture);
	other = add_dump(store);
	assert_int_not_equal(first, other);

	/* As a callchain it is the same stack. */
	uint64_t addresses[64];
	size_t nr = stack_store_nr_frames(store, first);
	for (size_t i = 0; i < nr; i++)
		addresses[i] = frame_at(store, first, i).address;
	assert_int_equal(stack_store_add_callchain(store, getpid(), addresses, nr, &again), 0);
	assert_int_equal(again, first);
}

static void short_dumps_count_as_failures(void **state)
{
	struct stack_store *store = *state;
	size_t last_nr = 0;

	level_12(capture);
	size_t full = captured.nr_bytes;
	uint32_t whole = add_dump(store);
	size_t whole_nr = stack_store_nr_frames(store, whole);
	assert_int_equal(stack_store_unwind_failures(store), 0);

	uint64_t failures = 0;
	for (size_t size = 0; size < full; size += 8) {
		captured.nr_bytes = size;
		uint32_t id = add_dump(store);
		size_t nr = stack_store_nr_frames(store, id);
		bool is_marked = frame_at(store, id, nr - 1).address == STACK_TRUNCATED;

		nr -= is_marked;
		/* More bytes give more frames, and all of them are right. */
		assert_true(nr >= last_nr && nr <= whole_nr);
		for (size_t i = 0; i < nr; i++)
			assert_int_equal(frame_at(store, id, i).address,
					 frame_at(store, whole, i).address);
		assert_int_equal(is_marked, nr < whole_nr);
		if (nr == whole_nr)
			break;
		failures++;
		assert_int_equal(stack_store_unwind_failures(store), failures);
		last_nr = nr;
	}
	assert_int_equal(last_nr, whole_nr - 1);

	const struct stack_unwind_stats *stats = stack_store_unwind_stats(store);
	assert_int_equal(stats->truncated, failures);
	assert_int_equal(stats->lost, 0);
}

static void unwinds_to_addresses(void **state)
{
	struct stack_store *store = *state;
	const uint64_t *addresses;
	struct stack_end end;
	size_t nr;

	level_12(capture);
	uint32_t id = add_dump(store);
	struct stack_dump dump = captured_dump();
	assert_int_equal(stack_store_unwind_dump(store, getpid(), &dump, &addresses, &nr, &end), 0);
	assert_int_equal(nr, stack_store_nr_frames(store, id));
	assert_true(end.is_whole);
	assert_false(end.is_truncated);
	assert_true(end.top > captured.sp);
	assert_true(end.top <= captured.sp + dump.nr_bytes);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(frame_at(store, id, i).address, addresses[i]);

	dump.returned_from = (uint64_t)capture;
	dump.nr_bytes = 256;
	assert_int_equal(stack_store_unwind_dump(store, getpid(), &dump, &addresses, &nr, &end), 0);
	assert_true(end.is_truncated);
	assert_true(end.top > captured.sp + dump.nr_bytes);
	assert_int_equal(addresses[0], dump.returned_from);
	assert_int_equal(addresses[1], frame_at(store, id, 0).address);
}

#if defined(__x86_64__)
/* Trampolines of return probes replace the return addresses of level_3 and level_7. */
static void knows_pending_returns(void **state)
{
	static const uint64_t trampoline = 0x7fffffffe000;
	struct stack_store *store = *state;
	uint64_t whole[STACK_MAX_FRAMES], pending[2];
	const uint64_t *addresses;
	size_t nr, nr_whole, nr_pending = 0;
	struct stack_end end;

	level_12(capture);
	struct stack_dump dump = captured_dump();
	assert_int_equal(
		stack_store_unwind_dump(store, getpid(), &dump, &addresses, &nr_whole, &end), 0);
	memcpy(whole, addresses, nr_whole * sizeof(*whole));
	/* Frame 4 is level_4, to which level_3 returns. */
	for (size_t i = 0; i + 8 <= captured.nr_bytes && nr_pending < 2; i += 8) {
		uint64_t *word = (uint64_t *)(captured.bytes + i);

		if (*word == whole[nr_pending ? 8 : 4]) {
			pending[nr_pending++] = *word;
			*word = trampoline;
		}
	}
	assert_int_equal(nr_pending, 2);
	assert_int_equal(stack_store_unwind_dump(store, getpid(), &dump, &addresses, &nr, &end), 0);
	/* With frame pointers it continues, but level_4's address is lost. */
	assert_true(nr >= 5);
	assert_int_equal(addresses[4], trampoline);

	const struct stack_mapping mapping = {
		.pid = getpid(), .start = trampoline, .len = 4096, .path = "[uprobes]"};
	dump.pending_returns = pending;
	dump.nr_pending_returns = 2;
	for (int mapped = 0; mapped < 2; mapped++) {
		assert_int_equal(
			stack_store_unwind_dump(store, getpid(), &dump, &addresses, &nr, &end), 0);
		assert_int_equal(nr, nr_whole);
		assert_memory_equal(addresses, whole, nr * sizeof(*whole));
		assert_int_equal(stack_store_map(store, &mapping), 0);
	}
}

/* Its CFA is rsp + 16 + 0, in a form that compilers do not use. */
int call_strangely(int (*f)(void));
__asm__("	.globl call_strangely\n"
	"	.type call_strangely, @function\n"
	"call_strangely:\n"
	"	.cfi_startproc\n"
	"	sub $8, %rsp\n"
	"	.cfi_escape 0x0f, 0x04, 0x77, 0x10, 0x30, 0x22\n"
	"	call *%rdi\n"
	"	add $8, %rsp\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size call_strangely, . - call_strangely\n");

static int capture_below_strange_code(void)
{
	int result = call_strangely(capture);

	NO_TAIL_CALL();
	return result;
}

static void leaves_strange_code_to_libdwfl(void **state)
{
	struct stack_store *store = *state;

	level_12(capture_below_strange_code);
	uint32_t id = add_dump(store);
	assert_int_equal(stack_store_unwind_stats(store)->by_dwfl, 1);
	assert_int_equal(stack_store_unwind_failures(store), 0);
	assert_as_backtrace(store, id);
	assert_function(store, id, 1, "call_strangely");
	assert_levels(store, id, 3);
}

/* For generated code there is only a frame pointer. */
static int (*generated_code)(int (*f)(void));

static int call_generated_code(void)
{
	int result = generated_code(capture);

	NO_TAIL_CALL();
	return result;
}

static void follows_frame_pointers_of_generated_code(void **state)
{
	/* push %rbp; mov %rsp,%rbp; sub $64,%rsp; call *%rdi; leave; ret */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83,
				       0xec, 0x40, 0xff, 0xd7, 0xc9, 0xc3};
	struct stack_store *store = *state;
	uint8_t *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(page != MAP_FAILED);
	memcpy(page, code, sizeof(code));
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	memcpy(&generated_code, &page, sizeof(page));
	level_12(call_generated_code);
	uint32_t id = add_dump(store);
	assert_int_equal(stack_store_unwind_failures(store), 0);
	assert_int_equal(stack_store_unwind_stats(store)->by_dwfl, 0);
	assert_int_equal(frame_at(store, id, 1).address, (uint64_t)page + 10);
	assert_function(store, id, 2, "call_generated_code");
	assert_levels(store, id, 3);
	assert_function(store, id, stack_store_nr_frames(store, id) - 1, "_start");
	munmap(page, 4096);
}
#endif

static void dumps_of_unknown_processes(void **state)
{
	struct stack_store *store = *state;
	struct stack_dump dump;
	uint32_t id;

	level_12(capture);
	dump = captured_dump();
	assert_int_equal(stack_store_add_dump(store, getpid() + 1, &dump, &id), 0);
	assert_int_equal(stack_store_nr_frames(store, id), 2);
	assert_int_equal(frame_at(store, id, 1).address, STACK_INCOMPLETE);
	assert_null(frame_at(store, id, 0).module);
	assert_int_equal(stack_store_unwind_failures(store), 1);

	dump.regs_abi = PERF_SAMPLE_REGS_ABI_NONE;
	assert_int_equal(stack_store_add_dump(store, getpid(), &dump, &id), 0);
	assert_int_equal(id, STACK_NONE);
	assert_int_equal(stack_store_unwind_failures(store), 2);
}

static void reads_words_of_the_dump(void **state)
{
	struct stack_dump dump;
	uint64_t value, expected;

	level_12(capture);
	dump = captured_dump();
	memcpy(&expected, captured.bytes + 24, sizeof(expected));
	assert_int_equal(stack_dump_read_u64(&dump, captured.sp + 24, &value), 0);
	assert_int_equal(value, expected);
	assert_int_equal(stack_dump_read_u64(&dump, captured.sp + dump.nr_bytes - 8, &value), 0);
	assert_int_equal(stack_dump_read_u64(&dump, captured.sp + dump.nr_bytes - 7, &value),
			 -EFAULT);
	assert_int_equal(stack_dump_read_u64(&dump, captured.sp - 1, &value), -EFAULT);
	assert_int_equal(stack_dump_read_u64(&dump, UINT64_MAX, &value), -EFAULT);
	dump.nr_bytes = 7;
	assert_int_equal(stack_dump_read_u64(&dump, captured.sp, &value), -EFAULT);
	dump.nr_bytes = UINT64_MAX;
	dump.bytes = NULL;
	assert_int_equal(stack_dump_read_u64(&dump, captured.sp, &value), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(unwinds_to_the_start, setup, teardown),
		cmocka_unit_test_setup_teardown(unwinds_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(unwinds_through_signals, setup, teardown),
		cmocka_unit_test_setup_teardown(same_stack_same_id, setup, teardown),
		cmocka_unit_test_setup_teardown(short_dumps_count_as_failures, setup, teardown),
		cmocka_unit_test_setup_teardown(unwinds_to_addresses, setup, teardown),
#if defined(__x86_64__)
		cmocka_unit_test_setup_teardown(knows_pending_returns, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves_strange_code_to_libdwfl, setup, teardown),
		cmocka_unit_test_setup_teardown(follows_frame_pointers_of_generated_code, setup,
						teardown),
#endif
		cmocka_unit_test_setup_teardown(dumps_of_unknown_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_words_of_the_dump, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
