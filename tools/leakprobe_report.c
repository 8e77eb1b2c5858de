/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/leakprobe_report.h"

#include "probes/allocators/allocator.h"
#include "probes/elf/analysis_limit.h"
#include "probes/elf/debug_symbols.h"
#include "probes/elf/elf_image.h"
#include "probes/plan/allocator_plan.h"
#include "probes/tracefs/group_name.h"
#include "probes/sites/probe_arch.h"
#include "probes/tracefs/tracefs_uprobes.h"

#include "common/diag.h"
#include "common/elf/elf_file.h"
#include "common/schema/probe_events.h"
#include "common/schema/resource_schema.h"
#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>

/* The present state of a probe's file. */
enum file_state {
	FILE_UNCHANGED,
	FILE_GONE,
	FILE_REPLACED,
	FILE_REBUILT,
	FILE_UNREADABLE,
};

/* Finds the widths of the longest group:event and of the longest path. */
static void measure(const struct uprobe_list *list, int *ret_name, int *ret_path)
{
	struct group_name name;

	*ret_name = strlen("EVENT");
	*ret_path = strlen("FILE");
	for (size_t i = 0; i < list->nr; i++) {
		const struct uprobe *probe = &list->probes[i];
		int name_len = (int)(strlen(probe->group) + 1 + strlen(probe->event));
		int path_len = (int)strlen(probe->path);

		if (group_name_parse(probe->group, &name))
			continue;
		*ret_name = name_len > *ret_name ? name_len : *ret_name;
		*ret_path = path_len > *ret_path ? path_len : *ret_path;
	}
}

static void print_count(bool is_known, uint64_t count)
{
	if (is_known)
		printf("  %12" PRIu64, count);
	else
		printf("  %12s", "-");
}

static enum file_state file_state(const char *path, const struct group_name *name)
{
	struct elf_image image;
	struct stat stat;
	uint32_t build_hash;
	_cleanup_close_ int fd = elf_file_open(path, &stat);
	int err;

	if (fd == -ENOENT || fd == -ESRCH || fd == -ENOTDIR)
		return FILE_GONE;
	if (fd == -EACCES || fd == -EPERM || fd == -EMFILE)
		return FILE_UNREADABLE;
	if (fd < 0 || group_name_inode_hash(stat.st_dev, stat.st_ino) != name->inode_hash)
		return FILE_REPLACED;
	err = elf_image_init(&image, fd);
	if (err)
		return FILE_REBUILT;
	err = elf_image_build_hash(&image, &build_hash);
	elf_image_deinit(&image);
	return err || build_hash != name->build_hash ? FILE_REBUILT : FILE_UNCHANGED;
}

/* The file whose probes are being listed. Its symbols are read once for all of them. */
struct listed_file {
	const char *group; /* of the probe that it was opened for; NULL before the first */
	int fd;
	bool is_open; /* and it is the file that the probes were made for */
	struct elf_image image;
	struct allocator allocator;
};

static void listed_file_close(struct listed_file *file)
{
	allocator_deinit(&file->allocator);
	if (file->is_open)
		elf_image_deinit(&file->image);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct listed_file){.fd = -1};
}

static void listed_file_open(struct listed_file *ret, const struct uprobe *probe)
{
	struct group_name name;
	struct stat stat;

	*ret = (struct listed_file){.group = probe->group, .fd = -1};
	if (group_name_parse(probe->group, &name) ||
	    file_state(probe->path, &name) != FILE_UNCHANGED)
		return;
	analysis_limit_begin(ANALYSIS_LIMIT_NS);
	ret->fd = elf_file_open(probe->path, &stat);
	ret->is_open = ret->fd >= 0 && elf_image_init(&ret->image, ret->fd) == 0;
	if (ret->is_open)
		debug_symbols_use(&ret->image, probe->path, probe->path);
	if (ret->is_open && allocator_init(&ret->allocator, &ret->image, true))
		diag_warn("%s: out of memory; its functions are not named", probe->path);
	analysis_limit_end();
}

/* Decodes the instruction at a listed probe. */
static void describe_instruction(const struct listed_file *file, const struct uprobe *probe,
				 struct placement_instruction *ret)
{
	uint8_t code[PLACEMENT_MAX_INSTRUCTION_BYTES];
	size_t size_bytes = sizeof(code);

	*ret = (struct placement_instruction){.class = PLACEMENT_UNKNOWN, .text = "?"};
	if (!file->is_open || !file->image.is_native)
		return;
	/* At the end of the file there may be fewer bytes. */
	while (size_bytes > 0 && elf_image_read(&file->image, probe->offset, code, size_bytes))
		size_bytes--;
	probe_arch_describe(probe_arch_native(), code, size_bytes, ret);
}

/* Names the function and offset of a probe; the event names it if the file cannot. */
static void name_function(const struct listed_file *file, const struct uprobe *probe, char *ret,
			  size_t size)
{
	const struct allocator_function *function =
		allocator_find_code(&file->allocator, probe->offset);
	const struct probe_schema *schema;
	struct resource_event resource;
	enum probe_point point;

	/* An exit may be in code that several functions share: the event names the one meant. */
	if (function && probe_schema_parse_event(probe->event, &schema, &point) == 0 &&
	    point == PROBE_EXIT && schema != function->schema)
		function = NULL;
	if (function)
		snprintf(ret, size, "%s+0x%" PRIx64, function->symbol,
			 probe->offset - function->code.offset);
	else if (probe_schema_parse_event(probe->event, &schema, &point) == 0)
		snprintf(ret, size, "%s", schema->function);
	else if (resource_event_parse(probe->event, &resource) == 0)
		snprintf(ret, size, "%s", resource.function);
	else if (probe_schema_is_mark(probe->event))
		snprintf(ret, size, "LEAK_MARK()");
	else
		snprintf(ret, size, "?");
}

static void print_probe(const struct uprobe *probe, const struct listed_file *file, int name_width,
			int path_width)
{
	char function[PROBE_SYMBOL_MAX + 20];
	struct placement_instruction instruction;
	int path_len = (int)strlen(probe->path);

	describe_instruction(file, probe, &instruction);
	name_function(file, probe, function, sizeof(function));
	printf("%s:%-*s  %-20s  ", probe->group, name_width - 1 - (int)strlen(probe->group),
	       probe->event, function);
	diag_print_escaped(stdout, probe->path, " ");
	printf("%*s  0x%-8" PRIx64, path_len < path_width ? path_width - path_len : 0, "",
	       probe->offset);
	print_count(probe->has_hits, probe->hits);
	print_count(probe->has_misses, probe->misses);
	printf("  %-8s  %s\n", placement_class_name(instruction.class), instruction.text);
}

/* Prints the allocator that the probes in the next lines watch. */
static void print_file(const struct listed_file *file, const char *path)
{
	printf("# ");
	diag_print_escaped(stdout, path, NULL);
	if (file->allocator.nr > 0)
		printf(": %s\n", file->allocator.name);
	else
		printf(": %s\n", file->is_open ? "resources"
					       : "the file that the probes were made for is gone");
}

int leakprobe_list(void)
{
	struct listed_file file = {.fd = -1};
	struct uprobe_list list;
	struct group_name name;
	int name_width, path_width;
	int err = tracefs_uprobes_read(&list, true);

	if (err)
		return err;
	measure(&list, &name_width, &path_width);
	printf("%-*s  %-20s  %-*s  %-10s  %12s  %12s  %-8s  %s\n", name_width, "EVENT", "FUNCTION",
	       path_width, "FILE", "OFFSET", "HITS", "MISSES", "CLASS", "INSTRUCTION");
	for (size_t i = 0; i < list.nr; i++) {
		if (group_name_parse(list.probes[i].group, &name))
			continue;
		if (!file.group || strcmp(file.group, list.probes[i].group) != 0) {
			listed_file_close(&file);
			listed_file_open(&file, &list.probes[i]);
			print_file(&file, list.probes[i].path);
		}
		print_probe(&list.probes[i], &file, name_width, path_width);
	}
	listed_file_close(&file);
	uprobe_list_deinit(&list);
	return 0;
}

/* Prints one line for the group of @probe; returns true if all is well. */
static bool check_group(const struct uprobe *probe, const struct group_name *name)
{
	static const char *const texts[] = {
		[FILE_UNCHANGED] = "ok",
		[FILE_GONE] = "the file is gone; the probes watch processes that still map it",
		[FILE_REPLACED] = "the file was replaced; the probes watch the old one",
		[FILE_REBUILT] =
			"the file was rebuilt in place; the probes may be at wrong instructions",
		[FILE_UNREADABLE] = "the file cannot be read",
	};
	bool is_of_process = strncmp(probe->path, "/proc/", strlen("/proc/")) == 0;
	enum file_state state = file_state(probe->path, name);

	printf("%s: ", probe->group);
	diag_print_escaped(stdout, probe->path, NULL);
	if (state == FILE_GONE && is_of_process)
		puts(": the process of that path is gone; the probes watch processes that still map the file");
	else
		printf(": %s\n", texts[state]);
	return state == FILE_UNCHANGED;
}

static bool is_first_of_group(const struct uprobe_list *list, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (strcmp(list->probes[i].group, list->probes[at].group) == 0)
			return false;
	return true;
}

static int check_groups(void)
{
	struct uprobe_list list;
	int nr_wrong = 0, nr_groups = 0;
	int err = tracefs_uprobes_read(&list, false);

	if (err)
		return err;
	for (size_t i = 0; i < list.nr; i++) {
		struct group_name name;

		if (group_name_parse(list.probes[i].group, &name) ||
		    name.owner != GROUP_OF_LEAKPROBE || !is_first_of_group(&list, i))
			continue;
		nr_groups++;
		nr_wrong += !check_group(&list.probes[i], &name);
	}
	uprobe_list_deinit(&list);
	if (nr_groups == 0)
		puts("leakprobe has no probes registered");
	return nr_wrong;
}

static size_t count_registered(const struct probe_file *file)
{
	size_t nr = 0;

	for (size_t i = 0; i < file->nr_probes; i++)
		nr += file->probes[i].tracefs_id >= 0;
	return nr;
}

static int check_process(pid_t pid)
{
	struct probe_set set;
	int nr_wrong = 0;
	int err = allocator_plan_pid(&set, pid, false);

	if (err)
		return err;
	err = probe_set_find(&set);
	for (size_t i = 0; err >= 0 && i < set.nr_files; i++) {
		const struct probe_file *file = &set.files[i];
		size_t nr = count_registered(file);

		printf("process %d: ", (int)pid);
		diag_print_escaped(stdout, file->display, NULL);
		if (nr == file->nr_probes)
			printf(": has all %zu probes\n", nr);
		else if (nr > 0)
			printf(": has only %zu of %zu probes\n", nr, file->nr_probes);
		else
			puts(": has no probes");
		nr_wrong += nr != file->nr_probes;
	}
	probe_set_deinit(&set);
	return err < 0 ? err : nr_wrong;
}

int leakprobe_check(const struct pid_list *pids)
{
	int nr_wrong = check_groups();

	for (size_t i = 0; i < pids->nr && nr_wrong >= 0; i++) {
		int nr = check_process(pids->pids[i]);

		nr_wrong = nr < 0 ? nr : nr_wrong + nr;
	}
	return nr_wrong;
}
