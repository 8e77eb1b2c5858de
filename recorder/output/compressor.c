/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/compressor.h"

#include "common/perf_disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

struct compressor {
	ZSTD_CCtx *context;
	ZSTD_EndDirective end;	 /* of what a COMPRESSED record holds */
	uint64_t consumed, made; /* bytes */
};

/* zstd stores incompressible bytes, plus 3 bytes for each block and a few for the frame. */
static_assert(sizeof(struct perf_event_header) + ZSTD_COMPRESSBOUND(COMPRESSOR_MAX_CONTENT_BYTES) <=
		      COMPRESSOR_RECORD_BYTES,
	      "a COMPRESSED record's size is 16 bits");

int compressor_create(int level, struct compressor **ret)
{
	struct compressor *compressor;

	if (level < 1 || level > COMPRESSOR_MAX_LEVEL)
		return -EINVAL;
	compressor = calloc(1, sizeof(*compressor));
	if (!compressor)
		return -ENOMEM;
	compressor->context = ZSTD_createCCtx();
	if (!compressor->context || ZSTD_isError(ZSTD_CCtx_setParameter(
					    compressor->context, ZSTD_c_compressionLevel, level))) {
		compressor_destroy(compressor);
		return -ENOMEM;
	}
	compressor->end = level == COMPRESSOR_FAST_LEVEL ? ZSTD_e_end : ZSTD_e_flush;
	*ret = compressor;
	return 0;
}

void compressor_destroy(struct compressor *compressor)
{
	if (!compressor)
		return;
	ZSTD_freeCCtx(compressor->context);
	free(compressor);
}

int compressor_make_record(struct compressor *compressor, const char *bytes, size_t size_bytes,
			   char *record, size_t *ret_record_bytes)
{
	struct perf_event_header header = {.type = PERF_USER_COMPRESSED};
	ZSTD_inBuffer in = {bytes, size_bytes, 0};
	ZSTD_outBuffer out = {record, COMPRESSOR_RECORD_BYTES, sizeof(header)};
	size_t left;

	do {
		left = ZSTD_compressStream2(compressor->context, &out, &in, compressor->end);
		if (ZSTD_isError(left))
			return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? -ENOMEM
										       : -EIO;
	} while (left > 0 && out.pos < out.size);
	if (left > 0)
		return -EIO; /* larger than ZSTD_COMPRESSBOUND() */
	header.size = (uint16_t)out.pos;
	memcpy(record, &header, sizeof(header));
	compressor->consumed += in.size;
	compressor->made += out.pos;
	*ret_record_bytes = out.pos;
	return 0;
}

uint32_t compressor_ratio(const struct compressor *compressor)
{
	uint64_t ratio = compressor->made
				 ? (compressor->consumed + compressor->made / 2) / compressor->made
				 : 1;

	return ratio ? (uint32_t)ratio : 1;
}
