/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes any bytes as a recording, as fuzz_file does, and reports on it: the stacks, the marks, the
 * windows, the scans, the judgement and its causes, in one of the formats. No file that the input
 * names is opened.
 */
#include "common/broker/broker.h"
#include "parser/analysis/analysis.h"
#include "parser/verdicts/leak_report.h"
#include "report/formats/held_history.h"
#include "report/report_formats.h"
#include "report/text/leaks_writer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
	if (!is_true)
		abort();
}

/* A broker that has ended opens nothing. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int sockets[2];

	(void)argc;
	(void)argv;
	signal(SIGPIPE, SIG_IGN);
	require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
	close(sockets[1]);
	broker_use(sockets[0]);
	return 0;
}

static void write_report(const struct leak_report *report, const struct held_history *history,
			 size_t number)
{
#define NAME(name) #name,
	static const char *const names[] = {REPORT_FORMATS(NAME)};
#undef NAME
	const size_t nr = sizeof(names) / sizeof(names[0]);
	const struct tree_options tree = {.utf8 = true};
	const struct report_input input = {.report = report, .tree = &tree, .history = history};
	FILE *out = fopen("/dev/null", "w");

	require(out);
	if (number % (nr + 1) == nr)
		require(leaks_write(out, report) == 0);
	else
		report_write(out, report_format_find(names[number % (nr + 1)]), &input);
	fclose(out);
}

static void read_and_report(int fd, size_t number)
{
	const struct stack_store_options stacks = {.expect_names = true};
	const struct leaks_options all = {.list_unknown = true};
	struct held_history *history = held_history_create(NULL);
	const struct heap_observer observer = {.context = history,
					       .on_change = held_history_change};
	struct analysis analysis;
	struct leak_report report;
	struct perf_consumer consumer;
	int err;

	require(history && analysis_init(&analysis, &stacks, &observer) == 0);
	consumer = analysis_consumer(&analysis);
	err = perf_input_read(fd, "input", &consumer, &analysis.input);
	/* What was read is reported, also if the end is missing. */
	analysis_finish(&analysis, err);
	if (leak_report_init(&report, &analysis, &all) == 0)
		write_report(&report, history, number);
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
	held_history_destroy(history);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	/* Mapped or, as others can write it, copied. */
	require(fd >= 0 && (!size || write(fd, data, size) == (ssize_t)size) &&
		fchmod(fd, size % 2 ? 0666 : 0600) == 0);
	read_and_report(fd, size / 2);
	close(fd);
	return 0;
}
