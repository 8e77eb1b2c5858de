/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps of loading BPF programs that the recording programs and backpressure's have in common. */
#ifndef LEAKTOOLS_RECORDER_BPF_SETUP_H
#define LEAKTOOLS_RECORDER_BPF_SETUP_H

/* Keeps libbpf from printing. leakrec can record without BPF, and prints messages of its own. */
void bpf_setup_silence_libbpf(void);

/*
 * Tells the programs which cgroup RECORD_CGROUP records. @map_fd is their map recorded_cgroup.
 * Returns 0 or a negative errno.
 */
int bpf_setup_set_cgroup(int map_fd, int cgroup_fd);

#endif
