/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes any bytes as a recording: a file, perf's pipe format, compressed or not. */
#include "test/fuzz/consumer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read(data, size);
	return 0;
}
