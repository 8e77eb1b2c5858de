/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which places the recording programs watch, what they write there, and how the recording describes
 * it: attributes, and formats as tracefs has them for the same probe.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_SITES_H
#define LEAKTOOLS_RECORDER_BPF_SITES_H

#include "recorder/programs/bpf_recorder.h"

/* Ids and types of events that no perf event stands for; the kernel's count from 1. */
#define BPF_REC_FIRST_ID   (1ULL << 32)
#define BPF_REC_FIRST_TYPE 60000 /* 16 bits, and types of tracefs' are few */
#define BPF_REC_MAX_TYPES  (BPF_REC_NR_EVENTS * BPF_REC_MAX_SITES + 256)

#define BPF_REC_MAX_PLACES (BPF_REC_MAX_SITES - BPF_REC_MAX_POINTS)

/*
 * What of the places a user's files may take, and all users' together, where whoever likes can
 * bring files. Root's are everybody's: what the others leave is theirs at least. By a file's owner,
 * not by who maps it, because a place is a file's: of the system's libraries, the first user to be
 * seen with them would have to answer for all.
 */
#define BPF_REC_USER_SHARE  (BPF_REC_MAX_PLACES / 4)
#define BPF_REC_USERS_SHARE (BPF_REC_MAX_PLACES / 4 * 3)

/* Appends the places for @set's probes. Returns 0 or -E2BIG. */
int bpf_sites_find(struct bpf_recorder *programs, const struct probe_set *set,
		   bool only_registered);

/*
 * The same, but leaves out files for which there is no room, or which are over their owner's share.
 * *@ret_left_out: the first of them, or NULL. Returns how many they are.
 */
size_t bpf_sites_find_shared(struct bpf_recorder *programs, const struct probe_set *set,
			     bool only_registered, const struct probe_file **ret_left_out);

/* The same for one file. Returns false if it is left out. */
bool bpf_sites_find_file_shared(struct bpf_recorder *programs, const struct probe_file *file,
				bool only_registered);

/* How many exits place->ret stands for, which stand one after the other; or 0. */
size_t bpf_place_nr_exits(const struct bpf_place *place);

/*
 * Fills in @sites and adds the places' events to @events, and those of files that may come later,
 * which a recording must have named before: one for each row of the schema, whatever the file. They
 * serve all files where all processes are recorded, of which there may be many. Returns 0 or
 * -ENOMEM.
 */
int bpf_sites_describe(struct bpf_recorder *programs, struct bpf_site *sites,
		       const struct record_config *config, struct record_events *events);

/*
 * Fills in @sites for the places from @first on, of a file that came while recording. Places that
 * no event is for are dropped. Returns how many are left.
 */
size_t bpf_sites_fill_late(struct bpf_recorder *programs, struct bpf_site *sites, size_t first);

#endif
