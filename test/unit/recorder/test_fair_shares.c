/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The search for allocators: each user's files get only a share of the probe sites and of the time.
 */
#include "probes/plan/allocator_search.h"
#include "recorder/programs/bpf_sites.h"

#include "common/scope.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NR_FUNCTIONS 20
#define NR_COPIES    3

/* @nr files of @owner, each with NR_FUNCTIONS functions. */
static struct probe_set make_set(size_t nr, uid_t owner)
{
	struct probe_set set = {.files = calloc(nr, sizeof(*set.files)), .nr_files = nr};

	assert_non_null(set.files);
	for (size_t i = 0; i < nr; i++) {
		struct probe_file *file = &set.files[i];

		*file = (struct probe_file){.fd = -1, .owner = owner, .nr_probes = NR_FUNCTIONS};
		file->probes = calloc(NR_FUNCTIONS, sizeof(*file->probes));
		assert_non_null(file->probes);
		for (size_t j = 0; j < NR_FUNCTIONS; j++)
			file->probes[j] = (struct probe){
				.schema = probe_schema_find("free"),
				.point = PROBE_ENTRY,
				.function_offset = 64 * j,
				.offset = 64 * j,
			};
	}
	return set;
}

/* Returns how many are left out. */
static size_t take(struct watched_sites *sites, struct probe_set *set)
{
	const struct probe_file *left_out;
	size_t nr = bpf_sites_find_shared(sites, set, &left_out);

	assert_true((nr > 0) == (left_out != NULL));
	return nr;
}

static void a_user_has_a_share_of_the_sites(void **state)
{
	_cleanup_free_ struct watched_sites *sites = calloc(1, sizeof(*sites));
	const size_t share = BPF_USER_SHARE / NR_FUNCTIONS;
	struct probe_set users[6], system = make_set(8, 0);
	size_t nr_users = 0, nr_left_out = 0;

	assert_non_null(sites);
	for (size_t i = 0; i < ARRAY_SIZE(users); i++)
		users[i] = make_set(100, 1000 + (uid_t)i);
	assert_int_equal(take(sites, &users[0]), 100 - share);
	assert_int_equal(sites->nr_watched, share * NR_FUNCTIONS);

	/* Many users, or one user with many ids, leave room for the system's files. */
	for (size_t i = 1; i < ARRAY_SIZE(users); i++)
		nr_left_out += take(sites, &users[i]);
	for (size_t i = 0; i < sites->nr_watched; i++)
		nr_users += sites->watched[i].file->owner != 0;
	assert_true(nr_users <= BPF_USERS_SHARE);
	assert_true(nr_users > BPF_USERS_SHARE - NR_FUNCTIONS);
	assert_true(nr_left_out > 0);
	assert_int_equal(take(sites, &system), 0);

	/* For named processes there are no shares, but the total is limited. */
	assert_int_equal(bpf_sites_find(sites, &users[0]), -E2BIG);
	for (size_t i = 0; i < ARRAY_SIZE(users); i++)
		probe_set_deinit(&users[i]);
	probe_set_deinit(&system);
}

static char copies[NR_COPIES][64];

/* Maps the code of copies of the C library, each a file of its own, of a user other than root. */
static void map_copies(void)
{
	Dl_info info;
	struct stat st = {0};
	int libc;

	/* NOLINTNEXTLINE(performance-no-int-to-ptr): dladdr() takes any address */
	assert_true(dladdr((void *)(uintptr_t)&malloc, &info));
	libc = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(libc >= 0 && fstat(libc, &st) == 0);
	for (int i = 0; i < NR_COPIES; i++) {
		off_t at = 0;
		int fd;

		snprintf(copies[i], sizeof(copies[i]), "/tmp/test_fair_shares.XXXXXX");
		fd = mkostemp(copies[i], O_CLOEXEC);
		assert_true(fd >= 0);
		while (at < st.st_size)
			assert_true(sendfile(fd, libc, &at, (size_t)(st.st_size - at)) > 0);
		assert_true(geteuid() || fchown(fd, 65534, 65534) == 0);
		assert_true(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) !=
			    MAP_FAILED);
		close(fd);
	}
	close(libc);
}

/* Returns how many files were planned; *@ret_calls: the number of calls that this took. */
static size_t search(const struct allocator_search_limits *limits, int *ret_calls)
{
	struct allocator_search *search;
	struct probe_set set = {0};
	size_t nr;
	int more;

	*ret_calls = 0;
	assert_int_equal(allocator_search_create(&search), 0);
	if (limits)
		allocator_search_limit(search, limits);
	do {
		more = allocator_search_process(search, getpid(), &set);
		++*ret_calls;
	} while (more == 1);
	assert_int_equal(more, 0);
	nr = set.nr_files;
	probe_set_deinit(&set);
	allocator_search_destroy(search);
	return nr;
}

static void a_user_has_a_share_of_the_time(void **state)
{
	const struct allocator_search_limits slices = {.slice_ns = 1};
	const struct allocator_search_limits none_left = {.user_ns = 1};
	const struct allocator_search_limits again = {.user_ns = 1, .window_ns = 1};
	int nr_calls;
	size_t nr;

	map_copies();
	nr = search(NULL, &nr_calls);
	assert_true(nr >= NR_COPIES);
	assert_int_equal(nr_calls, 1);
	/* With one file per call, the result is the same. */
	assert_int_equal(search(&slices, &nr_calls), nr);
	assert_true(nr_calls > NR_COPIES);
	/* The first file uses up its owner's time. There are at most two owners here. */
	assert_true(search(&none_left, &nr_calls) <= 2);
	assert_int_equal(search(&again, &nr_calls), nr);
	for (int i = 0; i < NR_COPIES; i++)
		unlink(copies[i]);
}

/* Returns how many files are new to @search. */
static size_t nr_new(struct allocator_search *search, struct probe_set *set)
{
	struct stat stat;
	size_t nr = 0;

	assert_int_equal(allocator_search_process(search, getpid(), set), 0);
	while (allocator_search_next(search, &stat))
		nr++;
	return nr;
}

/* A user can map any number of files, one after the other. */
static void a_user_has_a_share_of_the_known_files(void **state)
{
	const struct allocator_search_limits one = {.nr_files = 1}, none = {0};
	struct allocator_search *search;
	struct probe_set set = {0};
	size_t nr, nr_probed, nr_known;

	assert_int_equal(allocator_search_create(&search), 0);
	nr = nr_new(search, &set);
	nr_probed = set.nr_files;
	assert_true(nr_probed > NR_COPIES && nr > nr_probed + 1);
	assert_int_equal(nr_new(search, &set), 0);
	allocator_search_destroy(search);
	probe_set_deinit(&set);

	assert_int_equal(allocator_search_create(&search), 0);
	allocator_search_limit(search, &one);
	nr_known = nr_new(search, &set);
	assert_int_equal(nr_known, set.nr_files + 1);
	/* Beside root's, only one is probed. */
	assert_in_range(set.nr_files, 1, nr_probed - NR_COPIES + 1);
	/* The others are analysed again; those that are probed are not. */
	allocator_search_limit(search, &none);
	assert_int_equal(nr_new(search, &set), nr - nr_known);
	assert_int_equal(nr_new(search, &set), 0);
	assert_in_range(set.nr_files, 1, nr_probed);
	probe_set_deinit(&set);
	allocator_search_destroy(search);
}

/* Too many open files, here, must not look like a process without allocators. */
static void only_processes_that_cannot_be_read_are_skipped(void **state)
{
	struct rlimit before, none;
	struct allocator_search *search;
	struct probe_set set = {0};
	pid_t ended = fork();

	if (ended == 0)
		_exit(0);
	assert_int_equal(waitpid(ended, NULL, 0), ended);
	assert_int_equal(allocator_search_create(&search), 0);
	assert_int_equal(allocator_search_process(search, ended, &set), 0);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	assert_int_equal(allocator_search_process(search, getpid(), &set), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &before);
	probe_set_deinit(&set);
	allocator_search_destroy(search);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_has_a_share_of_the_sites),
		cmocka_unit_test(a_user_has_a_share_of_the_time),
		cmocka_unit_test(a_user_has_a_share_of_the_known_files),
		cmocka_unit_test(only_processes_that_cannot_be_read_are_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
