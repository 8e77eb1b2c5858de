/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The build-ids of the mapped files. Those of files that are mapped while recording come from the
 * kernel (MMAP2 records of an event with attr.build_id), those of earlier mappings from the files.
 */
#ifndef LEAKTOOLS_RECORDER_BUILD_IDS_H
#define LEAKTOOLS_RECORDER_BUILD_IDS_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_SIZE 20

struct build_id {
	uint8_t bytes[BUILD_ID_SIZE];
	uint8_t size; /* 0: the file has none */
};

struct build_id_entry {
	char *path;
	struct build_id id;
};

struct build_ids {
	struct build_id_entry *entries;
	size_t nr_entries;
	uint32_t *slots; /* a hash table of indices + 1, with linear probing */
};

/* Reads the build-id note of the ELF file @fd; @ret->size is 0 if there is none. */
void build_id_read(int fd, struct build_id *ret);

/*
 * Adds the path and the build-id of an MMAP2 record that has one, unless the pair is known. Ignores
 * other records. Returns 0 or -ENOMEM.
 */
int build_ids_add_record(struct build_ids *ids, const struct perf_event_header *record);

void build_ids_deinit(struct build_ids *ids);

#endif
