/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of a BPF ring. Each CPU has one, the only value of a BPF array, which the recorder
 * maps. The recording programs write perf records into it (ring.bpf.h), the recorder reads them
 * (bpf_ring.h).
 *
 * Positions count bytes and never wrap; a record at position p begins at data[p % size]. A record
 * that begins near the end continues in the slack after it, and the next one begins where it would
 * if this one had wrapped. The first word is the record's seal, p xor a secret of the recording,
 * written last. Without it, the record is still being written. Bytes from the lap before, which the
 * target may have chosen, cannot look like the seal.
 *
 * Compared with the kernel's BPF ring buffer, a record needs one locked instruction instead of a
 * lock and two helper calls, records of any length are written in place, and two loads show how
 * full the ring is.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_RING_SHARED_H
#define LEAKTOOLS_RECORDER_BPF_RING_SHARED_H

#define BPF_RING_DATA_OFFSET 4096  /* of the data in the value */
#define BPF_RING_SLACK_BYTES 65536 /* a record's size is one of 16 bits */
#define BPF_RING_SEAL_BYTES  8
#define BPF_RING_FILLER	     0 /* perf_event_header.type of unused room */

struct bpf_ring_control {
	/* written by the programs */
	unsigned long long head;      /* everything before it is reserved */
	unsigned long long seen_tail; /* @tail at the last look */
	unsigned long long records;   /* how many have got room, without fillers */
	unsigned long long pad1[5];
	/* written by the recorder */
	unsigned long long tail; /* everything before it is free again */
	unsigned long long pad2[7];
};

#endif
