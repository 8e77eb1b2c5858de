/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where, when and how a recording was made, as its header tells. All of it is untrusted text. */
#ifndef LEAKTOOLS_PARSER_RECORDING_ORIGIN_H
#define LEAKTOOLS_PARSER_RECORDING_ORIGIN_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed, it knows nothing. */
struct recording_origin {
	char host[256];
	char command[2048]; /* the recorder's command line, quoted for a shell; may be cut */
	/* The time of day, since 1970, at a time of the recording's clock; 0: not known. */
	uint64_t day_ns, clock_ns;
};

/* Takes in what a feature section says, which may be malformed; ignores those of no use here. */
void recording_origin_read(struct recording_origin *origin, uint64_t feature,
			   const uint8_t *section, size_t size_bytes);

/* The time of day at @time_ns of the recording's clock; 0: not known. */
uint64_t recording_origin_time_of_day(const struct recording_origin *origin, uint64_t time_ns);

#endif
