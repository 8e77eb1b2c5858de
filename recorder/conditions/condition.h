/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When to write what leakrec keeps in memory (--when; docs/segments.md, Flight recorder): what the
 * user gives, and when it is met. What is measured is the caller's (condition_sources.h).
 */
#ifndef LEAKTOOLS_RECORDER_CONDITION_H
#define LEAKTOOLS_RECORDER_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In one recording. */
#define CONDITIONS_MAX 16

enum condition_kind {
	CONDITION_RSS,	      /* "rss=2G": resident memory, in bytes */
	CONDITION_RSS_GROWTH, /* "rss+=100M/m": the same, grown within a minute, or an hour (/h) */
	CONDITION_PRESSURE,   /* "pressure=10%": of the last ten seconds that tasks waited */
	CONDITION_HIGH,	      /* "memory.high": the cgroup's events of that name */
	CONDITION_MAX,
	CONDITION_OOM,
	CONDITION_SIGNAL, /* "signal": a process was ended by one */
	CONDITION_END,	  /* "end": the recording ends */
};

/* What a growth is compared with: so many samples in its time, and the one before. */
#define CONDITION_SAMPLES 61

struct condition_sample {
	uint64_t time_ns, bytes;
};

struct condition {
	const char *text; /* as the user gave it */
	enum condition_kind kind;
	uint64_t limit;	    /* bytes; of a pressure, hundredths of a percent */
	uint64_t within_ns; /* of a growth */
	/* While it is watched. */
	bool is_met; /* and was reported: it has to end before it counts again */
	bool has_before;
	uint64_t before;				    /* of events: how many there were */
	struct condition_sample samples[CONDITION_SAMPLES]; /* of a growth, the oldest one first */
	size_t nr_samples;
};

/*
 * Parses @text, which has to outlive *@ret. Returns 0, or -EINVAL if it is no condition; nothing is
 * reported.
 */
int condition_parse(const char *text, struct condition *ret);

/* What was measured; UINT64_MAX: it is not known. */
struct condition_values {
	uint64_t now_ns;
	uint64_t rss_bytes; /* of all recorded processes */
	uint64_t pressure;  /* hundredths of a percent */
	uint64_t high, max, oom;
	size_t nr_processes; /* alive, if their memory is asked for */
};

/*
 * True if the condition is met now, and was not when it was last checked. A size has to fall below
 * nine tenths of its limit, a growth or a pressure below a half, before it counts again. The first
 * check of events only counts them. CONDITION_SIGNAL and CONDITION_END are the caller's.
 */
bool condition_check(struct condition *condition, const struct condition_values *values);

#endif
