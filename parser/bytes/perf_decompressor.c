/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/bytes/perf_decompressor.h"

#include "common/diag.h"
#include "common/perf_disk.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <zstd_errors.h>

#define BLOCK_HEADER_BYTES 3 /* RFC 8878, 3.1.1.2 */

void perf_decompressor_init(struct perf_decompressor *decompressor, const char *name)
{
	*decompressor = (struct perf_decompressor){.name = name};
}

void perf_decompressor_deinit(struct perf_decompressor *decompressor)
{
	ZSTD_freeDCtx(decompressor->context);
	decompressor->context = NULL;
}

static int corrupted(const struct perf_decompressor *decompressor, const char *why)
{
	diag_error("%s: corrupted at offset %" PRIu64 ": compressed data: %s", decompressor->name,
		   decompressor->offset, why);
	return -EINVAL;
}

int perf_decompressor_feed(struct perf_decompressor *decompressor, uint32_t type,
			   const uint8_t *bytes, size_t size_bytes, uint64_t offset)
{
	size_t start = sizeof(struct perf_event_header), part_bytes = size_bytes - start;
	uint64_t data_bytes;

	decompressor->offset = offset;
	/* Linux 6.16 pads the data to 8 bytes and puts its size in front. */
	if (type == PERF_USER_COMPRESSED2) {
		if (part_bytes < sizeof(data_bytes))
			return corrupted(decompressor, "the record is too small");
		memcpy(&data_bytes, bytes + start, sizeof(data_bytes));
		start += sizeof(data_bytes);
		part_bytes -= sizeof(data_bytes);
		if (data_bytes > part_bytes)
			return corrupted(decompressor, "it is larger than its record");
		part_bytes = (size_t)data_bytes;
	}
	if (!decompressor->context)
		decompressor->context = ZSTD_createDCtx();
	if (!decompressor->context)
		return -ENOMEM;
	decompressor->input = (ZSTD_inBuffer){bytes + start, part_bytes, 0};
	return 0;
}

ssize_t perf_decompressor_read(struct perf_decompressor *decompressor, void *buffer,
			       size_t size_bytes)
{
	ZSTD_inBuffer *input = &decompressor->input;
	ZSTD_outBuffer output = {buffer, size_bytes, 0};

	/* Some calls only consume the start of a block. */
	while (output.pos == 0 && (input->pos < input->size || decompressor->more)) {
		size_t ret = ZSTD_decompressStream(decompressor->context, &output, input);

		if (ZSTD_isError(ret))
			return ZSTD_getErrorCode(ret) == ZSTD_error_memory_allocation
				       ? -ENOMEM
				       : corrupted(decompressor, ZSTD_getErrorName(ret));
		decompressor->more = output.pos == output.size;
		decompressor->expected_bytes = ret;
	}
	return (ssize_t)output.pos;
}

bool perf_decompressor_is_inside(const struct perf_decompressor *decompressor)
{
	return decompressor->expected_bytes != 0 &&
	       decompressor->expected_bytes != BLOCK_HEADER_BYTES;
}
