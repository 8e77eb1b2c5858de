/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks at blocks of this process: which blocks are chosen, and what a look finds. */
#include "common/schema/look_state.h"
#include "recorder/windows/looks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#define MALLOC	   1
#define BYTES	   200
#define SITE	   0x501234
#define OTHER_SITE 0x505678

/* A look that was written. */
struct written {
	uint64_t address, allocated_ns;
	unsigned int state;
};

static struct written written[4096];
static size_t nr_written;

/* What looks.c writes ends here, in place of the writer. */
int perf_writer_add(struct perf_writer *writer, const char *bytes, size_t size, const char *more,
		    size_t more_size)
{
	struct written look;

	/* Behind the common fields, at 60 (own_samples.c): the state; then the values. */
	assert_true(size >= 64 + 8 * LOOK_NR_VALUES && nr_written < 4096);
	memcpy(&look.state, bytes + 60, sizeof(look.state));
	memcpy(&look.address, bytes + 64 + 8 * LOOK_ADDRESS, 8);
	memcpy(&look.allocated_ns, bytes + 64 + 8 * LOOK_ALLOCATED, 8);
	written[nr_written++] = look;
	return 0;
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

/* What memory_reader.c reads with waits until @held is free. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nr_local,
			 const struct iovec *remote, unsigned long nr_remote, unsigned long flags)
{
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	return syscall(SYS_process_vm_readv, pid, local, nr_local, remote, nr_remote, flags);
}

struct fixture {
	struct looks *looks;
	struct held_blocks *held;
	struct target_table *table;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	nr_written = 0;
	fixture->table = calloc(1, sizeof(*fixture->table));
	assert_non_null(fixture->table);
	target_table_add_process(fixture->table, getpid(), true);
	assert_int_equal(looks_create(7, &fixture->looks), 0);
	assert_int_equal(held_blocks_create(100000, &fixture->held), 0);
	assert_int_equal(
		held_blocks_add_event(fixture->held, MALLOC, "leakrec:operator_new_call",
				      "name: x\nID: 1\nformat:\n"
				      "\tfield:u64 __probe_func;\toffset:8;\tsize:8;\n"
				      "\tfield:u64 __probe_ret_ip;\toffset:16;\tsize:8;\n"
				      "\tfield:u64 bytes;\toffset:24;\tsize:8;\tsigned:0;\n"
				      "\tfield:u64 ret;\toffset:32;\tsize:8;\tsigned:0;\n"),
		0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	looks_destroy(fixture->looks);
	held_blocks_destroy(fixture->held);
	free(fixture->table);
	free(fixture);
	return 0;
}

/* The recording says that @address was allocated. */
static void note_block(struct fixture *fixture, uint64_t time_ns, uint64_t address, uint64_t bytes,
		       uint64_t site)
{
	struct {
		struct plain_head head;
		uint64_t words[16];
	} sample = {.head = {.header = {.type = PERF_RECORD_SAMPLE},
			     .pid = (uint32_t)getpid(),
			     .tid = (uint32_t)getpid(),
			     .time_ns = time_ns}};
	char raw[4 + 40 + 4] = {0};
	struct raw_head *head = (void *)raw;
	const uint64_t fields[] = {0x401000, site, bytes, address};

	head->type = MALLOC;
	head->size = 44;
	memcpy(raw + 12, fields, sizeof(fields));
	sample.words[0] = 2;
	sample.words[1] = (uint64_t)PERF_CONTEXT_USER;
	sample.words[2] = site;
	memcpy(sample.words + 3, raw, sizeof(raw));
	sample.head.header.size = (uint16_t)(sizeof(sample.head) + 24 + sizeof(raw));
	held_blocks_feed_sample(fixture->held, &sample.head.header, (void *)(sample.words + 3));
}

/* The window that began at @from_ns ends. */
static void choose(struct fixture *fixture, uint64_t from_ns)
{
	held_blocks_apply(fixture->held, UINT64_MAX);
	looks_choose(fixture->looks, fixture->held, fixture->table, from_ns);
}

static void take(struct fixture *fixture)
{
	nr_written = 0;
	assert_int_equal(looks_take(fixture->looks, fixture->table, NULL, true), 0);
}

/* Looks at @block, the only one; 0: there was no look. */
static unsigned int state_of(struct fixture *fixture, const void *block)
{
	take(fixture);
	if (!nr_written)
		return 0;
	assert_int_equal(nr_written, 1);
	assert_int_equal(written[0].address, (uintptr_t)block);
	assert_int_equal(written[0].allocated_ns, 100);
	return written[0].state;
}

static void test_held_block(void **state)
{
	char *block = malloc(BYTES);

	assert_non_null(block);
	memset(block, 1, BYTES);
	note_block(*state, 100, (uintptr_t)block, BYTES, SITE);
	choose(*state, 1);
	assert_int_equal(state_of(*state, block), LOOK_TOUCHED);
	assert_int_equal(state_of(*state, block), LOOK_UNTOUCHED);
	block[5] = 2;
	assert_int_equal(state_of(*state, block), LOOK_TOUCHED);
	assert_int_equal(state_of(*state, block), LOOK_UNTOUCHED);
	/* Behind what is read. */
	block[BYTES - 1] = 2;
	assert_int_equal(state_of(*state, block), LOOK_UNTOUCHED);
	free(block);
}

static void test_unmapped_block(void **state)
{
	/* Far from other mappings: the thread of a look must not get the place when it is free. */
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	void *block = mmap((void *)(1UL << 45), 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(block, MAP_FAILED);
	note_block(*state, 100, (uintptr_t)block, 4096, SITE);
	choose(*state, 1);
	assert_int_equal(state_of(*state, block), LOOK_TOUCHED);
	munmap(block, 4096);
	assert_int_equal(state_of(*state, block), LOOK_GONE);
	/* It is not looked at any more. */
	assert_int_equal(state_of(*state, block), 0);
}

/* Where a process would have to serve a page, a look would wait. */
static void test_block_that_is_not_in_memory(void **state)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	const volatile char *block;

	assert_int_equal(ftruncate(fd, 4096), 0);
	block = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(block, MAP_FAILED);
	note_block(*state, 100, (uintptr_t)block, 4096, SITE);
	choose(*state, 1);
	assert_int_equal(state_of(*state, (const void *)block), 0);
	(void)*block;
	assert_int_equal(state_of(*state, (const void *)block), LOOK_TOUCHED);
	assert_int_equal(state_of(*state, (const void *)block), LOOK_UNTOUCHED);
	munmap((void *)block, 4096);
	close(fd);
}

/* Chunks as glibc has them: a size word, the block, and the next chunk's size word. */
#define CHUNK_WORDS 8

struct chunks {
	_Alignas(16) uint64_t words[2 * CHUNK_WORDS + 2];
};

/* A chunk in use, in front of another one. Returns its block. */
static uint64_t *make_chunk(struct chunks *chunks)
{
	*chunks = (struct chunks){
		.words = {[1] = 8 * CHUNK_WORDS | 1, [CHUNK_WORDS + 1] = 8 * CHUNK_WORDS | 1}};
	return &chunks->words[2];
}

/* After free(), the next chunk says that this one is not in use. */
static void test_freed_chunk(void **state)
{
	struct chunks chunks;
	uint64_t *block = make_chunk(&chunks);

	note_block(*state, 100, (uintptr_t)block, 40, SITE);
	choose(*state, 1);
	assert_int_equal(state_of(*state, block), LOOK_TOUCHED);
	assert_int_equal(state_of(*state, block), LOOK_UNTOUCHED);
	chunks.words[CHUNK_WORDS + 1] &= ~1ULL;
	assert_int_equal(state_of(*state, block), LOOK_GONE);
	assert_int_equal(state_of(*state, block), 0);
}

/* It is gone at the first look already. */
static void test_chunk_freed_before_the_first_look(void **state)
{
	struct chunks chunks;
	uint64_t *block = make_chunk(&chunks);

	chunks.words[CHUNK_WORDS + 1] &= ~1ULL;
	note_block(*state, 100, (uintptr_t)block, 40, SITE);
	choose(*state, 1);
	assert_int_equal(state_of(*state, block), LOOK_GONE);
}

/* A chunk of another size at its place is another block; whether the one before is in use is not.
 */
static void test_chunk_of_another_size(void **state)
{
	struct chunks chunks;
	uint64_t *block = make_chunk(&chunks);

	note_block(*state, 100, (uintptr_t)block, 40, SITE);
	choose(*state, 1);
	assert_int_equal(state_of(*state, block), LOOK_TOUCHED);
	chunks.words[1] &= ~1ULL;
	assert_int_equal(state_of(*state, block), LOOK_UNTOUCHED);
	chunks.words[1] = 16 * CHUNK_WORDS | 1;
	assert_int_equal(state_of(*state, block), LOOK_GONE);
}

/* The end waits only so long; what comes later is written then. */
static void test_reads_that_take_too_long(void **state)
{
	int told = memfd_create("told", MFD_CLOEXEC), before = dup(STDERR_FILENO);
	char *block = calloc(1, BYTES), text[512] = "";

	assert_non_null(block);
	note_block(*state, 100, (uintptr_t)block, BYTES, SITE);
	choose(*state, 1);
	assert_true(dup2(told, STDERR_FILENO) >= 0);
	pthread_mutex_lock(&held);
	take(*state);
	assert_int_equal(nr_written, 0);
	pthread_mutex_unlock(&held);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	assert_true(pread(told, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "some blocks were not looked at again"));
	/* That is not known so soon. */
	assert_null(strstr(text, "makes reads of its memory wait"));
	/* On a busy machine, the thread may get its turn late. */
	for (int i = 0; i < 100 && nr_written < 2; i++)
		take(*state);
	assert_true(nr_written >= 2);
	close(before);
	close(told);
	free(block);
}

static void test_process_that_has_ended(void **state)
{
	struct fixture *fixture = *state;
	char *block = calloc(1, BYTES);

	note_block(fixture, 100, (uintptr_t)block, BYTES, SITE);
	choose(fixture, 1);
	assert_int_equal(state_of(fixture, block), LOOK_TOUCHED);
	memset(fixture->table, 0, sizeof(*fixture->table));
	assert_int_equal(state_of(fixture, block), 0);
	free(block);
}

/* A rare site is in the sample beside one with a thousand times as many blocks. */
static void test_prefers_sites_evenly(void **state)
{
	struct fixture *fixture = *state;
	static _Alignas(16) char memory[8192][16];
	size_t nr_rare = 0;

	for (size_t i = 0; i < 4000; i++)
		note_block(fixture, 100 + i, (uintptr_t)memory[i], 8, SITE);
	for (size_t i = 4000; i < 4004; i++)
		note_block(fixture, 100 + i, (uintptr_t)memory[i], 8, OTHER_SITE);
	choose(fixture, 1);
	take(fixture);
	assert_int_equal(nr_written, LOOKS_NEW_MAX);
	for (size_t i = 0; i < nr_written; i++)
		nr_rare += written[i].address >= (uintptr_t)memory[4000];
	assert_int_equal(nr_rare, 4);
}

/* Blocks of earlier windows are not chosen again, and there is a limit on all. */
static void test_takes_a_bounded_part_of_each_window(void **state)
{
	struct fixture *fixture = *state;
	static _Alignas(16) char memory[64][64][16];
	size_t nr_latest = 0;

	for (size_t i = 0; i < 64; i++) {
		for (size_t k = 0; k < 64; k++)
			note_block(fixture, 1000 * (i + 1) + k, (uintptr_t)memory[i][k], 8, SITE);
		choose(fixture, 1000 * (i + 1));
	}
	take(fixture);
	assert_int_equal(nr_written, LOOKS_MAX);
	for (size_t i = 0; i < nr_written; i++)
		nr_latest += written[i].allocated_ns >= 1000 * 64;
	assert_in_range(nr_latest, LOOKS_NEW_MAX / 2, LOOKS_NEW_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_held_block, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unmapped_block, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_block_that_is_not_in_memory, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_freed_chunk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_chunk_freed_before_the_first_look, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_chunk_of_another_size, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reads_that_take_too_long, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_process_that_has_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_prefers_sites_evenly, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_takes_a_bounded_part_of_each_window, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
