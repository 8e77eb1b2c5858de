/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/elf/usdt_notes.h"

#include "probes/elf/analysis_limit.h"

#include "common/elf/elf_file.h"
#include "common/scope.h"

#include <errno.h>

#define NOTE_SECTION	   ".note.stapsdt"
#define BASE_SECTION	   ".stapsdt.base"
#define NOTE_NAME	   "stapsdt"
#define NOTE_VERSION	   3
#define MAX_NOTE_BYTES	   (16u << 20) /* of a section, for a hundred thousand probes */
#define MAX_SECTIONS	   (1u << 16)
#define STEPS_OF_A_SECTION 100 /* for analysis_limit.h */

/* The beginning of a version 3 note of a 64-bit file. Three strings follow. */
struct note_head {
	uint64_t address, base, semaphore;
};

/* State while the notes of a section are read. */
struct note_reader {
	const struct elf_image *image;
	const char *provider;
	size_t max;
	uint64_t base; /* address of .stapsdt.base; 0: none, so nothing has moved */
	struct usdt_probes *probes;
};

static uint64_t padded(uint64_t size)
{
	return (size + 3) & ~3ULL;
}

/*
 * Reads the string at *@at, and moves *@at past it. Returns NULL if it does not end before @end.
 */
static const char *read_string(const char **at, const char *end)
{
	const char *string = *at, *stop = memchr(string, '\0', (size_t)(end - string));

	if (!stop)
		return NULL;
	*at = stop + 1;
	return string;
}

/*
 * True if a nop is at @offset of the file. Newer versions of <sys/sdt.h> use one of five bytes, but
 * no probe may be on that: placement.h.
 */
static bool is_nop(const struct elf_image *image, uint64_t offset)
{
#if defined(__x86_64__)
	uint8_t code;

	return elf_image_read(image, offset, &code, sizeof(code)) == 0 && code == 0x90;
#elif defined(__aarch64__)
	uint32_t instruction;

	return elf_image_read(image, offset, &instruction, sizeof(instruction)) == 0 &&
	       instruction == 0xd503201f;
#endif
}

static bool is_known(const struct usdt_probes *probes, uint64_t offset)
{
	for (size_t i = 0; i < probes->nr; i++)
		if (probes->probes[i].offset == offset)
			return true;
	return false;
}

static int add_probe(struct note_reader *reader, const struct usdt_probe *probe)
{
	struct usdt_probes *probes = reader->probes;
	struct usdt_probe *grown;

	if (is_known(probes, probe->offset))
		return 0;
	if (probes->nr == reader->max) {
		probes->nr_rejected++;
		return 0;
	}
	grown = reallocarray(probes->probes, probes->nr + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	probes->probes = grown;
	grown[probes->nr++] = *probe;
	return 0;
}

/* Parses one note. Returns 0 or -ENOMEM. */
static int parse_note(struct note_reader *reader, const char *at, size_t size_bytes)
{
	const char *end = at + size_bytes, *provider, *name, *arguments;
	struct usdt_probe probe = {0};
	struct note_head head;

	if (size_bytes < sizeof(head))
		return 0;
	memcpy(&head, at, sizeof(head));
	at += sizeof(head);
	provider = read_string(&at, end);
	name = provider ? read_string(&at, end) : NULL;
	arguments = name ? read_string(&at, end) : NULL;
	if (!provider || strcmp(provider, reader->provider) != 0)
		return 0;
	/* prelink has moved the code, by as much as its base. */
	if (reader->base)
		head.address += reader->base - head.base;
	if (!arguments || strlen(name) >= sizeof(probe.name) ||
	    strlen(arguments) >= sizeof(probe.arguments) ||
	    !elf_image_locate_code(reader->image, head.address, &probe.offset) ||
	    !is_nop(reader->image, probe.offset)) {
		reader->probes->nr_rejected++;
		return 0;
	}
	snprintf(probe.name, sizeof(probe.name), "%s", name);
	snprintf(probe.arguments, sizeof(probe.arguments), "%s", arguments);
	probe.has_semaphore = head.semaphore != 0;
	return add_probe(reader, &probe);
}

static int parse_notes(struct note_reader *reader, const char *bytes, size_t size_bytes)
{
	GElf_Nhdr header;
	size_t at = 0;
	int err = 0;

	while (!err && size_bytes - at >= sizeof(header)) {
		uint64_t name_at = at + sizeof(header), contents_at, next;

		memcpy(&header, bytes + at, sizeof(header));
		contents_at = name_at + padded(header.n_namesz);
		next = contents_at + padded(header.n_descsz);
		if (contents_at > size_bytes || header.n_descsz > size_bytes - contents_at)
			break;
		if (header.n_type == NOTE_VERSION && header.n_namesz == sizeof(NOTE_NAME) &&
		    memcmp(bytes + name_at, NOTE_NAME, sizeof(NOTE_NAME)) == 0)
			err = parse_note(reader, bytes + contents_at, header.n_descsz);
		at = next < size_bytes ? next : size_bytes;
	}
	return err;
}

static int read_section(struct note_reader *reader, const GElf_Shdr *header)
{
	_cleanup_free_ char *bytes = NULL;

	if (header->sh_size == 0 || header->sh_size > MAX_NOTE_BYTES ||
	    !elf_file_has_data(reader->image->fd, header->sh_offset, header->sh_size) ||
	    analysis_limit_is_reached(header->sh_size))
		return 0;
	bytes = malloc(header->sh_size);
	if (!bytes)
		return -ENOMEM;
	if (elf_image_read(reader->image, header->sh_offset, bytes, header->sh_size))
		return 0;
	return parse_notes(reader, bytes, header->sh_size);
}

/* The next section of that name after @section, or NULL. */
static Elf_Scn *next_named(const struct elf_image *image, Elf_Scn *section, const char *name,
			   GElf_Shdr *ret)
{
	unsigned int nr = 0;
	size_t names;

	if (elf_getshdrstrndx(image->elf, &names))
		return NULL;
	while ((section = elf_nextscn(image->elf, section)) && nr++ < MAX_SECTIONS) {
		const char *found;

		if (analysis_limit_is_reached(STEPS_OF_A_SECTION))
			return NULL;
		if (!gelf_getshdr(section, ret))
			continue;
		found = elf_strptr(image->elf, names, ret->sh_name);
		if (found && strcmp(found, name) == 0)
			return section;
	}
	return NULL;
}

int usdt_probes_find(const struct elf_image *image, const char *provider, size_t max,
		     struct usdt_probes *ret)
{
	struct note_reader reader = {image, provider, max, 0, ret};
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int err = 0;

	*ret = (struct usdt_probes){0};
	if (!image->is_native)
		return 0;
	if (next_named(image, NULL, BASE_SECTION, &header))
		reader.base = header.sh_addr;
	while (!err && (section = next_named(image, section, NOTE_SECTION, &header)))
		if (header.sh_type == SHT_NOTE)
			err = read_section(&reader, &header);
	return err;
}

void usdt_probes_deinit(struct usdt_probes *probes)
{
	free(probes->probes);
	*probes = (struct usdt_probes){0};
}
