/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples in the rings of the recording programs, as far as the recorder looks into them. */
#ifndef LEAKTOOLS_RECORDER_SAMPLES_SHARED_H
#define LEAKTOOLS_RECORDER_SAMPLES_SHARED_H

#include "recorder/bpf/bpf_recorder_shared.h"

#include <linux/perf_event.h>
#include <stddef.h>

/* Without a stack: IDENTIFIER | IP | TID | TIME | CPU | RAW. */
struct plain_head {
	struct perf_event_header header;
	unsigned long long id, ip;
	unsigned int pid, tid;
	unsigned long long time_ns;
	unsigned int cpu, reserved;
};

/* The beginning of RAW: its size, and the fields that every tracepoint has. */
struct raw_head {
	unsigned int size;
	unsigned short type;
	unsigned char flags, preempt_count;
	int pid;
};

/* The sample of a mark. Its string is as in tracefs (__data_loc): the text follows the fields. */
struct mark_record {
	struct plain_head head;
	struct raw_head raw;
	unsigned int ip_words[2]; /* 64 bits, not aligned to eight bytes */
	unsigned int data_loc;	  /* the text's offset in the raw data, and its size << 16 */
	union {
		char text[BPF_TEXT_BYTES];
		unsigned long long address; /* of the text, with MARK_IS_UNREAD */
	};
};

/* @bytes: of the text, with its NUL. */
#define MARK_DATA_LOC(bytes)                                                                       \
	((unsigned int)(offsetof(struct mark_record, text) -                                       \
			offsetof(struct mark_record, raw.type)) |                                  \
	 (unsigned int)(bytes) << 16)

/*
 * In header.misc, in the ring only: the text's page is not in memory. A program must not wait for
 * it: while one does, no uprobe can be removed on the whole machine (uprobe_unregister_sync(),
 * kernel/events/uprobes.c, Linux 6.12). head.reserved is the index of the site; the recorder looks
 * for the text in the file (mark_texts.h).
 */
#define MARK_IS_UNREAD PERF_RECORD_MISC_EXT_RESERVED

#endif
