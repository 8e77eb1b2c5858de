/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of a program ring: one CPU's, the only value of a BPF array, mapped by the recorder.
 * The recording programs write perf records into it (ring.bpf.h), the recorder reads them
 * (bpf_ring.h).
 *
 * Positions count bytes for ever; a record at position p begins at data[p % size]. It never wraps:
 * one that begins before the end goes on in the slack behind it, and the next begins where it would
 * have if this one had wrapped. The first word is the record's seal: p xor a secret of the
 * recording, written last. Until it is there the record is being written. What a lap before left
 * there, which may be bytes of the target's choice, cannot pass for it.
 *
 * Compared with a BPF ring buffer: one locked instruction a record instead of a lock and two helper
 * calls, records of any length written in place, and how full a ring is costs two loads.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_RING_SHARED_H
#define LEAKTOOLS_RECORDER_BPF_RING_SHARED_H

#define BPF_RING_DATA_OFFSET 4096  /* of the data in the value */
#define BPF_RING_SLACK_BYTES 65536 /* a record's size is one of 16 bits */
#define BPF_RING_SEAL_BYTES  8
#define BPF_RING_FILLER	     0 /* perf_event_header.type of room that holds no record */

struct bpf_ring_control {
	/* The programs'. */
	unsigned long long head;      /* all before it is taken */
	unsigned long long seen_tail; /* of when it was last looked at */
	unsigned long long records;   /* that have got room so far, fillers aside */
	unsigned long long pad1[5];
	/* The recorder's. */
	unsigned long long tail; /* all before it is free again */
	unsigned long long pad2[7];
};

#endif
