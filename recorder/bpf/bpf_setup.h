/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps of loading BPF programs that the recording programs and backpressure's have in common. */
#ifndef LEAKTOOLS_RECORDER_BPF_SETUP_H
#define LEAKTOOLS_RECORDER_BPF_SETUP_H

/* Keeps libbpf from printing: without BPF the recorder goes on, and says so in its own words. */
void bpf_setup_silence_libbpf(void);

/*
 * Tells programs of a RECORD_CGROUP which cgroup is recorded: @map_fd is their recorded_cgroup.
 * Returns 0 or a negative errno.
 */
int bpf_setup_set_cgroup(int map_fd, int cgroup_fd);

#endif
