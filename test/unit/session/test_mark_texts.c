/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts of marks that are read from a process, which may make the reader wait. */
#include "recorder/processes/memory_reader.h"
#include "recorder/drain/mark_texts.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_NS	  3600000000000ULL
#define MINUTE_NS 60000000000ULL

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t held_for_ever = PTHREAD_MUTEX_INITIALIZER;
static char text[] = "text", endless_text[] = "endless";

/* What memory_reader.c reads with waits until the text's mutex is free. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nr_local,
			 const struct iovec *remote, unsigned long nr_remote, unsigned long flags)
{
	pthread_mutex_t *mutex = remote->iov_base == endless_text ? &held_for_ever : &held;

	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return syscall(SYS_process_vm_readv, pid, local, nr_local, remote, nr_remote, flags);
}

/* True if the text of a mark of this process is read, which is in no file and on no stack. */
static bool reads(struct mark_texts *texts, const char *wanted)
{
	struct {
		struct plain_head head;
		struct raw_head raw;
		uint32_t ip_words[2], address_words[2], pad;
		uint64_t regs_abi;
	} sample = {
		.head.header = {PERF_RECORD_SAMPLE, 0, sizeof(sample)},
		.head.pid = (uint32_t)getpid(),
	};
	struct probe_file file = {.fd = -1};
	struct probe probe = {.offset = 0};
	const struct record_event event = {.file = &file, .mark = &probe};
	uint64_t address = (uintptr_t)wanted;
	const struct mark_record *record;

	memcpy(sample.address_words, &address, sizeof(address));
	record = (const void *)mark_texts_convert(texts, &event, &sample.head.header);
	return strcmp(record->text, wanted) == 0;
}

static bool reads_text(struct mark_texts *texts)
{
	return reads(texts, text);
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* A read is late. It is done some time after that. */
static void be_late(struct mark_texts *texts)
{
	pthread_mutex_lock(&held);
	assert_false(reads_text(texts));
	assert_false(reads_text(texts));
	pthread_mutex_unlock(&held);
}

static bool reads_again(struct mark_texts *texts)
{
	for (int i = 0; i < 1000; i++) {
		if (reads_text(texts))
			return true;
		pause_ms(1);
	}
	return false;
}

static void test_a_late_read_is_not_the_last_one(void **state)
{
	struct mark_texts texts = {0};

	assert_true(reads_again(&texts));
	be_late(&texts);
	assert_true(reads_again(&texts));
	mark_texts_deinit(&texts);
}

/* Each costs the recording a tenth of a second. */
static void test_not_all_reads_may_be_late(void **state)
{
	struct mark_texts texts = {0};

	for (int i = 0; i < MARK_MAX_LATE; i++) {
		be_late(&texts);
		if (!reads_again(&texts))
			break;
	}
	assert_int_equal(texts.nr_late, MARK_MAX_LATE);
	assert_false(reads_text(&texts));
	mark_texts_deinit(&texts);
}

/* Then it is no attack. */
static void test_late_reads_of_long_ago_do_not_count(void **state)
{
	struct mark_texts texts = {0};

	for (int i = 0; i <= MARK_MAX_LATE; i++) {
		be_late(&texts);
		assert_true(reads_again(&texts));
		texts.late_ns -= HOUR_NS;
	}
	mark_texts_deinit(&texts);
}

/* The threads that read are left behind: that has a limit, too, however long it takes. */
static void test_others_do_not_wait_for_ever(void **state)
{
	struct mark_texts texts = {0};

	pthread_mutex_lock(&held_for_ever);
	for (int i = 0; i < MARK_MAX_LATE; i++) {
		assert_true(reads_again(&texts));
		assert_false(reads(&texts, endless_text));
		texts.late_ns -= HOUR_NS;
	}
	assert_int_equal(texts.nr_late, MARK_MAX_LATE);
	assert_false(reads_text(&texts));
	mark_texts_deinit(&texts);
	pthread_mutex_unlock(&held_for_ever);
}

/* A device may stall now and then. */
static void test_stalls_that_have_ended_do_not_count(void **state)
{
	struct mark_texts texts = {0};

	for (int i = 0; i <= MARK_MAX_LATE; i++) {
		pthread_mutex_lock(&held_for_ever);
		assert_false(reads(&texts, endless_text));
		texts.late_ns -= HOUR_NS;
		assert_true(reads_again(&texts));
		pthread_mutex_unlock(&held_for_ever);
		assert_int_equal(texts.nr_left, 1);
		assert_true(read_thread_wait(texts.left[0].thread, MINUTE_NS));
	}
	mark_texts_deinit(&texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_late_read_is_not_the_last_one),
		cmocka_unit_test(test_not_all_reads_may_be_late),
		cmocka_unit_test(test_late_reads_of_long_ago_do_not_count),
		cmocka_unit_test(test_stalls_that_have_ended_do_not_count),
		cmocka_unit_test(test_others_do_not_wait_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
