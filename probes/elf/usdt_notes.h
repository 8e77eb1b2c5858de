/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The USDT probes of a file: notes that SystemTap's <sys/sdt.h> and <leaktools/leak_probes.h> put
 * into it. The format is version 3 of
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation.
 *
 * The file is hostile: sizes are limited, and a probe is accepted only where a nop is, since a
 * breakpoint inside another instruction would corrupt the program.
 */
#ifndef LEAKTOOLS_PROBES_USDT_NOTES_H
#define LEAKTOOLS_PROBES_USDT_NOTES_H

#include "probes/elf/elf_image.h"

#define USDT_MAX_NAME_BYTES 64 /* of names and of arguments, with the terminating 0 */

struct usdt_probe {
	uint64_t offset; /* of the nop, in the file */
	char name[USDT_MAX_NAME_BYTES];
	char arguments[USDT_MAX_NAME_BYTES]; /* "8@%rdi", separated by blanks */
	bool has_semaphore;		     /* the program skips it while a counter is 0 */
};

struct usdt_probes {
	struct usdt_probe *probes; /* each offset once */
	size_t nr;
	size_t nr_rejected; /* notes of that provider that are invalid or too many */
};

/*
 * Finds at most @max probes of @provider in the file; more are counted as rejected. Returns 0, also
 * if there are none, or -ENOMEM. Release with usdt_probes_deinit() in either case.
 */
int usdt_probes_find(const struct elf_image *image, const char *provider, size_t max,
		     struct usdt_probes *ret);
void usdt_probes_deinit(struct usdt_probes *probes);

#endif
