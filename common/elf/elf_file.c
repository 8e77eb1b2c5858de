/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/elf/elf_file.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/elf/elf_section.h"
#include "common/elf/memory_file.h"
#include "common/elf/own_mounts.h"
#include "common/scope.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <lzma.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK (256u << 10)
/* Linux does not execute files with more: load_elf_phdrs(), fs/binfmt_elf.c, 6.1. */
#define MAX_SEGMENTS	(65536 / sizeof(Elf64_Phdr))
#define MAX_SECTIONS	4096	   /* libelf takes 300 bytes for each; linked files have some 60 */
#define MAX_NAMES	(1u << 20) /* of sections; linked files have a few hundred bytes */
#define MAX_NOTES	(32u << 20)
#define MAX_LINK	(64u << 10)  /* to a debug file */
#define MAX_COMPRESSED	256	     /* sections; libelf looks through all that were read before */
#define MAX_EXPANDED	(4ull << 30) /* of compressed sections; the largest real ones take 1 GiB */
#define MAX_MINI	(256ull << 20) /* of a MiniDebugInfo, which is a symbol table */
#define MAX_LZMA_MEMORY (128ull << 20)
#define MAX_SUMMED_SIZE (8ll << 30) /* larger files, which may be sparse, have no checksum here */

int elf_file_reopen(int path_fd, struct stat *ret_stat)
{
	char link[64];
	int fd;

	if (fstat(path_fd, ret_stat))
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return S_ISDIR(ret_stat->st_mode) ? -EISDIR : -ENOEXEC;
	/* The link leads to this very file. O_NONBLOCK: do not wait for a lease of its owner. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int elf_file_open(const char *path, struct stat *ret_stat)
{
	if (broker_is_used())
		return broker_open(BROKER_OPEN_ELF, path, ret_stat);

	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

	*ret_stat = (struct stat){0};
	return fd < 0 ? -errno : elf_file_reopen(fd, ret_stat);
}

bool elf_file_has_true_owner(int fd, const struct stat *st)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type != FUSE_SUPER_MAGIC &&
	       (fs.f_type != OVERLAYFS_SUPER_MAGIC || own_mounts_have(fd, st->st_dev));
}

/* Whoever lets others write a file lends them the time that its owner has. Root's has no limit. */
uid_t elf_file_owner(int fd, const struct stat *st)
{
	bool is_lent = st->st_mode & (S_IWGRP | S_IWOTH);

	if ((st->st_uid == 0 && is_lent) || !elf_file_has_true_owner(fd, st))
		return ELF_FILE_ANYBODY;
	return st->st_uid;
}

/* By set-user-ID, file or ambient capabilities. leak-analyst cannot ask, and may have any. */
static bool has_more_rights_than_its_user(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return getauxval(AT_SECURE) || syscall(SYS_capget, &header, data) < 0 ||
	       data[0].permitted || data[1].permitted;
}

bool elf_file_is_stable(int fd, const struct stat *st)
{
	uid_t owner = elf_file_owner(fd, st);

	if (owner == 0)
		return true;
	return owner == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH)) && !broker_is_used() &&
	       !has_more_rights_than_its_user();
}

/* One byte of the type is 0 in both byte orders. */
bool elf_file_is_code(int fd)
{
	uint8_t start[offsetof(Elf32_Ehdr, e_type) + 2];
	unsigned int type;

	if (pread(fd, start, sizeof(start), 0) != sizeof(start) ||
	    memcmp(start, ELFMAG, SELFMAG) != 0)
		return false;
	type = start[sizeof(start) - 1] | start[sizeof(start) - 2];
	return type == ET_REL || type == ET_EXEC || type == ET_DYN;
}

bool elf_file_has_data(int fd, uint64_t offset, uint64_t size)
{
	struct stat st;
	off_t hole;

	if (fstat(fd, &st) || offset > (uint64_t)st.st_size || size > (uint64_t)st.st_size - offset)
		return false;
	hole = lseek(fd, (off_t)offset, SEEK_HOLE);
	return hole < 0 || (uint64_t)hole >= offset + size;
}

/*
 * Refuses extended counts of sections and segments. They are in the first section's header and may
 * have any value, and libelf allocates memory for each section. Linked files have none. The bytes
 * compared here are the same in both byte orders.
 */
static bool has_sane_counts(const uint8_t header[sizeof(Elf64_Ehdr)])
{
	static const uint8_t extended[2] = {0xff, 0xff}, none[8] = {0};
	bool is_64;
	const uint8_t *segments, *sections, *offset;

	if (memcmp(header, ELFMAG, SELFMAG) != 0)
		return false;
	is_64 = header[EI_CLASS] == ELFCLASS64;
	segments = header + (is_64 ? offsetof(Elf64_Ehdr, e_phnum) : offsetof(Elf32_Ehdr, e_phnum));
	sections = header + (is_64 ? offsetof(Elf64_Ehdr, e_shnum) : offsetof(Elf32_Ehdr, e_shnum));
	offset = header + (is_64 ? offsetof(Elf64_Ehdr, e_shoff) : offsetof(Elf32_Ehdr, e_shoff));
	return memcmp(segments, extended, 2) != 0 &&
	       (memcmp(sections, none, 2) != 0 || memcmp(offset, none, is_64 ? 8 : 4) == 0);
}

static bool has_sane_segments(Elf *elf)
{
	uint64_t notes = 0;
	GElf_Phdr header;
	size_t nr;

	if (elf_getphdrnum(elf, &nr) || nr > MAX_SEGMENTS)
		return false;
	for (size_t i = 0; i < nr; i++) {
		if (!gelf_getphdr(elf, (int)i, &header))
			return false;
		if (header.p_type != PT_NOTE)
			continue;
		if (header.p_filesz > MAX_NOTES - notes)
			return false;
		notes += header.p_filesz;
	}
	return true;
}

/* libelf reads the whole table and searches each name's end backwards from the table's end. */
static bool has_sane_names(Elf *elf, int fd, size_t names)
{
	GElf_Shdr header;
	char last;

	return gelf_getshdr(elf_getscn(elf, names), &header) &&
	       !(header.sh_flags & SHF_COMPRESSED) && header.sh_size > 0 &&
	       header.sh_size <= MAX_NAMES &&
	       elf_file_has_data(fd, header.sh_offset, header.sh_size) &&
	       pread(fd, &last, 1, (off_t)(header.sh_offset + header.sh_size - 1)) == 1 && !last;
}

static bool has_sane_sections(Elf *elf, int fd)
{
	struct elf_section section = {0};
	uint64_t notes = 0;
	size_t names, nr;

	if (elf_getshdrnum(elf, &nr) || nr > MAX_SECTIONS)
		return false;
	if (elf_getshdrstrndx(elf, &names) || names == SHN_UNDEF)
		return true;
	if (!has_sane_names(elf, fd, names))
		return false;
	while (elf_section_next(elf, &section)) {
		const char *name = section.name;

		if (name && strncmp(name, ".gnu_debug", 10) == 0 && strstr(name, "link") &&
		    section.header.sh_size > MAX_LINK)
			return false;
		if (section.header.sh_type != SHT_NOTE)
			continue;
		if (section.header.sh_size > MAX_NOTES - notes)
			return false;
		notes += section.header.sh_size;
	}
	return true;
}

/* The header in a file of that size. A limit on the size of files holds here, too. */
static bool make_copy(int fd, const uint8_t *header, size_t size, off_t file_size)
{
	static atomic_flag has_warned = ATOMIC_FLAG_INIT;

	if (pwrite(fd, "", 1, file_size - 1) == 1 && pwrite(fd, header, size, 0) == (ssize_t)size)
		return true;
	if (errno == EFBIG && !atomic_flag_test_and_set(&has_warned))
		diag_warn(
			"users' programs and libraries of more than the limit on files are not "
			"read, so stacks may end there: raise the limit (ulimit -f, LimitFSIZE=)");
	return false;
}

/*
 * libelf reads the header again, which the file's owner may have changed since. So it reads a copy,
 * which has the descriptor's number and the file's size meanwhile. What it reads later, it keeps.
 */
static Elf *begin_with(int fd, const uint8_t *header, size_t size, off_t file_size)
{
	_cleanup_close_ int file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	_cleanup_close_ int copy = memory_file_create("header");
	Elf *elf;

	/* leak-analyst must not, and may not take much memory either. */
	if (copy < 0)
		return elf_begin(fd, ELF_C_READ, NULL);
	if (file < 0 || !make_copy(copy, header, size, file_size) || dup3(copy, fd, O_CLOEXEC) < 0)
		return NULL;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	dup3(file, fd, O_CLOEXEC);
	return elf;
}

Elf *elf_file_begin(int fd)
{
	uint8_t header[sizeof(Elf64_Ehdr)] = {0};
	ssize_t size = pread(fd, header, sizeof(header), 0);
	struct stat st;
	Elf *elf;

	elf_version(EV_CURRENT);
	if (size < (ssize_t)sizeof(Elf32_Ehdr) || !has_sane_counts(header) || fstat(fd, &st))
		return NULL;
	elf = elf_file_is_stable(fd, &st) ? elf_begin(fd, ELF_C_READ, NULL)
					  : begin_with(fd, header, (size_t)size, st.st_size);
	if (elf && elf_kind(elf) == ELF_K_ELF && has_sane_segments(elf) &&
	    has_sane_sections(elf, fd))
		return elf;
	elf_end(elf);
	return NULL;
}

bool elf_file_is_sane(int fd)
{
	Elf *elf = elf_file_begin(fd);

	elf_end(elf);
	return elf != NULL;
}

static bool may_sum(int fd, const struct stat *st, uint64_t max_others_bytes)
{
	if (st->st_size > MAX_SUMMED_SIZE)
		return false;
	return !max_others_bytes || (uint64_t)st->st_size <= max_others_bytes ||
	       elf_file_owner(fd, st) == 0;
}

/* Computes the checksum of the whole file. Returns 0 or a negative errno. */
static int sum_file(int fd, uint64_t max_others_bytes, uint32_t *ret)
{
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK);
	uLong crc = crc32(0, NULL, 0);
	struct stat st;
	off_t offset = 0;

	if (!chunk)
		return -ENOMEM;
	if (fstat(fd, &st) || !may_sum(fd, &st, max_others_bytes))
		return -EFBIG;
	while (offset < st.st_size) {
		ssize_t nr = pread(fd, chunk, CHUNK, offset);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			return nr ? -errno : -EIO;
		crc = crc32(crc, chunk, (uInt)nr);
		offset += nr;
	}
	*ret = (uint32_t)crc;
	return 0;
}

bool elf_file_is(int fd, const struct elf_file_id *id)
{
	Elf *elf = elf_file_begin(fd);
	const void *build_id;
	bool same = false;
	uint32_t crc = 0;

	/* Files that are not ELF have a checksum, too: a file may be compressed as a whole. */
	ssize_t size = elf ? dwelf_elf_gnu_build_id(elf, &build_id) : -1;
	if (size > 0 && id->build_id_size)
		same = (size_t)size == id->build_id_size &&
		       memcmp(build_id, id->build_id, id->build_id_size) == 0;
	else if (id->has_crc)
		same = !sum_file(fd, id->max_others_bytes, &crc) && crc == id->crc;
	elf_end(elf);
	return same;
}

/*
 * True for an ELF file without compressed sections. Not by elf_section_next(): it reads names, and
 * libelf would expand their table (elf_strptr(), elfutils 0.188).
 */
static bool is_plain(char *image, size_t size)
{
	Elf *elf = elf_memory(image, size);
	Elf_Scn *section = NULL;
	bool plain = elf;

	while (plain && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		plain = gelf_getshdr(section, &header) && !(header.sh_flags & SHF_COMPRESSED);
	}
	elf_end(elf);
	return plain;
}

/* Checks MiniDebugInfo. A real one is a small ELF file without compressed sections. */
static bool mini_expands_well(const Elf_Data *data)
{
	_cleanup_free_ char *image = NULL;
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret result = LZMA_OK;
	size_t capacity = 0;

	if (!data || lzma_auto_decoder(&stream, MAX_LZMA_MEMORY, 0) != LZMA_OK)
		return false;
	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	while (result == LZMA_OK && stream.total_out < MAX_MINI) {
		char *grown;

		capacity = capacity ? 2 * capacity : CHUNK;
		grown = realloc(image, capacity);
		if (!grown)
			break;
		image = grown;
		stream.next_out = (uint8_t *)image + stream.total_out;
		stream.avail_out = capacity - stream.total_out;
		result = lzma_code(&stream, LZMA_FINISH);
	}
	size_t size = stream.total_out;
	lzma_end(&stream);
	/* Other decoders stop at damaged data, too. */
	return size < MAX_MINI && result != LZMA_OK && result != LZMA_MEMLIMIT_ERROR &&
	       (size == 0 || is_plain(image, size));
}

/* The beginning of a section. libelf would read all of it, which may be gigabytes. */
static const Elf_Data *read_start(Elf *elf, const GElf_Shdr *header, size_t size, Elf_Type type)
{
	if (header->sh_offset > INT64_MAX || header->sh_size < size)
		return NULL;
	return elf_getdata_rawchunk(elf, (int64_t)header->sh_offset, size, type);
}

/* The older format: "ZLIB", then the expanded size as a big-endian number. */
static uint64_t gnu_expanded_size(Elf *elf, const GElf_Shdr *header)
{
	const Elf_Data *data = read_start(elf, header, 12, ELF_T_BYTE);
	const uint8_t *bytes = data ? data->d_buf : NULL;
	uint64_t size = 0;

	if (!bytes || memcmp(bytes, "ZLIB", 4) != 0)
		return 0;
	for (size_t i = 4; i < 12; i++)
		size = size << 8 | bytes[i];
	return size;
}

static bool is_compressed(const struct elf_section *section)
{
	return section->name && section->header.sh_type != SHT_NOBITS &&
	       (section->header.sh_flags & SHF_COMPRESSED ||
		strncmp(section->name, ".zdebug", 7) == 0);
}

static uint64_t expanded_size(Elf *elf, const GElf_Shdr *header)
{
	const Elf_Data *data;

	if (!(header->sh_flags & SHF_COMPRESSED))
		return gnu_expanded_size(elf, header);
	data = read_start(elf, header, gelf_fsize(elf, ELF_T_CHDR, 1, EV_CURRENT), ELF_T_CHDR);
	if (!data || !data->d_buf)
		return 0;
	return gelf_getclass(elf) == ELFCLASS32 ? ((const Elf32_Chdr *)data->d_buf)->ch_size
						: ((const Elf64_Chdr *)data->d_buf)->ch_size;
}

uint64_t elf_file_expanded_bytes(Elf *elf)
{
	struct elf_section section = {0};
	uint64_t expanded = 0;
	size_t nr = 0;

	while (elf_section_next(elf, &section)) {
		uint64_t size;

		if (!is_compressed(&section))
			continue;
		if (++nr > MAX_COMPRESSED)
			return UINT64_MAX;
		size = expanded_size(elf, &section.header);
		expanded = size > UINT64_MAX - expanded ? UINT64_MAX : expanded + size;
	}
	return expanded;
}

static bool sections_expand_well(Elf *elf)
{
	struct elf_section section = {0};

	if (elf_file_expanded_bytes(elf) > MAX_EXPANDED)
		return false;
	while (elf_section_next(elf, &section))
		if (section.name && section.header.sh_type != SHT_NOBITS &&
		    strcmp(section.name, ".gnu_debugdata") == 0 &&
		    !mini_expands_well(elf_rawdata(section.handle, NULL)))
			return false;
	return true;
}

bool elf_file_expands_well(int fd, const char *name)
{
	/* libdw would also read a file that is compressed as a whole. */
	Elf *elf = elf_file_begin(fd);
	bool well = elf && sections_expand_well(elf);

	elf_end(elf);
	if (!well && name)
		diag_warn(
			"%s: its compressed sections would take gigabytes, or are damaged; it is not used",
			name);
	return well;
}
