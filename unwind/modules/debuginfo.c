/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/debuginfo.h"

#include "common/elf/debug_file.h"
#include "common/elf/elf_file.h"
#include "common/scope.h"
#include "unwind/modules/debug_server.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes */
#define KEPT_FOR_FILE	 8192
#define KEPT_FOR_SECTION 300
/* To unwind: a checksum is made in one piece, and who records waits. 0.2 s; most have a build-id.
 */
#define MAX_SUMMED (256u << 20)

/*
 * Keeps libdw from searching for a missing shared file by itself and opening whatever is there
 * (elfutils 0.188, libdw/dwarf_getalt.c).
 */
#define SEARCHED ((Dwarf *)-1)

/* Modules are reported with their files (dwfl_report_elf()), so there is nothing to find. */
static int find_no_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		       char **file_name, Elf **elf)
{
	return -1;
}

/*
 * libdwfl asks where the sections of an ET_REL are, and cannot do without this callback. No module
 * was one when it was found, but the owner of its file may have changed that since.
 */
static int find_no_section(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			   const char *section_name, GElf_Word index, const GElf_Shdr *header,
			   Dwarf_Addr *address)
{
	return -1;
}

/*
 * Takes over the descriptor of a file, and returns one with which libdwfl may unwind: of the file,
 * if root alone can change it, or of a copy. -1: it is not to be used.
 */
static int make_stable(struct debuginfo *debuginfo, int fd, const char *path)
{
	_cleanup_close_ int file = fd;
	struct stat st;

	if (fd < 0 || !debuginfo->max_expanded)
		return steal_fd(file);
	if (fstat(fd, &st))
		return -1;
	if (elf_file_is_stable(fd, &st))
		return steal_fd(file);
	return copy_table_get(&debuginfo->copies, fd, &st, path);
}

/*
 * As make_stable(), for the debug file @path. Without a file, libdwfl would open a path. libdw
 * expands the file's compressed sections next.
 */
static int use_to_unwind(struct debuginfo *debuginfo, int fd, char **path)
{
	_cleanup_close_ int used = make_stable(debuginfo, fd, *path);
	Elf *elf = used < 0 ? NULL : elf_file_begin(used);
	uint64_t expanded = elf ? elf_file_expanded_bytes(elf) : UINT64_MAX;

	elf_end(elf);
	if (expanded <= debuginfo->max_expanded) {
		debuginfo->others_bytes += used != fd ? KEPT_FOR_FILE + expanded : 0;
		return steal_fd(used);
	}
	free(*path);
	*path = NULL;
	return -1;
}

/* Finds the file to which dwz has moved what several debug files share. @debug_file names it. */
static int find_shared(struct debuginfo *debuginfo, Dwfl_Module *module, const char *module_path,
		       const char *debug_file, const char *link, char **ret_path)
{
	const char *link_again;
	const void *build_id;
	Dwarf_Addr bias;
	Dwarf *dwarf;
	int fd;

	/*
	 * libdwfl asks after it has the debug file. A damaged file may make it ask earlier.
	 * Unwinding needs no shared file.
	 */
	if (debuginfo->in_shared || debuginfo->max_expanded)
		return -1;
	debuginfo->in_shared = true;
	dwarf = dwfl_module_getdwarf(module, &bias);
	debuginfo->in_shared = false;
	if (!dwarf)
		return -1;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &link_again, &build_id);
	if (size <= 0)
		return -1;

	struct debug_file_search wanted = {
		.roots = debuginfo->roots,
		.nr_roots = debuginfo->nr_roots,
		.quiet = debuginfo->quiet,
		.module_path = module_path,
		.id = {.build_id = build_id, .build_id_size = (size_t)size},
	};
	fd = debug_file_by_build_id(&wanted, ret_path);
	if (fd < 0 && link[0] != '/' && debug_file)
		fd = debug_file_open(&wanted,
				     debug_file_format("%.*s%s", debug_file_dir_length(debug_file),
						       debug_file, link),
				     ret_path);
	/* A path with ".." could lead outside. */
	if (fd < 0 && link[0] == '/' && debuginfo->symfs && !strstr(link, "/../"))
		fd = debug_file_open(&wanted, debug_file_format("%s%s", debuginfo->symfs, link),
				     ret_path);
	if (fd < 0 && link[0] == '/')
		fd = debug_file_open(&wanted, strdup(link), ret_path);
	for (size_t i = 0; i < debuginfo->nr_roots && fd < 0; i++)
		fd = debug_file_open(&wanted,
				     debug_file_format("%s/.dwz/%s", debuginfo->roots[i],
						       debug_file_base_name(link)),
				     ret_path);
	if (fd < 0 && debuginfo->server)
		fd = debug_server_fetch(debuginfo->server, link, build_id, (size_t)size, ret_path);
	if (fd < 0)
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): libdw's own mark */
		dwarf_setalt(dwarf, SEARCHED);
	return fd;
}

/* libdwfl's callback (Dwfl_Callbacks.find_debuginfo). */
static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc, char **ret_path)
{
	struct debuginfo *debuginfo = *userdata;
	const unsigned char *build_id = NULL;
	GElf_Addr vaddr;

	if (!debuginfo)
		return -1;
	/* libdwfl passes no checksum for a shared file. */
	if (link && !crc)
		return find_shared(debuginfo, module, name, file_name, link, ret_path);
	int size = dwfl_module_build_id(module, &build_id, &vaddr);
	struct debug_file_search wanted = {
		.roots = debuginfo->roots,
		.nr_roots = debuginfo->nr_roots,
		.quiet = debuginfo->quiet,
		.is_to_unwind = debuginfo->max_expanded,
		.module_path = name,
		.main_file = file_name,
		.id =
			{
				.build_id = build_id,
				.build_id_size = size > 0 ? (size_t)size : 0,
				.has_crc = link != NULL,
				.crc = crc,
				.max_others_bytes = debuginfo->max_expanded ? MAX_SUMMED : 0,
			},
	};
	/* libdwfl asks twice: for symbols, and for debug information. */
	if (debuginfo->without == module)
		return -1;
	int fd = debug_file_by_build_id(&wanted, ret_path);
	if (fd < 0)
		fd = debug_file_by_link(&wanted, link, ret_path);
	if (fd < 0 && debuginfo->server && wanted.id.build_id_size)
		fd = debug_server_fetch(debuginfo->server, name, build_id, wanted.id.build_id_size,
					ret_path);
	if (fd >= 0 && debuginfo->max_expanded)
		fd = use_to_unwind(debuginfo, fd, ret_path);
	if (fd < 0)
		debuginfo->without = module;
	return fd;
}

int debuginfo_find(struct debuginfo *debuginfo, const char *name, const uint8_t *build_id,
		   size_t build_id_size, char **ret_path)
{
	struct debug_file_search wanted = {
		.roots = debuginfo->roots,
		.nr_roots = debuginfo->nr_roots,
		.quiet = debuginfo->quiet,
		.module_path = name,
		.id = {.build_id = build_id, .build_id_size = build_id_size},
	};
	int fd = debug_file_by_build_id(&wanted, ret_path);

	if (fd < 0)
		fd = debug_file_by_link(&wanted, NULL, ret_path);
	if (fd < 0 && debuginfo->server)
		fd = debug_server_fetch(debuginfo->server, name, build_id, build_id_size, ret_path);
	return fd;
}

static int add_root(struct debuginfo *debuginfo, const char *prefix, const char *path)
{
	char *root = debug_file_format("%s%s", prefix, path);

	if (!root)
		return -ENOMEM;
	debuginfo->roots[debuginfo->nr_roots++] = root;
	return 0;
}

int debuginfo_init(struct debuginfo *debuginfo, const struct debuginfo_options *options)
{
	static const struct debuginfo_options none;
	int err = 0;

	if (!options)
		options = &none;
	*debuginfo = (struct debuginfo){
		.callbacks =
			{
				.find_elf = find_no_elf,
				.find_debuginfo = find_debuginfo,
				.section_address = find_no_section,
			},
		.quiet = options->quiet,
		.max_expanded = options->max_expanded,
	};
	if (options->symfs) {
		debuginfo->symfs = strdup(options->symfs);
		err = debuginfo->symfs ? 0 : -ENOMEM;
	}
	if (!err && options->debug_dir)
		err = add_root(debuginfo, "", options->debug_dir);
	if (!err && options->symfs)
		err = add_root(debuginfo, options->symfs, DEBUG_FILE_SYSTEM_ROOT);
	if (!err)
		err = add_root(debuginfo, "", DEBUG_FILE_SYSTEM_ROOT);
	if (!err && options->ask_servers)
		err = debug_server_create(&debuginfo->server);
	if (err)
		debuginfo_deinit(debuginfo);
	return err;
}

void debuginfo_deinit(struct debuginfo *debuginfo)
{
	copy_table_empty(&debuginfo->copies);
	debug_server_destroy(debuginfo->server);
	for (size_t i = 0; i < debuginfo->nr_roots; i++)
		free(debuginfo->roots[i]);
	free(debuginfo->symfs);
	*debuginfo = (struct debuginfo){0};
}

static void **userdata_of(Dwfl_Module *module)
{
	void **userdata = NULL;

	return dwfl_module_info(module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL) ? userdata
										       : NULL;
}

Dwfl_Module *debuginfo_report_elf(struct debuginfo *debuginfo, Dwfl *dwfl, const char *name,
				  const char *file_name, int fd, GElf_Addr base)
{
	_cleanup_close_ int used = make_stable(debuginfo, fd, file_name);
	/* For unwinding, libdwfl is not asked for symbols, so it expands no MiniDebugInfo. */
	bool is_usable = debuginfo->max_expanded
				 ? elf_file_is_sane(used)
				 : elf_file_expands_well(used, debuginfo->quiet ? NULL : file_name);
	Dwfl_Module *module =
		is_usable ? dwfl_report_elf(dwfl, name, file_name, used, base, true) : NULL;
	void **userdata;

	if (!module)
		return NULL;
	(void)steal_fd(used);
	if (debuginfo->without == module)
		debuginfo->without = NULL;
	userdata = userdata_of(module);
	if (userdata)
		*userdata = debuginfo;
	return module;
}

uint64_t debuginfo_kept_bytes(const struct debuginfo *debuginfo, Dwfl_Module *module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	uint64_t bytes, expanded;
	size_t nr;

	if (!elf || elf_getshdrnum(elf, &nr))
		return 0;
	bytes = KEPT_FOR_FILE + nr * KEPT_FOR_SECTION;
	expanded = elf_file_expanded_bytes(elf);
	return expanded <= debuginfo->max_expanded ? bytes + expanded : bytes;
}

uint64_t debuginfo_take_others_bytes(struct debuginfo *debuginfo)
{
	uint64_t bytes = debuginfo->others_bytes;

	debuginfo->others_bytes = 0;
	return bytes;
}

/* Without its userdata, find_debuginfo() finds nothing for the module. */
bool debuginfo_is_searched(Dwfl_Module *module)
{
	void **userdata = userdata_of(module);

	return !userdata || !*userdata;
}

void debuginfo_end_search(Dwfl_Module *module)
{
	void **userdata = userdata_of(module);

	if (userdata)
		*userdata = NULL;
}

bool debuginfo_has_room(const struct debuginfo *debuginfo, uint64_t kept_bytes)
{
	return kept_bytes + debuginfo->copies.bytes <= DEBUGINFO_MAX_KEPT_BYTES;
}

bool debuginfo_must_close(struct debuginfo *debuginfo, uint64_t kept_bytes, uint64_t *epoch)
{
	bool must_close;

	if (!debuginfo_has_room(debuginfo, kept_bytes))
		copy_table_empty(&debuginfo->copies);
	must_close = *epoch != debuginfo->copies.epoch;
	*epoch = debuginfo->copies.epoch;
	return must_close;
}
