/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/elf/function_lines.h"
#include "probes/elf/named_functions.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int find_no_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		       char **file_name, Elf **elf)
{
	return -1;
}

/* No file is opened: whoever reads this one may not. */
static int find_debug_file(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			   const char *file_name, const char *link, GElf_Word crc,
			   char **ret_file_name)
{
	const struct debug_symbols_files *files = *userdata;
	int fd = -1;

	if (files)
		debug_symbols_find(files, 0, &fd);
	return fd;
}

/* True if @name, with or without directories, is the file at @path. */
static bool is_source(const char *path, const char *name)
{
	size_t len = strlen(name), path_len = strlen(path);

	return len <= path_len && strcmp(path + path_len - len, name) == 0 &&
	       (len == path_len || path[path_len - len - 1] == '/');
}

/* The search in one unit, and the function found. */
struct line_search {
	const struct elf_image *image;
	GElf_Addr shift; /* from the addresses of the debugging information to those of the image */
	const char *source;
	int line;
	Dwarf_Addr entry;  /* of the function, as in the debugging information */
	int function_line; /* its first line; 0: none found */
};

struct clone_search {
	GElf_Addr address;
	bool is_clone, is_function;
};

static bool match_clone(void *context, const struct elf_symbol *symbol)
{
	struct clone_search *search = context;

	if (symbol->type != STT_FUNC || symbol->is_import || symbol->address != search->address)
		return true;
	if (strchr(symbol->name, '.'))
		search->is_clone = true;
	else
		search->is_function = true;
	return !search->is_function;
}

/*
 * True if a part or a variant of a function begins at @entry, which the compiler has made, such as
 * "grab.part.0": it lacks some calls of grab(), or some arguments.
 */
static bool is_clone(const struct line_search *search, Dwarf_Addr entry)
{
	struct clone_search clone = {.address = entry + search->shift};

	elf_image_visit_symbols(search->image, match_clone, &clone);
	return clone.is_clone && !clone.is_function;
}

/*
 * The file of the function. From DWARF 5 on, number 0 is the unit's own file, which clang writes.
 * libdw takes it for "no file" (elfutils 0.188, dwarf_decl_file()), which it was before.
 */
static const char *source_of(Dwarf_Die *die)
{
	const char *source = dwarf_decl_file(die);
	Dwarf_Attribute attribute;
	Dwarf_Half version;
	Dwarf_Files *files;
	Dwarf_Word number;
	Dwarf_Die unit;
	size_t nr;

	if (source)
		return source;
	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) ||
	    dwarf_formudata(&attribute, &number) || number != 0 ||
	    dwarf_cu_info(attribute.cu, &version, NULL, &unit, NULL, NULL, NULL, NULL) ||
	    version < 5 || dwarf_getsrcfiles(&unit, &files, &nr))
		return NULL;
	return dwarf_filesrc(files, 0, NULL, NULL);
}

/*
 * Keeps, of the functions that begin above the line, the last one that has code for it; the
 * function itself rather than a clone of it.
 */
static int match_function(Dwarf_Die *die, void *context)
{
	struct line_search *search = context;
	const char *source = source_of(die);
	Dwarf_Addr entry;
	int line;

	if (!source || !is_source(source, search->source) || dwarf_decl_line(die, &line) ||
	    line > search->line || line < search->function_line || dwarf_entrypc(die, &entry))
		return DWARF_CB_OK;
	if (line == search->function_line && !is_clone(search, search->entry))
		return DWARF_CB_OK;
	search->function_line = line;
	search->entry = entry;
	return DWARF_CB_OK;
}

/* True if the unit has code for the line, or if the function begins there. */
static bool has_line(Dwarf_Die *unit, const struct line_search *search)
{
	Dwarf_Lines *lines;
	size_t nr;

	if (search->function_line == search->line)
		return true;
	if (dwarf_getsrclines(unit, &lines, &nr))
		return false;
	for (size_t i = 0; i < nr; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		const char *source = dwarf_linesrc(line, NULL, NULL);
		int number;

		if (source && dwarf_lineno(line, &number) == 0 && number == search->line &&
		    is_source(source, search->source))
			return true;
	}
	return false;
}

bool function_lines_are_in(const struct elf_image *image)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(image->elf, &names) < 0)
		return false;
	while ((section = elf_nextscn(image->elf, section))) {
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(image->elf, names, header.sh_name)
					   : NULL;

		if (name && strcmp(name, ".debug_info") == 0)
			return true;
	}
	return false;
}

bool function_lines_find(const struct elf_image *image, const struct debug_symbols_files *debug,
			 const char *source, int line, struct elf_function *ret)
{
	const Dwfl_Callbacks callbacks = {
		.find_elf = find_no_elf,
		.find_debuginfo = find_debug_file,
		.section_address = dwfl_offline_section_address,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);
	int fd = fcntl(image->fd, F_DUPFD_CLOEXEC, 0);
	/* The module owns the descriptor, unless dwfl_report_offline() fails. */
	Dwfl_Module *module = dwfl && fd >= 0 ? dwfl_report_offline(dwfl, "", "file", fd) : NULL;
	Dwarf_Die *unit = NULL;
	void **userdata;
	bool found = false;
	Dwarf_Addr bias;

	if (!module && fd >= 0)
		close(fd);
	if (dwfl)
		dwfl_report_end(dwfl, NULL, NULL);
	if (module && dwfl_module_info(module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL))
		*userdata = (void *)debug;
	while (module && !found && (unit = dwfl_module_nextcu(module, unit, &bias))) {
		struct line_search search = {.image = image, .source = source, .line = line};
		GElf_Addr elf_bias;
		uint64_t offset;

		if (!dwfl_module_getelf(module, &elf_bias))
			continue;
		search.shift = bias - elf_bias;
		if (dwarf_getfuncs(unit, match_function, &search, 0) || !search.function_line ||
		    !has_line(unit, &search))
			continue;
		found = elf_image_locate_code(image, search.entry + search.shift, &offset) &&
			named_function_at(image, offset, ret);
	}
	if (dwfl)
		dwfl_end(dwfl);
	return found;
}
