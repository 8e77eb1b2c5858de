/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/debuginfo.h"

#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SERVERS_VARIABLE "DEBUGINFOD_URLS"

/* Modules are reported with their file (dwfl_report_elf()): there is none to look for. */
static int find_no_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		       char **file_name, Elf **elf)
{
	return -1;
}

/*
 * dwfl_standard_find_debuginfo() ends by asking the servers that the environment names, and has no
 * switch for that (elfutils 0.188, libdwfl/find-debuginfo.c; debuginfod-client.c reads the variable
 * at each query). So the variable is hidden from it.
 */
static int find_local_debuginfo(Dwfl_Module *module, void **userdata, const char *name,
				Dwarf_Addr base, const char *file_name, const char *debuglink_file,
				GElf_Word debuglink_crc, char **ret_file_name)
{
	const char *value = getenv(SERVERS_VARIABLE);
	_cleanup_free_ char *servers = NULL;

	if (value) {
		servers = strdup(value);
		if (!servers || unsetenv(SERVERS_VARIABLE))
			return -1;
	}
	int fd = dwfl_standard_find_debuginfo(module, userdata, name, base, file_name,
					      debuglink_file, debuglink_crc, ret_file_name);
	if (servers)
		setenv(SERVERS_VARIABLE, servers, 1);
	return fd;
}

int debuginfo_init(struct debuginfo *debuginfo, const char *symfs)
{
	*debuginfo = (struct debuginfo){
		.callbacks =
			{
				.find_elf = find_no_elf,
				.find_debuginfo = find_local_debuginfo,
				.debuginfo_path = &debuginfo->path,
			},
	};
	/* libdwfl's default, ":.debug:/usr/lib/debug", stands for a NULL path. */
	if (symfs &&
	    asprintf(&debuginfo->path, ":.debug:%s/usr/lib/debug:/usr/lib/debug", symfs) < 0) {
		debuginfo->path = NULL;
		return -ENOMEM;
	}
	return 0;
}

void debuginfo_deinit(struct debuginfo *debuginfo)
{
	free(debuginfo->path);
}
