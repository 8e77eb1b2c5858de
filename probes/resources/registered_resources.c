/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/resources/registered_resources.h"

#include "probes/plan/exit_plan.h"
#include "probes/plan/file_analysis.h"
#include "probes/tracefs/tracefs_uprobes.h"

#include "common/diag.h"
#include "common/proc/mapped_files.h"

#include <errno.h>
#include <string.h>

/* Sets what the event's definition says about the call. */
static void set_call(struct resource_call *call, const struct uprobe *there,
		     enum resource_stage stage)
{
	char field[RESOURCE_FIELD_MAX + 1];

	if (stage == RESOURCE_EXIT) {
		snprintf(field, sizeof(field), "%.*s", (int)strcspn(there->fetch_args, "="),
			 there->fetch_args);
		resource_return_field_parse(field, call);
	} else if (strncmp(there->fetch_args, RESOURCE_FIELD_AT "=",
			   strlen(RESOURCE_FIELD_AT "=")) == 0) {
		call->place = RESOURCE_STORED;
	}
}

/* Appends the registered probe @there to @file. */
static int add_probe(struct probe_file *file, const struct uprobe *there,
		     struct resource_schemas *schemas)
{
	struct resource_event event;
	struct resource_call *row;
	struct probe *probe;
	int err;

	err = resource_event_parse(there->event, &event);
	/* Another version registered a return probe, which exceptions cannot pass. */
	if (!err && there->is_return)
		return 0;
	if (!err)
		err = resource_schemas_add(schemas, &event, &row);
	if (err)
		return err;
	probe = probe_file_append(file);
	if (!probe)
		return -ENOMEM;
	snprintf(probe->symbol, sizeof(probe->symbol), "%s", row->function);
	probe->schema = &row->schema;
	probe->point = event.stage == RESOURCE_EXIT ? PROBE_EXIT : PROBE_ENTRY;
	probe->offset = there->offset;
	probe->function_offset = there->offset - exit_plan_from_entry(there->fetch_args);
	set_call(row, there, event.stage);
	snprintf(probe->event, sizeof(probe->event), "%s", there->event);
	probe->fetch_args = strdup(there->fetch_args);
	return probe->fetch_args ? 0 : -ENOMEM;
}

/* True if @probe is leakprobe's, on a resource, and may be on the file with that hash. */
static bool is_on_file(const struct uprobe *probe, uint32_t inode_hash, struct group_name *ret)
{
	struct resource_event event;

	return group_name_parse(probe->group, ret) == 0 && ret->owner == GROUP_OF_LEAKPROBE &&
	       ret->inode_hash == inode_hash && resource_event_parse(probe->event, &event) == 0;
}

/* True for probes on pools, which are planned wherever a program has some. */
static bool is_planned(const struct probe_set *set, const struct uprobe *probe)
{
	for (size_t i = 0; i < set->nr_files; i++) {
		const struct probe_file *file = &set->files[i];

		for (size_t j = 0; j < file->nr_probes && strcmp(file->group, probe->group) == 0;
		     j++)
			if (strcmp(file->probes[j].event, probe->event) == 0)
				return true;
	}
	return false;
}

/*
 * Begins @file as @mapped, unless that is not an ELF file. A process without privileges reads it.
 * Returns 0 or a negative errno.
 */
static int begin_file(struct probe_file *file, const struct mapped_file *mapped,
		      struct group_name *ret)
{
	const struct probe_source source = {.fd = mapped->fd,
					    .stat = &mapped->stat,
					    .path = mapped->path,
					    .display = mapped->display};
	const struct file_question no_probes = {0};
	struct file_answer answer;
	int err = file_analysis_answer(mapped, &no_probes, 1, &answer);

	if (!err && answer.is_elf && answer.has_build_hash) {
		err = probe_file_set_source(file, &source, "resources", ret);
		ret->build_hash = answer.build_hash;
	}
	file_answers_deinit(&answer, 1);
	return err;
}

static int add_file(struct probe_set *set, const struct mapped_file *mapped,
		    const struct uprobe_list *list, struct resource_schemas *schemas)
{
	uint32_t inode_hash = group_name_inode_hash(mapped->stat.st_dev, mapped->stat.st_ino);
	struct probe_file file = {.fd = -1, .has_resources = true};
	struct group_name name = {0}, group;
	int err = 0;

	for (size_t i = 0; i < list->nr && !err; i++) {
		if (!is_on_file(&list->probes[i], inode_hash, &group) ||
		    is_planned(set, &list->probes[i]))
			continue;
		if (uprobe_list_has_others(list, &list->probes[i])) {
			diag_error("%s/%s has several places: another version registered it; "
				   "remove it: leakprobe del %s",
				   list->probes[i].group, list->probes[i].event,
				   list->probes[i].group);
			err = -EEXIST;
			break;
		}
		if (!file.path) {
			err = begin_file(&file, mapped, &name);
			if (!err && !file.path)
				break;
		}
		/* A probe on an earlier file with the same inode number watches nothing. */
		if (!err && group.build_hash == name.build_hash)
			err = add_probe(&file, &list->probes[i], schemas);
	}
	if (!err && file.nr_probes)
		err = probe_file_set_group(&file, &name);
	if (!err && file.nr_probes)
		err = probe_set_append(set, &file);
	probe_file_deinit(&file);
	return err;
}

int registered_resources_add(struct probe_set *set, pid_t pid, struct resource_schemas *schemas)
{
	struct mapped_files files;
	struct uprobe_list list;
	int err = tracefs_uprobes_read(&list, false);

	if (err)
		return err;
	err = list.nr ? mapped_files_open(&files, pid) : 0;
	if (!err && list.nr) {
		for (size_t i = 0; i < files.nr && !err; i++)
			err = add_file(set, &files.files[i], &list, schemas);
		mapped_files_deinit(&files);
		if (err)
			diag_error("cannot use the registered probes on resources: %s",
				   strerror(-err));
	}
	uprobe_list_deinit(&list);
	return err;
}
