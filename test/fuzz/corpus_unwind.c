/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files are small, so that most changes of their bytes change call frame information. */
#include "test/fuzz/corpus.h"
#include "test/fuzz/unwind_input.h"
#include "test/support/frame_file.h"

#include <string.h>

/* Each word of the stack is a return address or an address on the stack. */
static void make_dump(const struct frame_entry *entry, struct unwind_input *ret)
{
	*ret = (struct unwind_input){
		.stack_bytes = sizeof(ret->stack),
		.is_arm64 = entry->is_arm64,
	};
	for (uint64_t i = 0; i < UNWIND_ARM64_REGISTERS; i++)
		ret->registers[i] = UNWIND_STACK_ADDRESS + 16 * i;
	for (uint64_t i = 0; i < UNWIND_STACK_WORDS; i++)
		ret->stack[i] = i % 2 ? UNWIND_LOAD_ADDRESS + FRAME_FILE_INSIDE
				      : UNWIND_STACK_ADDRESS + 8 * (i + 2);
	if (entry->is_arm64) {
		ret->registers[UNWIND_ARM64_LR] = UNWIND_LOAD_ADDRESS + FRAME_FILE_INSIDE;
		ret->registers[UNWIND_ARM64_SP] = UNWIND_STACK_ADDRESS;
		ret->registers[UNWIND_ARM64_PC] = UNWIND_LOAD_ADDRESS + FRAME_FILE_INSIDE;
	} else {
		ret->registers[UNWIND_X86_SP] = UNWIND_STACK_ADDRESS;
		ret->registers[UNWIND_X86_IP] = UNWIND_LOAD_ADDRESS + FRAME_FILE_INSIDE;
		ret->registers[6] = UNWIND_STACK_ADDRESS; /* rbp */
	}
}

void corpus_write_unwind(const char *dir)
{
	static uint8_t bytes[sizeof(struct unwind_input) + FRAME_FILE_MAX];

	for (size_t i = 0; i < FRAME_NR_ENTRIES; i++) {
		struct unwind_input input;
		size_t size = frame_file_make(&frame_entries[i], bytes + sizeof(input));

		make_dump(&frame_entries[i], &input);
		memcpy(bytes, &input, sizeof(input));
		corpus_write(dir, frame_entries[i].name, bytes, sizeof(input) + size);
	}
}
