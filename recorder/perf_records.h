/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The on-disk structures of perf.data that uapi/linux/perf_event.h does not define (Linux 6.1,
 * tools/perf/util/header.h and tools/lib/perf/include/perf/event.h, whose copy in libperf's
 * headers needs more of the kernel's tree than it installs).
 */
#ifndef LEAKTOOLS_RECORDER_PERF_RECORDS_H
#define LEAKTOOLS_RECORDER_PERF_RECORDS_H

#include <assert.h>
#include <linux/perf_event.h>
#include <stdint.h>

#define PERF_MAGIC 0x32454c4946524550ULL /* "PERFILE2" */

/* Record types beyond the kernel's. */
enum {
	PERF_RECORD_USER_HEADER_ATTR = 64,
	PERF_RECORD_USER_TRACING_DATA = 66,
	PERF_RECORD_USER_BUILD_ID = 67,
	PERF_RECORD_USER_FINISHED_ROUND = 68,
	PERF_RECORD_USER_HEADER_FEATURE = 80,
};

enum {
	PERF_FEATURE_TRACING_DATA = 1,
	PERF_FEATURE_BUILD_ID = 2,
	PERF_FEATURE_HOSTNAME = 3,
	PERF_FEATURE_OSRELEASE = 4,
	PERF_FEATURE_VERSION = 5,
	PERF_FEATURE_ARCH = 6,
	PERF_FEATURE_NRCPUS = 7,
	PERF_FEATURE_CMDLINE = 11,
	PERF_FEATURE_EVENT_DESC = 12,
};

struct perf_section {
	uint64_t offset;
	uint64_t size;
};

struct perf_data_header {
	uint64_t magic;
	uint64_t size;
	uint64_t attr_size; /* of one struct perf_data_attr */
	struct perf_section attrs;
	struct perf_section data;
	struct perf_section event_types;
	uint64_t features[4]; /* a bitmap of PERF_FEATURE_* */
};

static_assert(sizeof(struct perf_data_header) == 104, "perf.data's header is 104 bytes");

struct perf_pipe_header {
	uint64_t magic;
	uint64_t size;
};

static_assert(sizeof(struct perf_pipe_header) == 16, "the pipe format's header is 16 bytes");

struct perf_data_attr {
	struct perf_event_attr attr;
	struct perf_section ids;
};

/* Header, then the path, padded with NULs to 8 bytes. */
struct perf_build_id_record {
	struct perf_event_header header;
	int32_t pid;
	uint8_t build_id[20];
	uint8_t size;
	uint8_t reserved[3];
};

static_assert(sizeof(struct perf_build_id_record) == 36, "build-id record");

#define PERF_MISC_BUILD_ID_SIZE (1 << 15) /* perf_build_id_record.size is valid */

/* The trailer of records other than samples, for RECORD_SAMPLE_TYPE. */
struct perf_record_trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

static_assert(sizeof(struct perf_record_trailer) == 32, "sample_id of RECORD_SAMPLE_TYPE");

struct perf_mmap2_event {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, len, file_offset;
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, generation;
		};
		struct { /* PERF_RECORD_MISC_MMAP_BUILD_ID */
			uint8_t build_id_size;
			uint8_t reserved[3];
			uint8_t build_id[20];
		};
	};
	uint32_t prot, flags;
	char path[];
};

static_assert(sizeof(struct perf_mmap2_event) == 72, "PERF_RECORD_MMAP2");

struct perf_comm_event {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[16];
};

struct perf_task_event { /* FORK, EXIT */
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

struct perf_lost_event {
	struct perf_event_header header;
	uint64_t id, lost;
};

struct perf_lost_samples_event {
	struct perf_event_header header;
	uint64_t lost;
};

#endif
