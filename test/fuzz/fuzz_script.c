/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes any text as perf script's. */
#include "parser/perfdata/perf_script_text.h"
#include "test/fuzz/consumer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Input that is not for the reader of texts is fuzz_file's. */
	if (size >= 8 && memcmp(data, "PERFILE2", 8) == 0)
		return -1;
	fuzz_read(data, size);
	return 0;
}
