/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/elf/landing_pads.h"

#include "probes/elf/frame_table.h"

bool landing_pads_may_exist(const struct elf_image *image, const struct elf_function *function)
{
	struct frame_table table;
	uint64_t first;
	bool may_exist = true;

	if (frame_table_init(&table, image))
		return true;
	if (elf_image_address(image, function->offset, &first))
		may_exist = frame_table_has_pads(&table, first, first + function->size_bytes);
	frame_table_deinit(&table);
	return may_exist;
}
