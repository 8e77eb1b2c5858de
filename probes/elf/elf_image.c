/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/elf/elf_image.h"

#include "common/elf/elf_file.h"
#include "common/scope.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include <elfutils/libdwelf.h>

#define MAX_HASHED_BYTES   (64ull << 20)
#define MAX_DYNAMIC_BYTES  (1u << 20)
#define MAX_BUILD_ID_BYTES 1024

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#error "probes/ knows the registers of x86-64 and AArch64 only"
#endif

/* True for a 64-bit little-endian file, whose symbols elf_symbols.c can read. */
static bool is_64_bit(Elf *elf)
{
	const char *ident = elf_getident(elf, NULL);

	return ident && ident[EI_CLASS] == ELFCLASS64 && ident[EI_DATA] == ELFDATA2LSB;
}

/*
 * Reads the program headers. Returns 0, -ENOEXEC if a segment reaches beyond the end of the file,
 * since what is missing may be what is looked for, or -ENOMEM.
 */
static int read_program_headers(struct elf_image *image)
{
	uint64_t file_size = image->file_size_bytes;
	size_t nr;

	/* elf_file_begin() limits their number. */
	if (elf_getphdrnum(image->elf, &nr))
		return -ENOEXEC;
	image->program_headers = calloc(nr + 1, sizeof(*image->program_headers));
	if (!image->program_headers)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr *header = &image->program_headers[i];

		if (!gelf_getphdr(image->elf, (int)i, header) ||
		    (header->p_type == PT_LOAD &&
		     (header->p_offset > file_size ||
		      header->p_filesz > file_size - header->p_offset)))
			return -ENOEXEC;
		image->nr_program_headers++;
	}
	return 0;
}

static int init_image(struct elf_image *image)
{
	GElf_Ehdr header;
	struct stat stat;
	int err;

	if (fstat(image->fd, &stat))
		return -errno;
	image->file_size_bytes = (uint64_t)stat.st_size;
	image->elf = elf_file_begin(image->fd);
	if (!image->elf || !gelf_getehdr(image->elf, &header))
		return -ENOEXEC;
	err = read_program_headers(image);
	if (err)
		return err;
	image->strings = calloc(ELF_NR_TABLES, sizeof(*image->strings));
	if (!image->strings)
		return -ENOMEM;
	image->is_native = is_64_bit(image->elf) && header.e_machine == NATIVE_MACHINE;
	image->is_x86_64 = is_64_bit(image->elf) && header.e_machine == EM_X86_64;
	return 0;
}

int elf_image_init(struct elf_image *ret, int fd)
{
	int err;

	*ret = (struct elf_image){.fd = fd, .debug_fd = -1};
	err = init_image(ret);
	if (err)
		elf_image_deinit(ret);
	return err;
}

int elf_image_open(struct elf_image *ret, const char *path)
{
	struct stat stat;
	int err, fd = elf_file_open(path, &stat);

	*ret = (struct elf_image){.fd = -1, .debug_fd = -1};
	if (fd < 0)
		return fd;
	err = elf_image_init(ret, fd);
	if (err)
		close(fd);
	else
		ret->owns_fd = true;
	return err;
}

bool elf_image_use_debug_file(struct elf_image *image, int fd)
{
	image->debug = elf_file_begin(fd);
	if (!image->debug || !is_64_bit(image->debug)) {
		elf_end(image->debug);
		image->debug = NULL;
		return false;
	}
	image->debug_fd = fd;
	return true;
}

void elf_image_deinit(struct elf_image *image)
{
	elf_end(image->debug);
	elf_end(image->elf);
	if (image->debug_fd >= 0)
		close(image->debug_fd);
	if (image->owns_fd)
		close(image->fd);
	for (size_t i = 0; image->strings && i < ELF_NR_TABLES; i++)
		free(image->strings[i].bytes);
	free(image->strings);
	free(image->program_headers);
	*image = (struct elf_image){.fd = -1, .debug_fd = -1};
}

static bool is_code(const GElf_Phdr *header)
{
	return header->p_type == PT_LOAD && header->p_flags & PF_X;
}

/*
 * Finds where in the file @address of a segment is, and how many bytes of the segment the file
 * holds from there. Returns false if @address is not in the part of the segment that is in the
 * file.
 */
static bool find_in_segment(const struct elf_image *image, const GElf_Phdr *header,
			    uint64_t address, uint64_t *ret_offset, uint64_t *ret_size_bytes)
{
	uint64_t in_segment = address - header->p_vaddr;

	if (address < header->p_vaddr || in_segment >= header->p_filesz ||
	    __builtin_add_overflow(header->p_offset, in_segment, ret_offset) ||
	    *ret_offset >= image->file_size_bytes)
		return false;
	*ret_size_bytes = header->p_filesz - in_segment;
	if (*ret_size_bytes > image->file_size_bytes - *ret_offset)
		*ret_size_bytes = image->file_size_bytes - *ret_offset;
	return true;
}

/* Finds the code at @address. Returns false if the file holds no code there. */
static bool find_code(const struct elf_image *image, uint64_t address, uint64_t *ret_offset,
		      uint64_t *ret_size_bytes)
{
	for (size_t i = 0; i < image->nr_program_headers; i++)
		if (is_code(&image->program_headers[i]) &&
		    find_in_segment(image, &image->program_headers[i], address, ret_offset,
				    ret_size_bytes))
			return true;
	return false;
}

bool elf_image_locate_code(const struct elf_image *image, uint64_t address, uint64_t *ret_offset)
{
	uint64_t size_bytes;

	return find_code(image, address, ret_offset, &size_bytes);
}

bool elf_image_locate(const struct elf_image *image, const struct elf_symbol *symbol,
		      struct elf_function *ret)
{
	uint64_t size_bytes;

	*ret = (struct elf_function){.size_bytes = symbol->size_bytes, .is_old = symbol->is_old};
	if (symbol->is_import || !find_code(image, symbol->address, &ret->offset, &size_bytes))
		return false;
	if (ret->size_bytes > size_bytes)
		ret->size_bytes = size_bytes;
	ret->is_found = true;
	return true;
}

bool elf_image_address(const struct elf_image *image, uint64_t offset, uint64_t *ret)
{
	for (size_t i = 0; i < image->nr_program_headers; i++) {
		const GElf_Phdr *header = &image->program_headers[i];

		if (!is_code(header) || offset < header->p_offset ||
		    offset - header->p_offset >= header->p_filesz)
			continue;
		*ret = header->p_vaddr + (offset - header->p_offset);
		return true;
	}
	return false;
}

/* True if the dynamic section at @header names a library. */
static bool needs_library(const struct elf_image *image, const GElf_Phdr *header)
{
	Elf_Data *data;
	GElf_Dyn entry;

	if (header->p_offset > INT64_MAX || header->p_filesz > MAX_DYNAMIC_BYTES)
		return true;
	data = elf_getdata_rawchunk(image->elf, (int64_t)header->p_offset, header->p_filesz,
				    ELF_T_DYN);
	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == DT_NEEDED)
			return true;
	return false;
}

bool elf_image_is_static(const struct elf_image *image)
{
	for (size_t i = 0; i < image->nr_program_headers; i++) {
		const GElf_Phdr *header = &image->program_headers[i];

		if (header->p_type == PT_INTERP ||
		    (header->p_type == PT_DYNAMIC && needs_library(image, header)))
			return false;
	}
	return true;
}

struct function_search {
	const struct elf_image *image;
	const char *const *names;
	size_t nr;
	bool is_static;
	struct elf_function *found;
};

static bool match_function(void *context, const struct elf_symbol *symbol)
{
	const struct function_search *search = context;

	/* GNU ld makes malloc local in a static PIE, where no other function can have that name. */
	if (symbol->type != STT_FUNC || (symbol->is_local && !search->is_static))
		return true;
	for (size_t i = 0; i < search->nr; i++) {
		struct elf_function *found = &search->found[i], located;

		if ((!found->is_found || (found->is_old && !symbol->is_old)) &&
		    strcmp(search->names[i], symbol->name) == 0 &&
		    elf_image_locate(search->image, symbol, &located))
			*found = located;
	}
	return true;
}

void elf_image_find_functions(const struct elf_image *image, const char *const *names, size_t nr,
			      struct elf_function *ret)
{
	struct function_search search = {image, names, nr, elf_image_is_static(image), ret};

	memset(ret, 0, nr * sizeof(*ret));
	elf_image_visit_symbols(image, match_function, &search);
}

static bool find_r_debug(void *context, const struct elf_symbol *symbol)
{
	bool *is_loader = context;

	if (symbol->in_dynsym && !symbol->is_import && symbol->type == STT_OBJECT &&
	    strcmp(symbol->name, "_r_debug") == 0)
		*is_loader = true;
	return !*is_loader && symbol->in_dynsym;
}

bool elf_image_is_loader(const struct elf_image *image)
{
	bool is_loader = false;

	elf_image_visit_symbols(image, find_r_debug, &is_loader);
	return is_loader;
}

bool elf_image_code_segment(const struct elf_image *image, size_t nth, uint64_t *ret_offset,
			    uint64_t *ret_size_bytes)
{
	for (size_t i = 0; i < image->nr_program_headers; i++) {
		const GElf_Phdr *header = &image->program_headers[i];

		if (!is_code(header) || header->p_offset >= image->file_size_bytes || nth-- > 0)
			continue;
		*ret_offset = header->p_offset;
		*ret_size_bytes = header->p_filesz;
		if (*ret_size_bytes > image->file_size_bytes - header->p_offset)
			*ret_size_bytes = image->file_size_bytes - header->p_offset;
		return true;
	}
	return false;
}

int elf_image_read(const struct elf_image *image, uint64_t offset, void *buffer, size_t size)
{
	char *to = buffer;

	if (offset > INT64_MAX || size > INT64_MAX - offset)
		return -EOVERFLOW;
	while (size > 0) {
		ssize_t len = pread(image->fd, to, size, (off_t)offset);

		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			return len < 0 ? -errno : -ENODATA;
		to += len;
		offset += len;
		size -= len;
	}
	return 0;
}

size_t elf_image_read_address(const struct elf_image *image, uint64_t address, void *buffer,
			      size_t max)
{
	for (size_t i = 0; i < image->nr_program_headers; i++) {
		uint64_t offset, size_bytes;

		if (image->program_headers[i].p_type != PT_LOAD ||
		    !find_in_segment(image, &image->program_headers[i], address, &offset,
				     &size_bytes))
			continue;
		if (size_bytes > max)
			size_bytes = max;
		return elf_image_read(image, offset, buffer, size_bytes) ? 0 : size_bytes;
	}
	return 0;
}

char *elf_image_interpreter(const struct elf_image *image)
{
	for (size_t i = 0; i < image->nr_program_headers; i++) {
		const GElf_Phdr *header = &image->program_headers[i];
		_cleanup_free_ char *path = NULL;

		if (header->p_type != PT_INTERP)
			continue;
		if (header->p_filesz == 0 || header->p_filesz > PATH_MAX)
			return NULL;
		path = calloc(1, header->p_filesz + 1);
		if (!path || elf_image_read(image, header->p_offset, path, header->p_filesz))
			return NULL;
		return steal_ptr(path);
	}
	return NULL;
}

/* Continues @hash (FNV-1a) with at most *@left bytes of a segment. Returns 0 or -errno. */
static int hash_segment(const struct elf_image *image, const GElf_Phdr *header, uint64_t *left,
			uint32_t *hash)
{
	unsigned char bytes[16384];
	uint64_t done = 0;

	while (done<header->p_filesz && * left> 0) {
		size_t size = sizeof(bytes);
		int err;

		if (size > header->p_filesz - done)
			size = header->p_filesz - done;
		if (size > *left)
			size = *left;
		err = elf_image_read(image, header->p_offset + done, bytes, size);
		if (err)
			return err;
		for (size_t i = 0; i < size; i++)
			*hash = (*hash ^ bytes[i]) * 16777619u;
		done += size;
		*left -= size;
	}
	return 0;
}

static int hash_code(const struct elf_image *image, uint32_t *ret)
{
	uint64_t left = MAX_HASHED_BYTES;
	int err = 0;

	*ret = 2166136261u;
	for (size_t i = 0; i < image->nr_program_headers && !err; i++)
		if (is_code(&image->program_headers[i]))
			err = hash_segment(image, &image->program_headers[i], &left, ret);
	return err;
}

int elf_image_build_hash(const struct elf_image *image, uint32_t *ret)
{
	const void *build_id;
	ssize_t len = dwelf_elf_gnu_build_id(image->elf, &build_id);
	const unsigned char *bytes = build_id;

	if (len < 4 || len > MAX_BUILD_ID_BYTES)
		return hash_code(image, ret);
	*ret = (uint32_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
	return 0;
}
