/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes any bytes as a core file: its notes and segments, the heap in it, what points to its
 * blocks, and what is written about them.
 */
#include "scan/analysis/scan.h"
#include "scan/report/block_lines.h"
#include "scan/report/census_json.h"
#include "scan/core/core_file.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_reports(const struct scan *scan)
{
	struct module_symbols symbols = {0};
	struct scan_report report = {.scan = scan, .symbols = &symbols};
	FILE *out = fopen("/dev/null", "w");

	if (!out)
		abort();
	object_types_init(&report.types, scan->snapshot);
	census_json_write(out, &report);
	block_lines_write(out, &report, true);
	object_types_deinit(&report.types);
	module_symbols_deinit(&symbols);
	fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("core", MFD_CLOEXEC);
	struct snapshot snapshot;
	struct scan scan;
	char path[64];

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (core_file_read(&snapshot, path) == 0) {
		/* Not the only snapshot: blocks are called lost. */
		struct lost_list before = {0};

		snapshot.is_core = false;
		if (scan_init(&scan, &snapshot, NULL, &before) == 0)
			write_reports(&scan);
		scan_deinit(&scan);
	}
	snapshot_deinit(&snapshot);
	close(fd);
	return 0;
}
