/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What has become of the blocks that a recording holds at its end (leakscan --recording). */
#ifndef LEAKTOOLS_SCAN_RECORDING_REPORT_H
#define LEAKTOOLS_SCAN_RECORDING_REPORT_H

#include "scan/recording/recording.h"
#include "scan/report/holder_text.h"

enum recording_report_rows {
	RECORDING_REPORT_SCREEN,
	RECORDING_REPORT_ALL,	 /* of the screen, every row */
	RECORDING_REPORT_BLOCKS, /* each block, in the text `leaks` */
};

/* Reads the recording, asks the scan, and writes. Returns 0 or a negative errno, reported. */
int recording_report_write(FILE *out, struct scan_report *report, struct recording_file *file,
			   enum recording_report_rows rows);

#endif
