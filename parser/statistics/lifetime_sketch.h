/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A histogram of lifetimes with logarithmic buckets, eight per doubling. The error of a quantile is
 * at most LIFETIME_ERROR of its value, whatever the distribution. Memory is bounded: 4 bytes for
 * each bucket between the shortest and the longest lifetime, at most 1,952 bytes. The lifetimes of
 * one stack mostly span a few octaves.
 *
 * The buckets are those of Gil Tene's HdrHistogram. The estimate inside a bucket minimises the
 * greatest relative error, as in DDSketch (Masson, Rim and Lee, VLDB 2019).
 */
#ifndef LEAKTOOLS_PARSER_LIFETIME_SKETCH_H
#define LEAKTOOLS_PARSER_LIFETIME_SKETCH_H

#include <stddef.h>
#include <stdint.h>

#define LIFETIME_SUB_BITS 3 /* 8 buckets an octave */
#define LIFETIME_ERROR	  (1.0 / 17)
#define LIFETIME_BUCKETS  ((64 - LIFETIME_SUB_BITS + 1) << LIFETIME_SUB_BITS)

/* Zero it before use. */
struct lifetime_sketch {
	uint32_t *counts; /* of buckets [first, first + nr); a count saturates at UINT32_MAX */
	uint16_t first, nr;
};

void lifetime_sketch_deinit(struct lifetime_sketch *sketch);

/* The bucket of @ns; less than LIFETIME_BUCKETS. */
static inline unsigned int lifetime_bucket(uint64_t ns)
{
	unsigned int octave;

	if (ns < (1u << LIFETIME_SUB_BITS))
		return (unsigned int)ns;
	octave = 63 - (unsigned int)__builtin_clzll(ns);
	return ((octave - LIFETIME_SUB_BITS + 1) << LIFETIME_SUB_BITS) |
	       ((unsigned int)(ns >> (octave - LIFETIME_SUB_BITS)) &
		((1u << LIFETIME_SUB_BITS) - 1));
}

/* The shortest lifetime in @bucket, and the estimate for all of them. */
uint64_t lifetime_bucket_start(unsigned int bucket);
double lifetime_bucket_value(unsigned int bucket);

/* Makes room for @bucket. Returns 0 or -ENOMEM. */
int lifetime_sketch_grow(struct lifetime_sketch *sketch, unsigned int bucket);

/* Adds a lifetime. Returns 0 or -ENOMEM. */
static inline int lifetime_sketch_add(struct lifetime_sketch *sketch, uint64_t ns)
{
	unsigned int bucket = lifetime_bucket(ns);

	if (bucket - sketch->first >= sketch->nr) {
		int err = lifetime_sketch_grow(sketch, bucket);

		if (err)
			return err;
	}
	sketch->counts[bucket - sketch->first] +=
		sketch->counts[bucket - sketch->first] != UINT32_MAX;
	return 0;
}

/* Removes a lifetime that was added. */
void lifetime_sketch_remove(struct lifetime_sketch *sketch, uint64_t ns);

/* Adds all of @other. Returns 0 or -ENOMEM. */
int lifetime_sketch_merge(struct lifetime_sketch *sketch, const struct lifetime_sketch *other);

/* The number of lifetimes in @bucket, which may be any number. */
uint32_t lifetime_sketch_count(const struct lifetime_sketch *sketch, unsigned int bucket);
uint64_t lifetime_sketch_total(const struct lifetime_sketch *sketch);

/* The @quantile (0 to 1) in nanoseconds, within LIFETIME_ERROR. 0: the sketch is empty. */
double lifetime_sketch_quantile(const struct lifetime_sketch *sketch, double quantile);

#endif
