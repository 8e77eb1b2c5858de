/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inputs of fuzz_names: what to ask, then the ELF file that is asked. */
#ifndef LEAKTOOLS_TEST_FUZZ_NAMES_INPUT_H
#define LEAKTOOLS_TEST_FUZZ_NAMES_INPUT_H

#include <stdint.h>

/* What the ELF file is. */
enum names_role {
	NAMES_MODULE,	  /* it is mapped */
	NAMES_DEBUG,	  /* the debug file of itself without sections, which is mapped */
	NAMES_ONLY_DEBUG, /* the debug file of one that is missing */
	NAMES_NR_ROLES,
};

struct names_input {
	uint8_t role;
	uint8_t step;	/* between addresses */
	uint16_t first; /* address, in the file */
	uint16_t line;
	uint16_t unused;
};

/* Of debug files. */
#define NAMES_BUILD_ID 1, 2, 3, 4, 5, 6, 7, 8
/* Text, for paths and for the linker. */
#define NAMES_BUILD_ID_FILE ".build-id/01/02030405060708.debug"

#endif
