/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/mark_texts.h"

#include <string.h>

void mark_texts_deinit(struct mark_texts *texts)
{
	if (texts->file)
		elf_image_deinit(&texts->image);
	texts->file = NULL;
}

/* Takes the text from @bytes if it ends there, or is long enough to be cut. */
static bool set_text(struct mark_record *record, const char *bytes, size_t nr)
{
	size_t len = strnlen(bytes, nr < BPF_TEXT_BYTES - 1 ? nr : BPF_TEXT_BYTES - 1);

	if (len == nr)
		return false;
	memset(record->text, 0, sizeof(record->text));
	memcpy(record->text, bytes, len);
	record->data_loc = MARK_DATA_LOC(len + 1);
	return true;
}

/* True if the program cannot change what it has of the file at @address, as linked. */
static bool is_constant(const struct elf_image *image, uint64_t address)
{
	for (size_t i = 0; i < image->nr_program_headers; i++) {
		const GElf_Phdr *header = &image->program_headers[i];

		if (header->p_type == PT_LOAD && address >= header->p_vaddr &&
		    address - header->p_vaddr < header->p_filesz)
			return !(header->p_flags & PF_W);
	}
	return false;
}

/* Looks for the text in the file. The mark is at @offset there. */
static bool find_in_file(struct mark_texts *texts, const struct probe_file *file, uint64_t offset,
			 uint64_t address)
{
	struct mark_record *record = &texts->record;
	char bytes[BPF_TEXT_BYTES];
	uint64_t linked;

	if (texts->file != file) {
		mark_texts_deinit(texts);
		if (elf_image_init(&texts->image, file->fd))
			return false;
		texts->file = file;
	}
	if (!elf_image_address(&texts->image, offset, &linked))
		return false;
	address -= record->head.ip - linked;
	return is_constant(&texts->image, address) &&
	       set_text(record, bytes,
			elf_image_read_address(&texts->image, address, bytes, sizeof(bytes)));
}

const struct perf_event_header *mark_texts_complete(struct mark_texts *texts,
						    const struct watched_sites *sites,
						    const struct mark_record *unread)
{
	struct mark_record *record = &texts->record;
	const struct watched_site *site =
		&sites->watched[unread->head.reserved & (BPF_MAX_SITES - 1)];
	char text[BPF_TEXT_BYTES];

	*record = *unread;
	record->head.header.misc &= (uint16_t)~MARK_IS_UNREAD;
	record->head.reserved = 0;
	if (!site->file || !find_in_file(texts, site->file, site->offset, unread->address))
		set_text(record, text,
			 (size_t)snprintf(text, sizeof(text), PROBE_UNREAD_TEXT,
					  (uint64_t)unread->address) +
				 1);
	return &record->head.header;
}
