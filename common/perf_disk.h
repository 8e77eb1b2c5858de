/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The on-disk structures of perf.data that uapi/linux/perf_event.h does not define (Linux 6.1,
 * tools/perf/util/header.h and tools/lib/perf/include/perf/event.h). docs/perf-data.md says which
 * of them are read and written, and how.
 */
#ifndef LEAKTOOLS_COMMON_PERF_DISK_H
#define LEAKTOOLS_COMMON_PERF_DISK_H

#include <assert.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_MAGIC	   0x32454c4946524550ULL /* "PERFILE2", in the writer's byte order */
#define PERF_MAGIC_SWAPPED 0x50455246494c4532ULL

/* Types of records that perf record makes, not the kernel. They have no trailer. */
enum {
	PERF_USER_HEADER_ATTR = 64,
	PERF_USER_TRACING_DATA = 66,
	PERF_USER_BUILD_ID = 67,
	PERF_USER_FINISHED_ROUND = 68,
	PERF_USER_AUXTRACE = 71,
	PERF_USER_HEADER_FEATURE = 80,
	PERF_USER_COMPRESSED = 81,
	PERF_USER_FINISHED_INIT = 82,
	PERF_USER_COMPRESSED2 = 83,
	PERF_USER_KNOWN_MAX = PERF_USER_COMPRESSED2,
};

#define PERF_USER_TYPE_START  64
#define PERF_KERNEL_KNOWN_MAX 21 /* PERF_RECORD_AUX_OUTPUT_HW_ID, Linux 5.16 */

/* Feature sections that are read or written: bits of perf_disk_header.features. */
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
	PERF_FEATURE_COMPRESSED = 27,
	PERF_FEATURE_CLOCK_DATA = 29,
	PERF_NR_FEATURES = 256,
};

struct perf_disk_section {
	uint64_t offset;
	uint64_t size;
};

/* The section CLOCK_DATA: the time of day at a time of the recording's clock. */
struct perf_clock_data {
	uint32_t version;
	uint32_t clockid;
	uint64_t day_ns;
	uint64_t clock_ns;
};
#define PERF_CLOCK_DATA_VERSION 1

struct perf_disk_header {
	uint64_t magic;
	uint64_t size;
	uint64_t attr_size; /* of an entry in attrs: a perf_event_attr and the section of its ids */
	struct perf_disk_section attrs;
	struct perf_disk_section data;
	struct perf_disk_section event_types;
	uint64_t features[PERF_NR_FEATURES / 64];
};

static_assert(sizeof(struct perf_disk_header) == 104, "perf.data's header is 104 bytes");

/* The pipe format: a header of magic and size only, then records. */
#define PERF_PIPE_HEADER_SIZE 16

/* Starts a PERF_USER_BUILD_ID record and an entry of the BUILD_ID section; a path follows. */
struct perf_disk_build_id {
	struct perf_event_header header;
	int32_t pid;
	uint8_t build_id[20];
	uint8_t size; /* valid with PERF_MISC_BUILD_ID_SIZE */
	uint8_t reserved[3];
};

static_assert(sizeof(struct perf_disk_build_id) == 36, "a build-id entry's fixed part is 36 bytes");

#define PERF_MISC_BUILD_ID_SIZE (1 << 15)

struct perf_disk_mmap2 {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, len, file_offset;
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, generation;
		};
		struct { /* with PERF_RECORD_MISC_MMAP_BUILD_ID */
			uint8_t build_id_size;
			uint8_t reserved[3];
			uint8_t build_id[20];
		};
	};
	uint32_t prot, flags;
};

static_assert(sizeof(struct perf_disk_mmap2) == 72, "PERF_RECORD_MMAP2's fixed part is 72 bytes");

/*
 * True if the record has a build-id. The flag may also be left from the same record of another
 * tracer, one that asked for build-ids: perf_event_mmap_output(), kernel/events/core.c (Linux 5.12
 * to 6.18) does not clear it. The union then holds a device, an inode and its generation. After a
 * build-id the kernel writes zeros.
 */
static inline bool perf_disk_has_build_id(const struct perf_disk_mmap2 *disk)
{
	uint8_t sum = disk->reserved[0] | disk->reserved[1] | disk->reserved[2];

	if (!(disk->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) ||
	    disk->build_id_size > sizeof(disk->build_id))
		return false;
	for (size_t i = disk->build_id_size; i < sizeof(disk->build_id); i++)
		sum |= disk->build_id[i];
	return sum == 0;
}

struct perf_disk_mmap {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, len, file_offset;
};

static_assert(sizeof(struct perf_disk_mmap) == 40, "PERF_RECORD_MMAP's fixed part is 40 bytes");

struct perf_disk_comm {
	struct perf_event_header header;
	uint32_t pid, tid;
};

struct perf_disk_task { /* FORK, EXIT */
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

static_assert(sizeof(struct perf_disk_task) == 32, "PERF_RECORD_FORK is 32 bytes");

struct perf_disk_lost {
	struct perf_event_header header;
	uint64_t id, lost;
};

struct perf_disk_lost_samples {
	struct perf_event_header header;
	uint64_t lost;
};

/* Linux 6.1 and later: events that a BPF filter dropped; they are not lost. */
#define PERF_MISC_LOST_SAMPLES_BPF (1 << 15)

#endif
