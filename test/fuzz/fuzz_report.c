/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes any bytes as a recording, as fuzz_file does, and reports on it: the stacks, the marks, the
 * windows, the scans, the judgement and its causes, in one of the formats, or in the plain texts.
 * No file that the input names is opened.
 */
#include "common/broker/broker.h"
#include "parser/analysis/analysis.h"
#include "parser/verdicts/leak_report.h"
#include "report/call_sites/call_sites_text.h"
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

#define MAX_ROWS 3 /* whose calls are written */

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

/* What is collected while the input is read. */
struct collected {
	struct held_history *history;
	struct release_counts *releases;
};

static void on_change(void *context, const struct heap_change *change)
{
	struct collected *collected = context;

	held_history_change(collected->history, change);
	call_sites_change(collected->releases, change);
}

static void write_texts(FILE *out, const struct leak_report *report,
			const struct release_counts *releases)
{
	require(leaks_write(out, report) == 0);
	for (size_t row = 1; row <= report->nr_causes && row <= MAX_ROWS; row++)
		require(call_sites_write(out, report, row, releases) == 0);
}

static void write_report(const struct leak_report *report, const struct collected *collected,
			 size_t number)
{
#define NAME(name) #name,
	static const char *const names[] = {REPORT_FORMATS(NAME)};
#undef NAME
	const size_t nr = sizeof(names) / sizeof(names[0]);
	const struct tree_options tree = {.utf8 = true};
	const struct report_input input = {
		.report = report, .tree = &tree, .history = collected->history};
	FILE *out = fopen("/dev/null", "w");

	require(out);
	if (number % (nr + 1) == nr)
		write_texts(out, report, collected->releases);
	else
		report_write(out, report_format_find(names[number % (nr + 1)]), &input);
	fclose(out);
}

static void read_and_report(int fd, size_t number)
{
	const struct stack_store_options stacks = {.expect_names = true};
	const struct leaks_options all = {.list_unknown = true};
	struct collected collected = {held_history_create(NULL), release_counts_create()};
	const struct heap_observer observer = {.context = &collected, .on_change = on_change};
	struct analysis analysis;
	struct leak_report report;
	struct perf_consumer consumer;
	int err;

	require(collected.history && collected.releases);
	require(analysis_init(&analysis, &stacks, &observer) == 0);
	consumer = analysis_consumer(&analysis);
	err = perf_input_read(fd, "input", &consumer, &analysis.input);
	/* What was read is reported, also if the end is missing. */
	analysis_finish(&analysis, err);
	if (leak_report_init(&report, &analysis, &all) == 0)
		write_report(&report, &collected, number);
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
	held_history_destroy(collected.history);
	release_counts_destroy(collected.releases);
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
