/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pprof format: held blocks and bytes by stack, as a gzipped profile.proto. */
#include "common/scope.h"
#include "report/formats/formats.h"
#include "report/formats/pprof_profile.h"

#include <errno.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib.h: adding 16 writes a gzip header */

static int64_t clamp(uint64_t amount)
{
	return amount > INT64_MAX ? INT64_MAX : (int64_t)amount;
}

static int write_gzipped(FILE *out, uint8_t *bytes, size_t size)
{
	uint8_t buffer[16384];
	z_stream stream = {.next_in = bytes};
	int status = Z_OK;

	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	do {
		/* zlib's sizes have 32 bits. */
		uInt part = size > 1 << 30 ? 1 << 30 : (uInt)size;

		stream.avail_in = part;
		size -= part;
		do {
			stream.next_out = buffer;
			stream.avail_out = sizeof(buffer);
			status = deflate(&stream, size ? Z_NO_FLUSH : Z_FINISH);
			fwrite(buffer, 1, sizeof(buffer) - stream.avail_out, out);
		} while (!stream.avail_out && !ferror(out));
	} while (size && !ferror(out));
	deflateEnd(&stream);
	return ferror(out) || status != Z_STREAM_END ? -EIO : 0;
}

static int write_report(FILE *out, const struct report_input *input)
{
	const struct leak_report *report = input->report;
	const struct analysis *analysis = report->analysis;
	struct pprof_profile *profile = pprof_profile_create();
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;
	int err = profile ? 0 : -ENOMEM;

	for (size_t i = 0; i < report->nr_listed_sites && !err; i++) {
		const struct leak_site *site = &report->sites[i];

		err = pprof_profile_add(profile, analysis->stacks,
					report->verdicts.sites[site->site].site->stack_id,
					clamp(site->blocks), clamp(site->bytes));
	}
	if (!err)
		err = pprof_profile_pack(profile, clamp(analysis->end_ns - analysis->start_ns),
					 &bytes, &size);
	if (!err)
		err = write_gzipped(out, bytes, size);
	pprof_profile_destroy(profile);
	return err;
}

const struct report_format pprof_format = {
	.name = "pprof", .is_binary = true, .write = write_report};
