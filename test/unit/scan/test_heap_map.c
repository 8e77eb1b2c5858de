/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks are found by their starts and by addresses in them; notes of core files may be anything.
 */
#include "scan/heaps/heap_map.h"
#include "scan/core/core_notes.h"
#include "scan/snapshot/kernel_pointers.h"
#include "scan/snapshot/unseen_places.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define FIRST  0x100000ull
#define SECOND 0x7f0000000000ull
#define BYTES  (64ull << 20)

static void add(struct heap_map *map, uint64_t start, uint64_t end)
{
	assert_int_equal(
		heap_map_add_segment(map, &(struct heap_segment){.start = start, .end = end}), 0);
}

static void blocks_are_found_from_their_addresses(void **state)
{
	/* The distances make every level of the search necessary. */
	static const uint64_t blocks[] = {
		FIRST + 16,	    FIRST + 48,	 FIRST + 5000 * 16,    FIRST + 0x80000,
		FIRST + BYTES - 16, SECOND + 32, SECOND + BYTES - 4096};
	const size_t nr = sizeof(blocks) / sizeof(blocks[0]);
	struct heap_map map = {0};

	add(&map, SECOND, SECOND + BYTES);
	add(&map, FIRST, FIRST + BYTES);
	assert_int_equal(heap_map_allocate(&map), 0);
	for (size_t i = 0; i < nr; i++)
		heap_map_set(&map, heap_map_unit(heap_map_segment(&map, blocks[i]), blocks[i]));
	assert_int_equal(heap_map_number(&map), 0);
	assert_int_equal(map.nr_blocks, nr);
	for (uint32_t i = 0; i < nr; i++) {
		const struct heap_segment *segment = heap_map_segment(&map, blocks[i]);
		uint64_t address, next = i + 1 < nr && blocks[i + 1] < segment->end ? blocks[i + 1]
										    : segment->end;

		assert_ptr_equal(heap_map_block(&map, i, &address), segment);
		assert_int_equal(address, blocks[i]);
		assert_int_equal(heap_map_find(&map, segment, blocks[i]), i);
		assert_int_equal(heap_map_find(&map, segment, next - 1), i);
	}
	/* Before the first block of a segment there is none, also not of the segment before. */
	assert_int_equal(heap_map_find(&map, heap_map_segment(&map, FIRST), FIRST + 15), HEAP_NONE);
	assert_int_equal(heap_map_find(&map, heap_map_segment(&map, SECOND), SECOND + 31),
			 HEAP_NONE);
	assert_null(heap_map_segment(&map, FIRST - 1));
	assert_null(heap_map_segment(&map, FIRST + BYTES));
	assert_null(heap_map_segment(&map, SECOND + BYTES));
	heap_map_deinit(&map);
}

/* It may be larger than all that the map has bits for. */
static void a_mapped_block_is_found_from_its_addresses(void **state)
{
	const uint64_t block = SECOND + 16, end = SECOND + (32ull << 40);
	struct heap_map map = {0};
	const struct heap_segment *segment;
	uint64_t address;

	add(&map, FIRST, FIRST + BYTES);
	assert_int_equal(heap_map_add_segment(&map, &(struct heap_segment){.start = SECOND,
									   .end = end,
									   .mapped_block = block}),
			 0);
	assert_int_equal(heap_map_allocate(&map), 0);
	segment = heap_map_segment(&map, block);
	heap_map_set(&map, heap_map_unit(segment, block));
	heap_map_set(&map, heap_map_unit(heap_map_segment(&map, FIRST), FIRST));
	assert_int_equal(heap_map_number(&map), 0);
	assert_ptr_equal(heap_map_block(&map, 1, &address), segment);
	assert_int_equal(address, block);
	assert_int_equal(heap_map_find(&map, segment, SECOND), HEAP_NONE);
	assert_int_equal(heap_map_find(&map, segment, block), 1);
	assert_int_equal(heap_map_find(&map, segment, end - 1), 1);
	assert_true(heap_map_is_set(&map, heap_map_unit(segment, block)));
	assert_false(heap_map_is_set(&map, heap_map_unit(segment, block + 16)));
	heap_map_deinit(&map);
}

static void segments_that_contradict_each_other_are_refused(void **state)
{
	struct heap_map map = {0};

	add(&map, FIRST, FIRST + 4096);
	add(&map, FIRST + 2048, FIRST + 8192);
	assert_int_equal(heap_map_allocate(&map), -EEXIST);
	heap_map_deinit(&map);
	add(&map, 16, 16 + (1ull << 40));
	assert_int_equal(heap_map_allocate(&map), -E2BIG);
	heap_map_deinit(&map);
	assert_int_equal(heap_map_allocate(&map), 0);
	assert_int_equal(heap_map_number(&map), 0);
	assert_null(heap_map_segment(&map, 0));
	heap_map_deinit(&map);
}

/* Random notes, with valid types, of random sizes. */
static void notes_are_checked_against_their_bounds(void **state)
{
	static const uint32_t types[] = {NT_PRSTATUS, NT_PRPSINFO, NT_FILE, NT_X86_XSTATE,
					 NT_FPREGSET};

	srandom(7);
	for (int round = 0; round < 2000; round++) {
		size_t size = (size_t)random() % 4096;
		uint32_t *notes = malloc(size + sizeof(Elf64_Nhdr));
		struct snapshot snapshot;

		assert_non_null(notes);
		for (size_t i = 0; i < size / 4; i++)
			notes[i] = (uint32_t)random() % (random() % 2 ? 16 : 1024);
		notes[0] = 5;
		notes[1] = (uint32_t)random() % 2048;
		notes[2] = types[round % 5];
		snapshot_init(&snapshot);
		assert_int_equal(core_notes_parse(&snapshot, (const char *)notes, size), 0);
		snapshot_deinit(&snapshot);
		free(notes);
	}
}

static void lines_of_the_kernel_hold_pointers(void **state)
{
	uint64_t value = 0;

	assert_true(kernel_pointer_parse_epoll(
		"tfd:        5 events:       19 data:     7f0012345678  pos:0 ino:61af sdev:7",
		&value));
	assert_int_equal(value, 0x7f0012345678);
	assert_false(kernel_pointer_parse_epoll("pos:\t0", &value));
	assert_true(kernel_pointer_parse_timer("signal: 60/00007fff86e452a8", &value));
	assert_int_equal(value, 0x7fff86e452a8);
	assert_false(kernel_pointer_parse_timer("notify: signal/pid.2634", &value));
}

static void devices_are_told_by_their_names(void **state)
{
	static const char *const links[] = {
		"/dev/fuse",
		"/srv/chroot/dev/fuse",
		"/dev/dri/card1",
		"/dev/dri/renderD128",
		"/dev/bus/usb/001/002",
		"/home/dev",
		"anon_inode:[io_uring]",
		"anon_inode:inotify",
	};
	struct snapshot snapshot;
	struct unseen_search search;

	snapshot_init(&snapshot);
	unseen_search_init(&search, &snapshot);
	unseen_search_begin(&search, getpid(), -1);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		unseen_search_add(&search, "3", links[i]);
	unseen_search_finish(&search);
	assert_int_equal(snapshot.unseen.nr_fuse, 2);
	assert_int_equal(snapshot.unseen.nr_displays, 1);
	assert_int_equal(snapshot.unseen.nr_usb, 1);
	assert_int_equal(snapshot.unseen.nr_io_urings, 1);
}

static const char *unread_with(size_t nr_pointers)
{
	struct snapshot snapshot;
	const char *unread;

	snapshot_init(&snapshot);
	snapshot.pid = getpid();
	snapshot.nr_kernel_pointers = nr_pointers;
	assert_int_equal(kernel_pointers_read(&snapshot, UINT64_MAX), 0);
	unread = snapshot.unread_pointers;
	if (!unread)
		assert_true(snapshot.nr_kernel_pointers > nr_pointers);
	snapshot_deinit(&snapshot);
	return unread;
}

static void pointers_that_are_not_read_are_said(void **state)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(0), watched = eventfd(0, 0);
	struct rlimit limit, none;

	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, watched, &event), 0);
	assert_null(unread_with(0));
	assert_string_equal(unread_with(1u << 22), "more than 4,194,304 pointers");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){0, limit.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	assert_string_equal(unread_with(0), "timers");
	setrlimit(RLIMIT_NOFILE, &limit);
	close(watched);
	close(epoll);
}

/* Nobody can read its link. */
static void an_open_file_with_a_long_path_is_no_pointer(void **state)
{
	char top[] = "/tmp/heap_map-XXXXXX", name[NAME_MAX + 1] = {0};
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(0), watched = eventfd(0, 0), here, fd, depth = 0;
	const char *unread;

	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, watched, &event), 0);
	assert_non_null(mkdtemp(top));
	here = open(".", O_PATH | O_DIRECTORY);
	assert_int_equal(chdir(top), 0);
	memset(name, 'd', NAME_MAX);
	for (; depth * NAME_MAX < PATH_MAX; depth++)
		assert_true(mkdir(name, 0700) == 0 && chdir(name) == 0);
	fd = open(".", O_RDONLY | O_DIRECTORY);
	unread = unread_with(0);
	close(fd);
	for (; depth > 0; depth--)
		assert_true(chdir("..") == 0 && rmdir(name) == 0);
	assert_int_equal(fchdir(here), 0);
	close(here);
	rmdir(top);
	close(watched);
	close(epoll);
	assert_null(unread);
}

#define NR_THREADS 100

static pthread_barrier_t tables_are_made, tables_are_read;

static void *has_table(void *has_own)
{
	if (has_own && unshare(CLONE_FILES))
		abort();
	pthread_barrier_wait(&tables_are_made);
	pthread_barrier_wait(&tables_are_read);
	return NULL;
}

/*
 * Of a process with two epolls: one that all threads have, and one that the first thread's table
 * has not.
 */
static void read_tables(struct snapshot *snapshot, bool have_own)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epolls[] = {epoll_create1(0), epoll_create1(0)}, watched = eventfd(0, 0);
	pthread_t threads[NR_THREADS];

	for (int i = 0; i < 2; i++)
		assert_int_equal(epoll_ctl(epolls[i], EPOLL_CTL_ADD, watched, &event), 0);
	pthread_barrier_init(&tables_are_made, NULL, NR_THREADS + 1);
	pthread_barrier_init(&tables_are_read, NULL, NR_THREADS + 1);
	for (size_t i = 0; i < NR_THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, has_table, have_own ? snapshot : NULL),
			0);
	pthread_barrier_wait(&tables_are_made);
	assert_int_equal(unshare(CLONE_FILES), 0);
	close(epolls[1]);
	snapshot_init(snapshot);
	snapshot->pid = getpid();
	assert_int_equal(kernel_pointers_read(snapshot, UINT64_MAX), 0);
	pthread_barrier_wait(&tables_are_read);
	for (size_t i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	close(watched);
	close(epolls[0]);
}

static void tables_of_descriptors_are_read_once(void **state)
{
	struct snapshot snapshot;

	read_tables(&snapshot, false);
	assert_int_equal(snapshot.nr_kernel_pointers, 2);
	assert_false(snapshot.unseen.own_descriptors);
	snapshot_deinit(&snapshot);
	read_tables(&snapshot, true);
	assert_int_equal(snapshot.nr_kernel_pointers, 2);
	assert_true(snapshot.unseen.own_descriptors);
	snapshot_deinit(&snapshot);
}

/* As Docker's default profile does, without CAP_SYS_PTRACE. */
static void refuse_looks(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_getfd, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(2);
}

/* In a child, which has the filter for itself. */
static bool says_refusal(bool has_pipe, bool has_thread)
{
	pid_t child = fork();
	int status, fds[2];

	if (child == 0) {
		struct snapshot snapshot;
		pthread_t thread;

		pthread_barrier_init(&tables_are_made, NULL, 2);
		pthread_barrier_init(&tables_are_read, NULL, 2);
		close_range(0, UINT_MAX, 0);
		if ((has_pipe && pipe(fds)) ||
		    (has_thread && pthread_create(&thread, NULL, has_table, NULL)))
			_exit(2);
		refuse_looks();
		snapshot_init(&snapshot);
		snapshot.pid = getpid();
		_exit(kernel_pointers_read(&snapshot, UINT64_MAX) ||
		      snapshot.unseen.pipes_and_sockets != has_pipe ||
		      snapshot.unseen.own_descriptors != has_thread);
	}
	return waitpid(child, &status, 0) == child && status == 0;
}

static void looks_that_are_refused_are_said(void **state)
{
	assert_true(says_refusal(true, true));
	assert_true(says_refusal(false, true));
	assert_true(says_refusal(true, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_found_from_their_addresses),
		cmocka_unit_test(a_mapped_block_is_found_from_its_addresses),
		cmocka_unit_test(segments_that_contradict_each_other_are_refused),
		cmocka_unit_test(notes_are_checked_against_their_bounds),
		cmocka_unit_test(lines_of_the_kernel_hold_pointers),
		cmocka_unit_test(devices_are_told_by_their_names),
		cmocka_unit_test(pointers_that_are_not_read_are_said),
		cmocka_unit_test(an_open_file_with_a_long_path_is_no_pointer),
		cmocka_unit_test(tables_of_descriptors_are_read_once),
		cmocka_unit_test(looks_that_are_refused_are_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
