/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/probe_set.h"

#include "probes/x86/code_flow.h"
#include "probes/tracefs/group_name.h"
#include "common/proc/process_namespace.h"
#include "common/proc/process_stat.h"
#include "probes/tracefs/tracefs_uprobes.h"

#include "common/diag.h"
#include "common/interrupted.h"
#include "common/scope.h"

#include <errno.h>

#include <tracefs.h>

#define MAX_RELEASE_WAITS      500 /* of 10 ms */
#define MAX_DEAD_RELEASE_WAITS 20

/*
 * Changes "caller=+0(%sp):x64" to "caller=%sp:x64". When the kernel fetches from memory, it waits
 * for the page, and holds a buffer of the CPU that the probes of other processes need
 * (process_fetch_insn(), kernel/trace/trace_uprobe.c, Linux 6.1 and 6.12). A process that serves
 * its stack itself (userfaultfd) could so freeze the others.
 */
static void avoid_memory(struct probe *probe)
{
	static const char fetched[] = PROBE_FIELD_CALLER "=+0(";
	char *at = strstr(probe->fetch_args, fetched);
	size_t len;

	if (!at)
		return;
	at += strlen(PROBE_FIELD_CALLER "=");
	len = strcspn(at, ")") - strlen("+0(");
	memmove(at, at + strlen("+0("), len);
	at += len;
	memmove(at, at + strlen("+0()"), strlen(at + strlen("+0()")) + 1);
	probe->fetches_caller_at = true;
}

int probe_set_make_own(struct probe_set *set)
{
	struct process_stat status;
	int err = process_stat_read(getpid(), &status);

	if (err) {
		diag_error("cannot read /proc/%d/stat: %s", (int)getpid(), strerror(-err));
		return err;
	}
	for (size_t i = 0; i < set->nr_files; i++) {
		struct group_name name;

		err = group_name_parse(set->files[i].group, &name);
		if (err)
			return err;
		name.owner = GROUP_OF_LEAKREC;
		name.pid = getpid();
		name.pid_namespace = process_namespace_inode();
		name.start_time_ticks = status.start_time_ticks;
		for (size_t j = 0; j < set->files[i].nr_probes; j++)
			avoid_memory(&set->files[i].probes[j]);
		err = probe_file_set_group(&set->files[i], &name);
		if (err) {
			diag_error("cannot name the probes: %s", strerror(-err));
			return err;
		}
	}
	return 0;
}

/*
 * True if @there, an event with @probe's name, records the same. Another version may have placed it
 * elsewhere in the function, at its entry for instance: that is slower, but valid.
 */
static bool is_as_planned(const struct probe *probe, const struct uprobe *there)
{
	if (probe->point == PROBE_EXIT)
		return there->offset == probe->offset && !there->is_return &&
		       strcmp(there->fetch_args, probe->fetch_args) == 0;
	return there->offset - probe->function_offset < CODE_FLOW_MAX_BYTES &&
	       there->is_return == (probe->point == PROBE_RETURN) &&
	       strcmp(there->fetch_args, probe->fetch_args) == 0;
}

/* Returns 0 if @there is on @file; otherwise a negative errno, reported. */
static int check_file(const struct probe_file *file, const struct probe *probe,
		      const struct uprobe *there)
{
	struct uprobe_spec spec = probe_file_spec(file, probe);
	int is_here;

	spec.offset = there->offset;
	is_here = tracefs_uprobe_remove_if_elsewhere(&spec);
	if (is_here == -EBUSY)
		diag_error(
			"cannot remove %s/%s, which is on another file than %s: a recorder uses it; "
			"end that recorder",
			file->group, probe->event, file->display);
	if (is_here)
		return is_here < 0 ? is_here : 0;
	diag_error("removed %s/%s: it was on another file than %s; try again", file->group,
		   probe->event, file->display);
	return -ESTALE;
}

/* Sets the probe's id if it is in @list. Returns 1 if so, 0 if not, or a negative errno. */
static int find_probe(const struct uprobe_list *list, const struct probe_file *file,
		      struct probe *probe)
{
	const struct uprobe *there = uprobe_list_find(list, file->group, probe->event);
	int64_t id;
	int err;

	if (!there || !is_as_planned(probe, there) || uprobe_list_has_others(list, there))
		return 0;
	err = check_file(file, probe, there);
	if (err)
		return err;
	id = tracefs_uprobe_id(file->group, probe->event);
	if (id < 0)
		return (int)id;
	probe->tracefs_id = id;
	probe->offset = there->offset;
	return 1;
}

/* True if all exits of @probe's function were found. */
static bool has_all_exits(const struct probe_file *file, const struct probe *probe)
{
	for (size_t i = 0; i < file->nr_probes; i++)
		if (file->probes[i].point == PROBE_EXIT &&
		    file->probes[i].schema == probe->schema &&
		    file->probes[i].function_offset == probe->function_offset &&
		    file->probes[i].tracefs_id < 0)
			return false;
	return true;
}

/*
 * A leakprobe of another version may have registered the entry of a function, but not all of these
 * exits. Then its entry counts as not registered, too. Returns how many probes that concerns.
 */
static int drop_incomplete(struct probe_file *file)
{
	int nr = 0;

	for (size_t i = 0; i < file->nr_probes; i++) {
		struct probe *probe = &file->probes[i];

		if (probe->point != PROBE_ENTRY || probe->tracefs_id < 0 ||
		    has_all_exits(file, probe))
			continue;
		probe->tracefs_id = -1;
		nr++;
	}
	return nr;
}

int probe_set_find(struct probe_set *set)
{
	struct uprobe_list list;
	int nr = 0, err = tracefs_uprobes_read(&list, false);

	for (size_t i = 0; !err && i < set->nr_files; i++) {
		struct probe_file *file = &set->files[i];

		for (size_t j = 0; !err && j < file->nr_probes; j++) {
			int found = find_probe(&list, file, &file->probes[j]);

			if (found < 0)
				err = found;
			else
				nr += found;
		}
		nr -= drop_incomplete(file);
	}
	uprobe_list_deinit(&list);
	return err ? err : nr;
}

/* Registers one probe, unless tracefs has it as planned. */
static int register_probe(const struct uprobe_list *list, const char *errors_before,
			  const struct probe_file *file, struct probe *probe)
{
	struct uprobe_spec spec = probe_file_spec(file, probe);
	int64_t id;
	int err = find_probe(list, file, probe);

	if (err)
		return err < 0 ? err : 0;
	/* tracefs would add a second place to the event of that name. */
	if (uprobe_list_find(list, file->group, probe->event)) {
		diag_error(
			"cannot add %s/%s: an event of that name records something else; remove it "
			"first: leakprobe del %s",
			file->group, probe->event, file->group);
		return -EEXIST;
	}
	err = tracefs_uprobe_create(&spec, errors_before);
	if (err)
		return err;
	probe->registered_here = true;
	id = tracefs_uprobe_id(file->group, probe->event);
	if (id < 0)
		return (int)id;
	probe->tracefs_id = id;
	return 0;
}

int probe_set_register(struct probe_set *set)
{
	_cleanup_free_ char *errors_before = NULL;
	struct uprobe_list list;
	int err = tracefs_uprobes_read(&list, false);

	if (err)
		return err;
	errors_before = tracefs_error_all(NULL);
	for (size_t i = 0; !err && i < set->nr_files; i++) {
		struct probe_file *file = &set->files[i];

		for (size_t j = 0; !err && j < file->nr_probes; j++)
			err = is_interrupted() ? -EINTR
					       : register_probe(&list, errors_before, file,
								&file->probes[j]);
	}
	uprobe_list_deinit(&list);
	if (err && err != -EINTR)
		probe_set_unregister(set);
	return err;
}

/*
 * Removes an event whose users have closed it. The kernel releases an event a moment after the last
 * close() if a task that inherited it is exiting. No interface signals that, so this polls, at most
 * *@nr_waits times for all events together.
 */
static int destroy_released(const char *group, const char *event, int *nr_waits)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	int err = tracefs_uprobe_destroy(group, event);

	for (; err == -EBUSY && *nr_waits > 0; --*nr_waits) {
		nanosleep(&pause, NULL);
		err = tracefs_uprobe_destroy(group, event);
	}
	return err;
}

int probe_set_unregister(struct probe_set *set)
{
	int first_err = 0, nr_waits = MAX_RELEASE_WAITS;

	for (size_t i = set->nr_files; i-- > 0;) {
		struct probe_file *file = &set->files[i];

		for (size_t j = file->nr_probes; j-- > 0;) {
			struct probe *probe = &file->probes[j];
			int err;

			if (!probe->registered_here)
				continue;
			err = destroy_released(file->group, probe->event, &nr_waits);
			if (err == -EBUSY)
				diag_error("cannot remove %s/%s: another recorder uses it",
					   file->group, probe->event);
			if (err && !first_err)
				first_err = err;
			if (err)
				continue;
			probe->registered_here = false;
			probe->tracefs_id = -1;
		}
	}
	return first_err;
}

void probe_set_deinit(struct probe_set *set)
{
	for (size_t i = 0; i < set->nr_files; i++)
		probe_file_deinit(&set->files[i]);
	free(set->files);
	*set = (struct probe_set){0};
}

int probe_set_append(struct probe_set *set, struct probe_file *file)
{
	struct probe_file *grown = reallocarray(set->files, set->nr_files + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	set->files = grown;
	set->files[set->nr_files++] = *file;
	*file = (struct probe_file){.fd = -1};
	return 0;
}

static bool has_file(const struct probe_set *set, const struct probe_file *file)
{
	for (size_t i = 0; i < set->nr_files; i++)
		if (strcmp(set->files[i].group, file->group) == 0 &&
		    set->files[i].has_resources == file->has_resources &&
		    set->files[i].nr_probes == file->nr_probes &&
		    strcmp(set->files[i].probes[0].event, file->probes[0].event) == 0)
			return true;
	return false;
}

int probe_set_merge(struct probe_set *to, struct probe_set *from)
{
	struct probe_file *grown =
		reallocarray(to->files, to->nr_files + from->nr_files + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	to->files = grown;
	for (size_t i = 0; i < from->nr_files; i++) {
		if (has_file(to, &from->files[i]))
			probe_file_deinit(&from->files[i]);
		else
			to->files[to->nr_files++] = from->files[i];
	}
	from->nr_files = 0;
	probe_set_deinit(from);
	return 0;
}

/* True if @group belongs to a leakrec that has ended. */
static bool is_orphaned(const char *group)
{
	struct process_stat status;
	struct group_name name;
	int err;

	if (group_name_parse(group, &name) || name.owner != GROUP_OF_LEAKREC)
		return false;
	if (name.pid_namespace)
		return !process_namespace_may_have(name.pid_namespace, name.pid);
	err = process_stat_read(name.pid, &status);
	if (err)
		return err == -ESRCH;
	return process_stat_is_dead(&status) || status.start_time_ticks != name.start_time_ticks;
}

int probe_set_reap(void)
{
	struct uprobe_list list;
	int nr = 0, nr_waits = MAX_DEAD_RELEASE_WAITS, err;

	/* Elsewhere, it is not known who lives. */
	if (!process_namespace_is_initial())
		return 0;
	err = tracefs_uprobes_read(&list, false);
	for (size_t i = 0; !err && i < list.nr; i++) {
		int destroyed;

		if (!is_orphaned(list.probes[i].group) ||
		    uprobe_list_has_others(&list, &list.probes[i]))
			continue;
		destroyed = destroy_released(list.probes[i].group, list.probes[i].event, &nr_waits);
		if (destroyed == 0)
			nr++;
		else if (destroyed != -EBUSY)
			err = destroyed;
	}
	uprobe_list_deinit(&list);
	return err ? err : nr;
}
