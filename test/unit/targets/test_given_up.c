/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file that somebody overwrites: the writer waits for its probes, and the recorder does not. */
#include "common/scope.h"
#include "recorder/processes/apart.h"
#include "recorder/programs/bpf_windows.h"
#include "recorder/targets/given_up.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 10000

/* The kernel needs long to end the links: until @are_gone. */
static size_t nr_ending, nr_closed_windows;
static bool are_gone;

/* In place of apart.c, whose processes would close the links. */
struct apart_closing *apart_close_begin(int *fds, size_t nr)
{
	nr_ending = nr;
	free(fds);
	return (struct apart_closing *)&nr_ending;
}

bool apart_close_is_done(struct apart_closing *closing)
{
	return !closing || are_gone;
}

void apart_close_wait(struct apart_closing *closing)
{
	if (!apart_close_is_done(closing))
		fail_msg("the recorder waits");
}

int apart_run(int (*work)(void *argument), void *argument)
{
	return work(argument);
}

int apart_open(int (*work)(void *argument), void *argument)
{
	return work(argument);
}

/* In place of bpf_windows.c, which has the programs' memory. */
void bpf_window_close(struct bpf_recorder *recorder)
{
	nr_closed_windows++;
}

struct fixture {
	struct file_leases leases;
	struct probe_file file;
	struct bpf_file_link *links;
	struct bpf_recorder recorder;
	struct given_up given_up;
	pid_t writer;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	char path[] = "/tmp/test_given_up_XXXXXX";
	int fd = mkstemp(path);

	assert_non_null(fixture);
	*state = fixture;
	assert_true(fd >= 0);
	close(fd);
	nr_ending = nr_closed_windows = 0;
	are_gone = false;
	fixture->file.path = strdup(path);
	fixture->file.display = strdup(path);
	fixture->file.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fixture->file.fd, &fixture->file.stat), 0);
	assert_int_equal(file_leases_init(&fixture->leases), 0);
	/* Two links of the file, and one of another. */
	fixture->recorder.links = calloc(3, sizeof(*fixture->recorder.links));
	assert_non_null(fixture->recorder.links);
	for (size_t i = 0; i < 3; i++)
		fixture->recorder.links[i] =
			(struct bpf_file_link){-1, i < 2 ? &fixture->file : NULL};
	fixture->recorder.nr_links = 3;
	fixture->given_up =
		(struct given_up){.leases = &fixture->leases, .recorder = &fixture->recorder};
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	if (fixture->writer > 0)
		waitpid(fixture->writer, NULL, 0);
	unlink(fixture->file.path);
	probe_file_deinit(&fixture->file);
	file_leases_deinit(&fixture->leases);
	free(fixture->recorder.links);
	free(fixture);
	return 0;
}

/* Has another process open the file for writing, and waits until the kernel tells. */
static void overwrite(struct fixture *fixture)
{
	struct pollfd poll_fd = {.fd = fixture->leases.fd, .events = POLLIN};
	int err = file_leases_take(&fixture->leases, &fixture->file);

	if (err == -EINVAL || err == -EACCES)
		skip();
	assert_int_equal(err, 0);
	fixture->writer = fork();
	if (fixture->writer == 0) {
		/* The lease would last as long as its copy. */
		close(fixture->file.fd);
		_exit(open(fixture->file.path, O_WRONLY | O_CLOEXEC) < 0);
	}
	assert_true(fixture->writer > 0);
	assert_int_equal(poll(&poll_fd, 1, WAIT_MS), 1);
}

static void assert_waits(const struct fixture *fixture)
{
	assert_int_equal(waitpid(fixture->writer, NULL, WNOHANG), 0);
	assert_int_equal(fcntl(fixture->file.fd, F_GETLEASE), F_UNLCK);
	assert_int_equal(fixture->leases.nr_files, 1);
	assert_true(given_up_is_busy(&fixture->given_up));
}

static void assert_goes_on(struct fixture *fixture)
{
	int status;

	assert_false(given_up_is_busy(&fixture->given_up));
	assert_int_equal(fixture->leases.nr_files, 0);
	assert_int_equal(waitpid(fixture->writer, &status, 0), fixture->writer);
	assert_int_equal(status, 0);
	fixture->writer = 0;
	assert_int_equal(fixture->given_up.nr, 1);
}

static void test_nobody_waits_for_the_links(void **state)
{
	struct fixture *fixture = *state;

	overwrite(fixture);
	given_up_serve(&fixture->given_up);
	/* The other file's goes on. */
	assert_int_equal(nr_ending, 2);
	assert_int_equal(fixture->recorder.nr_links, 1);
	assert_true(fixture->file.is_given_up);
	assert_waits(fixture);
	given_up_serve(&fixture->given_up);
	assert_waits(fixture);
	are_gone = true;
	given_up_serve(&fixture->given_up);
	assert_goes_on(fixture);
	assert_null(fixture->recorder.unlinking);
}

static void test_a_window_ends_first(void **state)
{
	struct fixture *fixture = *state;

	fixture->recorder.in_windows = true;
	overwrite(fixture);
	given_up_serve(&fixture->given_up);
	/* All its links end as ever. */
	assert_int_equal(nr_closed_windows, 1);
	assert_int_equal(fixture->recorder.nr_links, 3);
	assert_waits(fixture);
	fixture->recorder.unlinking = bpf_recorder_begin_unlink(&fixture->recorder, 0, NULL);
	given_up_serve(&fixture->given_up);
	assert_waits(fixture);
	/* bpf_window_is_unlinked() */
	fixture->recorder.unlinking = NULL;
	given_up_serve(&fixture->given_up);
	assert_goes_on(fixture);
	assert_int_equal(nr_closed_windows, 1);
}

static void test_between_windows_nothing_is_probed(void **state)
{
	struct fixture *fixture = *state;

	fixture->recorder.in_windows = true;
	fixture->recorder.nr_links = 0;
	overwrite(fixture);
	given_up_serve(&fixture->given_up);
	assert_goes_on(fixture);
}

/* Where the recording ends first, the lease lasts as long as the descriptor that others have. */
static void test_the_lease_outlasts_the_recording(void **state)
{
	struct fixture *fixture = *state;
	int fd = fixture->file.fd;

	overwrite(fixture);
	given_up_serve(&fixture->given_up);
	given_up_leave(&fixture->given_up);
	/* This process does not close it. */
	assert_int_equal(fixture->file.fd, -1);
	assert_int_equal(waitpid(fixture->writer, NULL, WNOHANG), 0);
	assert_int_equal(fcntl(fd, F_GETLEASE), F_UNLCK);
	/* The others have ended. */
	close(fd);
	assert_int_equal(waitpid(fixture->writer, NULL, 0), fixture->writer);
	fixture->writer = 0;
}

/* With -a, one such file among many does not end the recording. */
static void test_a_changed_file_is_left_out_if_all_are_recorded(void **state)
{
	struct fixture *fixture = *state;
	struct probe_set set = {.files = &fixture->file, .nr_files = 1};
	size_t nr = 0;
	int err;

	assert_int_equal(unlink(fixture->file.path), 0);
	err = file_leases_take_all(&fixture->leases, &set, NULL);
	if (!err) /* there are no leases here */
		skip();
	assert_int_equal(err, -ESTALE);
	assert_false(fixture->file.is_given_up);
	assert_int_equal(file_leases_take_all(&fixture->leases, &set, &nr), 0);
	assert_int_equal(nr, 1);
	assert_true(fixture->file.is_given_up);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nobody_waits_for_the_links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_window_ends_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_between_windows_nothing_is_probed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_the_lease_outlasts_the_recording, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_a_changed_file_is_left_out_if_all_are_recorded,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
