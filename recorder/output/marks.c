/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/marks.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/perf_disk.h"
#include "recorder/programs/bpf_sites.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* The id just below those of events that BPF programs write. */
#define MARK_ID	   (BPF_FIRST_ID - 1)
#define MARK_TYPE  (BPF_FIRST_TYPE - 1)
#define DOUBT_ID   (BPF_FIRST_ID - 2)
#define DOUBT_TYPE (BPF_FIRST_TYPE - 2)

/* The layout of perf_event_open(2) for RECORD_SAMPLE_TYPE, with the raw data of MARK_FORMAT. */
struct mark_record {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint32_t raw_bytes; /* the size of what follows */
	uint16_t common_type;
	uint8_t common_flags, common_preempt_count;
	int32_t common_pid;
	uint32_t by_signal;
	uint64_t number;
};

_Static_assert(sizeof(struct mark_record) == 72, "no padding");

static const char mark_format[] =
	"name: %s\nID: %d\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:unsigned int by_signal;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:u64 number;\toffset:12;\tsize:8;\tsigned:0;\n\n"
	"print fmt: \"number=%%Lu by_signal=%%u\", REC->number, REC->by_signal\n";

int marks_init(struct marks *ret, uint64_t every_ns)
{
	sigset_t set;

	*ret = (struct marks){.fd = -1, .every_ns = every_ns, .next_ns = UINT64_MAX};
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ret->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (ret->fd >= 0)
		return 0;
	diag_error("cannot watch for SIGUSR1: %s", strerror(errno));
	return -errno;
}

void marks_deinit(struct marks *marks)
{
	if (marks->fd >= 0)
		close(marks->fd);
	marks->fd = -1;
}

static int describe(struct record_events *events, const struct record_config *config,
		    const char *name, uint64_t type, uint64_t id)
{
	char *full_name = NULL, *format = NULL;

	if (asprintf(&full_name, "leakrec:%s", name) < 0)
		full_name = NULL;
	if (asprintf(&format, mark_format, name, (int)type) < 0)
		format = NULL;
	return record_events_add_written(events, config, full_name, format, type, id, false);
}

int marks_describe(struct record_events *events, const struct record_config *config,
		   bool with_doubts)
{
	int err = describe(events, config, "mark", MARK_TYPE, MARK_ID);

	if (!err && with_doubts)
		err = describe(events, config, "doubt", DOUBT_TYPE, DOUBT_ID);
	return err;
}

void marks_start(struct marks *marks, uint64_t start_ns, uint64_t end_ns, pid_t pid)
{
	marks->pid = pid;
	marks->end_ns = end_ns;
	if (marks->every_ns)
		marks->next_ns = start_ns + marks->every_ns;
}

static struct mark_record make_record(pid_t pid, uint64_t time_ns, uint64_t number)
{
	return (struct mark_record){
		.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(struct mark_record)},
		.id = MARK_ID,
		.pid = (uint32_t)pid,
		.tid = (uint32_t)pid,
		.time_ns = time_ns,
		.raw_bytes = sizeof(struct mark_record) - offsetof(struct mark_record, common_type),
		.common_type = MARK_TYPE,
		.common_pid = pid,
		.number = number,
	};
}

static int write_mark(struct marks *marks, struct perf_writer *writer, uint64_t time_ns,
		      bool by_signal)
{
	struct mark_record record = make_record(marks->pid, time_ns, ++marks->nr);

	record.by_signal = by_signal;
	return perf_writer_add_record(writer, &record.header);
}

int marks_write_doubt(pid_t pid, uint64_t time_ns, uint64_t nr, struct perf_writer *writer)
{
	struct mark_record record = make_record(pid, time_ns, nr);

	record.id = DOUBT_ID;
	record.common_type = DOUBT_TYPE;
	return perf_writer_add_record(writer, &record.header);
}

int marks_write(struct marks *marks, struct perf_writer *writer)
{
	struct signalfd_siginfo signal;
	uint64_t now_ns = clock_now_ns();
	uint64_t last_ns = now_ns < marks->end_ns ? now_ns : marks->end_ns;
	int err = 0;

	while (!err && marks->next_ns <= last_ns) {
		err = write_mark(marks, writer, marks->next_ns, false);
		marks->next_ns += marks->every_ns;
	}
	if (!err && read(marks->fd, &signal, sizeof(signal)) == sizeof(signal)) {
		err = write_mark(marks, writer, now_ns, true);
		diag_note("mark %" PRIu64, marks->nr);
	}
	return err;
}
