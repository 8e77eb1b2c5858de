/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/code_jumps.h"

#include "probes/elf/analysis_limit.h"
#include "probes/elf/frame_table.h"
#include "probes/x86/code_segment.h"

#include "common/scope.h"

#include <errno.h>

#define CHUNK_BYTES    (1u << 20)
#define DISTANCE_BYTES 4 /* after the opcode's last byte */
#define MAX_SEGMENTS   64
#define MAX_CODE_BYTES (1ull << 30) /* of a file; browsers have a quarter of that */

/* True if @code[@at] may be the last byte of an opcode with a 32-bit distance. */
static bool may_be_jump(const uint8_t *code, size_t at)
{
	if (code[at] == 0xe8 || code[at] == 0xe9) /* call, jmp */
		return true;
	return (code[at] & 0xf0) == 0x80 && at > 0 && code[at - 1] == 0x0f; /* jcc */
}

void code_jumps_scan(const uint8_t *code, size_t size_bytes, uint64_t offset,
		     struct code_span *spans, size_t nr, code_jump_check *is_real, void *context)
{
	for (size_t at = 0; at + DISTANCE_BYTES < size_bytes; at++) {
		int32_t distance;
		uint64_t target;

		if (!may_be_jump(code, at))
			continue;
		memcpy(&distance, code + at + 1, DISTANCE_BYTES);
		target = offset + at + 1 + DISTANCE_BYTES + (uint64_t)(int64_t)distance;
		for (size_t i = 0; i < nr; i++)
			if (!spans[i].is_entered && target >= spans[i].first &&
			    target <= spans[i].last &&
			    (offset + at < spans[i].own_begin || offset + at >= spans[i].own_end))
				spans[i].is_entered = !is_real || is_real(context, offset + at);
	}
}

/* A file whose code is searched. */
struct searched_file {
	const struct elf_image *image;
	struct frame_table frames;
	bool has_frames; /* they were read, as far as that is possible */
};

/* The piece of code that holds @offset of the file, as .eh_frame has it, or NULL. */
static const struct frame_entry *find_piece(struct searched_file *file, uint64_t offset)
{
	uint64_t address;

	if (!file->has_frames && frame_table_init(&file->frames, file->image))
		frame_table_deinit(&file->frames);
	file->has_frames = true;
	if (!elf_image_address(file->image, offset, &address))
		return NULL;
	return frame_table_find(&file->frames, address);
}

/*
 * A code_jump_check. Decodes the piece of code around the byte, from its beginning to its end. The
 * byte is none of a jump's opcode if the instruction that holds it is another one. True if in
 * doubt: there is no such piece, or something in it is not an instruction.
 */
static bool is_real_jump(void *context, uint64_t offset)
{
	struct searched_file *file = context;
	const struct frame_entry *piece = find_piece(file, offset);
	struct code_segment segment;
	struct instruction instruction;
	bool is_real = true;
	uint64_t at, end, target;

	if (!piece || analysis_limit_is_reached(piece->end - piece->first) ||
	    !code_segment_init(&segment, file->image, offset))
		return true;
	at = code_segment_offset(&segment, piece->first);
	end = code_segment_offset(&segment, piece->end);
	while (at < end && code_segment_decode(&segment, at, &instruction)) {
		uint64_t next = at + instruction.info.length;

		if (offset >= at && offset < next)
			is_real = next == offset + 1 + DISTANCE_BYTES &&
				  instruction_target(&instruction, at, &target);
		at = next;
	}
	return is_real || at != end;
}

static int scan_segment(struct searched_file *file, uint64_t offset, uint64_t size_bytes,
			struct code_span *spans, size_t nr)
{
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK_BYTES);

	if (!chunk)
		return -ENOMEM;
	while (size_bytes > DISTANCE_BYTES) {
		size_t len = size_bytes < CHUNK_BYTES ? size_bytes : CHUNK_BYTES;
		/*
		 * The next chunk begins with the bytes of a jump that may be cut off at the end of
		 * this one.
		 */
		size_t step = len - DISTANCE_BYTES - 1;
		int err = elf_image_read(file->image, offset, chunk, len);

		if (err || analysis_limit_is_reached(len))
			return err;
		code_jumps_scan(chunk, len, offset, spans, nr, is_real_jump, file);
		if (len == size_bytes)
			break;
		offset += step;
		size_bytes -= step;
	}
	return 0;
}

int code_jumps_find(const struct elf_image *image, struct code_span *spans, size_t nr)
{
	struct searched_file file = {.image = image};
	uint64_t offset, size_bytes, left_bytes = MAX_CODE_BYTES;
	int err = 0;

	for (size_t i = 0; !err && elf_image_code_segment(image, i, &offset, &size_bytes); i++) {
		/* A hostile file may claim more: then all spans count as entered. */
		if (i == MAX_SEGMENTS || size_bytes > left_bytes) {
			for (size_t k = 0; k < nr; k++)
				spans[k].is_entered = true;
			break;
		}
		left_bytes -= size_bytes;
		err = scan_segment(&file, offset, size_bytes, spans, nr);
	}
	frame_table_deinit(&file.frames);
	return err;
}
