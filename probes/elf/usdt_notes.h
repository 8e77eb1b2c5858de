/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probes that a file has been given by hand (USDT): the notes that SystemTap's <sys/sdt.h>, and
 * our <leaktools/leak_probes.h>, leave in it, version 3, as
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation tells of them.
 *
 * The file is hostile: what is read of it is bounded, and a probe is only where a nop is, as a
 * breakpoint inside another instruction would break the program.
 */
#ifndef LEAKTOOLS_PROBES_USDT_NOTES_H
#define LEAKTOOLS_PROBES_USDT_NOTES_H

#include "probes/elf/elf_image.h"

#define USDT_MAX_NAME_BYTES 64 /* of names and arguments, with their ends */

struct usdt_probe {
	uint64_t offset; /* of the nop, in the file */
	char name[USDT_MAX_NAME_BYTES];
	char arguments[USDT_MAX_NAME_BYTES]; /* "8@%rdi", separated by blanks */
	bool has_semaphore;		     /* it is only passed while a counter is not 0 */
};

struct usdt_probes {
	struct usdt_probe *probes; /* each place once */
	size_t nr;
	size_t nr_rejected; /* notes of that provider that say what cannot be */
};

/*
 * Finds the probes of @provider in the file, at most @max; what there is beyond counts as rejected.
 * Returns 0, also if there are none, or -ENOMEM. Release with usdt_probes_deinit() in either case.
 */
int usdt_probes_find(const struct elf_image *image, const char *provider, size_t max,
		     struct usdt_probes *ret);
void usdt_probes_deinit(struct usdt_probes *probes);

#endif
