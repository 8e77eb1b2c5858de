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

/* True if a segment reaches beyond the end of the file: what is missing may be what is looked for.
 */
static bool is_truncated(const struct elf_image *image)
{
	uint64_t file_size = (uint64_t)image->file_size_bytes;
	size_t nr;

	if (elf_getphdrnum(image->elf, &nr))
		return true;
	for (size_t i = 0; i < nr && i <= INT_MAX; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(image->elf, (int)i, &header))
			return true;
		if (header.p_type == PT_LOAD &&
		    (header.p_offset > file_size || header.p_filesz > file_size - header.p_offset))
			return true;
	}
	return false;
}

int elf_image_init(struct elf_image *ret, int fd)
{
	GElf_Ehdr header;
	struct stat stat;

	*ret = (struct elf_image){.fd = fd, .debug_fd = -1};
	if (fstat(fd, &stat))
		return -errno;
	ret->file_size_bytes = stat.st_size;
	ret->elf = elf_file_begin(fd);
	if (!ret->elf)
		return -ENOEXEC;
	if (!gelf_getehdr(ret->elf, &header) || is_truncated(ret)) {
		elf_image_deinit(ret);
		return -ENOEXEC;
	}
	ret->strings = calloc(ELF_NR_TABLES, sizeof(*ret->strings));
	if (!ret->strings) {
		elf_image_deinit(ret);
		return -ENOMEM;
	}
	ret->is_native = header.e_ident[EI_CLASS] == ELFCLASS64 &&
			 header.e_ident[EI_DATA] == ELFDATA2LSB &&
			 header.e_machine == NATIVE_MACHINE;
	return 0;
}

void elf_image_deinit(struct elf_image *image)
{
	if (image->debug)
		elf_end(image->debug);
	if (image->elf)
		elf_end(image->elf);
	if (image->debug_fd >= 0)
		close(image->debug_fd);
	for (size_t i = 0; image->strings && i < ELF_NR_TABLES; i++)
		free(image->strings[i].bytes);
	free(image->strings);
	image->strings = NULL;
	image->elf = image->debug = NULL;
	image->debug_fd = -1;
}

/* Finds the code at @address in the file. Returns false if the file holds no such code. */
static bool locate(const struct elf_image *image, uint64_t address, struct elf_function *ret)
{
	size_t nr_headers;

	if (elf_getphdrnum(image->elf, &nr_headers) || nr_headers > INT_MAX)
		return false;
	for (int i = 0; i < (int)nr_headers; i++) {
		GElf_Phdr header;
		uint64_t in_segment, offset;

		if (!gelf_getphdr(image->elf, i, &header))
			return false;
		if (header.p_type != PT_LOAD || !(header.p_flags & PF_X) ||
		    address < header.p_vaddr)
			continue;
		in_segment = address - header.p_vaddr;
		if (in_segment >= header.p_filesz ||
		    __builtin_add_overflow(header.p_offset, in_segment, &offset) ||
		    offset >= image->file_size_bytes)
			continue;
		ret->offset = offset;
		if (ret->size_bytes > header.p_filesz - in_segment)
			ret->size_bytes = header.p_filesz - in_segment;
		if (ret->size_bytes > image->file_size_bytes - offset)
			ret->size_bytes = image->file_size_bytes - offset;
		return true;
	}
	return false;
}

bool elf_image_locate_code(const struct elf_image *image, uint64_t address, uint64_t *ret_offset)
{
	struct elf_function place = {0};

	if (!locate(image, address, &place))
		return false;
	*ret_offset = place.offset;
	return true;
}

bool elf_image_locate(const struct elf_image *image, const struct elf_symbol *symbol,
		      struct elf_function *ret)
{
	*ret = (struct elf_function){.size_bytes = symbol->size_bytes, .is_old = symbol->is_old};
	ret->is_found = !symbol->is_import && locate(image, symbol->address, ret);
	return ret->is_found;
}

bool elf_image_address(const struct elf_image *image, uint64_t offset, uint64_t *ret)
{
	size_t nr_headers;

	if (elf_getphdrnum(image->elf, &nr_headers) || nr_headers > INT_MAX)
		return false;
	for (int i = 0; i < (int)nr_headers; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(image->elf, i, &header))
			return false;
		if (header.p_type != PT_LOAD || !(header.p_flags & PF_X) ||
		    offset < header.p_offset || offset - header.p_offset >= header.p_filesz)
			continue;
		*ret = header.p_vaddr + (offset - header.p_offset);
		return true;
	}
	return false;
}

/* True if the dynamic section at @header asks for a library. */
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
	size_t nr_headers;

	if (elf_getphdrnum(image->elf, &nr_headers) || nr_headers > INT_MAX)
		return false;
	for (int i = 0; i < (int)nr_headers; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(image->elf, i, &header) || header.p_type == PT_INTERP ||
		    (header.p_type == PT_DYNAMIC && needs_library(image, &header)))
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

static bool take_function(void *context, const struct elf_symbol *symbol)
{
	const struct function_search *search = context;

	/* GNU ld makes malloc local in a static PIE; nothing else in it can be meant by that name.
	 */
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
	elf_image_visit_symbols(image, take_function, &search);
}

static bool look_for_r_debug(void *context, const struct elf_symbol *symbol)
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

	elf_image_visit_symbols(image, look_for_r_debug, &is_loader);
	return is_loader;
}

bool elf_image_code_segment(const struct elf_image *image, size_t nth, uint64_t *ret_offset,
			    uint64_t *ret_size_bytes)
{
	size_t nr_headers;

	if (elf_getphdrnum(image->elf, &nr_headers) || nr_headers > INT_MAX)
		return false;
	for (int i = 0; i < (int)nr_headers; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(image->elf, i, &header))
			return false;
		if (header.p_type != PT_LOAD || !(header.p_flags & PF_X) ||
		    header.p_offset >= image->file_size_bytes || nth-- > 0)
			continue;
		*ret_offset = header.p_offset;
		*ret_size_bytes = header.p_filesz;
		if (*ret_size_bytes > image->file_size_bytes - header.p_offset)
			*ret_size_bytes = image->file_size_bytes - header.p_offset;
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
	size_t nr_headers;

	if (elf_getphdrnum(image->elf, &nr_headers) || nr_headers > INT_MAX)
		return 0;
	for (int i = 0; i < (int)nr_headers; i++) {
		GElf_Phdr header;
		uint64_t in_segment, offset, size_bytes;

		if (!gelf_getphdr(image->elf, i, &header))
			return 0;
		if (header.p_type != PT_LOAD || address < header.p_vaddr ||
		    address - header.p_vaddr >= header.p_filesz)
			continue;
		in_segment = address - header.p_vaddr;
		if (__builtin_add_overflow(header.p_offset, in_segment, &offset) ||
		    offset >= image->file_size_bytes)
			return 0;
		size_bytes = header.p_filesz - in_segment;
		if (size_bytes > image->file_size_bytes - offset)
			size_bytes = image->file_size_bytes - offset;
		if (size_bytes > max)
			size_bytes = max;
		return elf_image_read(image, offset, buffer, size_bytes) ? 0 : size_bytes;
	}
	return 0;
}

char *elf_image_interpreter(const struct elf_image *image)
{
	size_t nr_headers;

	if (elf_getphdrnum(image->elf, &nr_headers) || nr_headers > INT_MAX)
		return NULL;
	for (int i = 0; i < (int)nr_headers; i++) {
		_cleanup_free_ char *path = NULL;
		GElf_Phdr header;

		if (!gelf_getphdr(image->elf, i, &header) || header.p_type != PT_INTERP)
			continue;
		if (header.p_filesz == 0 || header.p_filesz > PATH_MAX)
			return NULL;
		path = calloc(1, header.p_filesz + 1);
		if (!path || elf_image_read(image, header.p_offset, path, header.p_filesz))
			return NULL;
		return steal_ptr(path);
	}
	return NULL;
}

/* FNV-1a over the executable segments. */
static int hash_code(const struct elf_image *image, uint32_t *ret)
{
	uint32_t hash = 2166136261u;
	uint64_t left = MAX_HASHED_BYTES;
	size_t nr_headers;

	if (elf_getphdrnum(image->elf, &nr_headers) || nr_headers > INT_MAX)
		return -ENOEXEC;
	for (int i = 0; i < (int)nr_headers; i++) {
		GElf_Phdr header;
		uint64_t done = 0;

		if (!gelf_getphdr(image->elf, i, &header))
			return -ENOEXEC;
		if (header.p_type != PT_LOAD || !(header.p_flags & PF_X))
			continue;
		while (done < header.p_filesz && left > 0) {
			unsigned char bytes[16384];
			size_t size = sizeof(bytes);
			int err;

			if (size > header.p_filesz - done)
				size = header.p_filesz - done;
			if (size > left)
				size = left;
			err = elf_image_read(image, header.p_offset + done, bytes, size);
			if (err)
				return err;
			for (size_t j = 0; j < size; j++)
				hash = (hash ^ bytes[j]) * 16777619u;
			done += size;
			left -= size;
		}
	}
	*ret = hash;
	return 0;
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
