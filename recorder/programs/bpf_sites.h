/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sites that the recording programs watch, as user space knows them; what the programs are told
 * of each (struct bpf_site); and how the recording describes their events: attributes, and formats
 * as tracefs has them for the same probe.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_SITES_H
#define LEAKTOOLS_RECORDER_BPF_SITES_H

#include "recorder/bpf/bpf_recorder_shared.h"
#include "recorder/events/record_events.h"

/* Ids and types of events that have no perf event. The kernel's own ids count from 1. */
#define BPF_FIRST_ID	(1ULL << 32)
#define BPF_FIRST_TYPE	60000 /* types have 16 bits; tracefs uses few of them */
#define BPF_MAX_TYPES	(BPF_NR_EVENTS * BPF_MAX_SITES + 256)

#define BPF_MAX_POINTS	64
#define BPF_MAX_WATCHED (BPF_MAX_SITES - BPF_MAX_POINTS)

/*
 * How many sites the files of one user may take, and those of all users together, in recordings
 * where any user can bring files. Root's files may take all. The owner of a file counts, not the
 * process that maps it: the first user of a system library would otherwise pay for all.
 */
#define BPF_USER_SHARE	(BPF_MAX_WATCHED / 4)
#define BPF_USERS_SHARE (BPF_MAX_WATCHED / 4 * 3)

/* A function, or a store in one, to watch. Its index is that of its struct bpf_site. */
struct watched_site {
	const struct probe_file *file;
	uint64_t offset;	   /* in the file */
	const struct probe *entry; /* the entry, or the store; NULL: it is not recorded */
	/* NULL: there is no return, or it is not recorded. A PROBE_EXIT stands for all exits. */
	const struct probe *ret;
	/* If there are any points, they are watched instead of the function. */
	size_t first_point, nr_points;
	bool left_out; /* in windows: the kernel takes no probe in the file */
};

/*
 * A point inside of a site's function (probes/sites/single_trap_points.h). Its struct bpf_site is
 * at the table's other end: bpf_point_index().
 */
struct watched_point {
	const struct watched_site *site;
	const struct single_trap_point *point;
};

/* The events of a row of the schema, for all files; type 0: there is none. */
struct schema_events {
	struct bpf_event entry, store, ret;
};

struct watched_sites {
	struct watched_site watched[BPF_MAX_SITES];
	size_t nr_watched;
	size_t nr_initial; /* the first of these: the others are of files mapped later */
	struct watched_point points[BPF_MAX_POINTS];
	size_t nr_points;
	struct schema_events *rows; /* in the order of the schema's table */
};

void watched_sites_deinit(struct watched_sites *sites);

/* Appends the sites for @set's probes. Returns 0 or -E2BIG. */
int bpf_sites_find(struct watched_sites *sites, const struct probe_set *set);

/*
 * The same, but leaves out files for which there is no room, or which are over their owner's share.
 * *@ret_left_out: the first of them, or NULL. Returns how many files are left out.
 */
size_t bpf_sites_find_shared(struct watched_sites *sites, const struct probe_set *set,
			     const struct probe_file **ret_left_out);

/* The same for one file. Returns false if it is left out. */
bool bpf_sites_find_file_shared(struct watched_sites *sites, const struct probe_file *file);

/* How many exits watched->ret stands for, which follow each other in the file's probes; or 0. */
size_t watched_site_nr_exits(const struct watched_site *watched);

/* Where the point is in its file. */
uint64_t watched_point_offset(const struct watched_point *point);

/* The index of the @nth point's struct bpf_site. */
static inline size_t bpf_point_index(size_t nth)
{
	return BPF_MAX_SITES - 1 - nth;
}

/*
 * Fills in the programs' @table and adds the sites' events to @events. A recording has to name all
 * its events when it begins. So it also gets events for files that are mapped later: one for each
 * row of the schema, for all files. If all processes are recorded, there may be many files, so
 * these events serve all of them. Returns 0 or -ENOMEM.
 */
int bpf_sites_describe(struct watched_sites *sites, struct bpf_site *table,
		       const struct record_config *config, struct record_events *events);

/*
 * Fills in the programs' @table for the sites from @first on, of a file that was mapped later.
 * Drops sites without an event. Returns how many are left.
 */
size_t bpf_sites_fill_late(struct watched_sites *sites, struct bpf_site *table, size_t first);

#endif
