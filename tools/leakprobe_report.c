/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/leakprobe_report.h"

#include "probes/plan/allocator_plan.h"
#include "probes/plan/file_analysis.h"
#include "probes/tracefs/group_name.h"
#include "probes/tracefs/tracefs_uprobes.h"

#include "common/diag.h"
#include "common/elf/elf_file.h"
#include "common/schema/probe_events.h"
#include "common/schema/resource_schema.h"
#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>

#define MAX_OPEN 64 /* files at a time */

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

/*
 * The file of a group of probes, and what the process that may read it says of it
 * (probes/plan/file_analysis.h).
 */
struct listed_file {
	struct group_name name;
	struct file_question question; /* its probes, which are one after the other */
	enum file_state state;
	size_t answer; /* the number of its answer, if there may be one */
};

struct listed_files {
	struct listed_file *files;
	struct mapped_file *opened; /* of those that are the probes' file, by its inode */
	struct file_question *questions;
	struct file_answer *answers;
	size_t nr, nr_opened, nr_answered; /* answered ones are closed */
};

static void close_answered(struct listed_files *files, size_t end)
{
	while (files->nr_answered < end)
		close(files->opened[files->nr_answered++].fd);
}

static void listed_files_deinit(struct listed_files *files)
{
	close_answered(files, files->nr_opened);
	if (files->answers)
		file_answers_deinit(files->answers, files->nr_opened);
	free(files->files);
	free(files->opened);
	free(files->questions);
	free(files->answers);
}

/* Opens the file, which is not read here. Returns a descriptor or -1. */
static int open_listed(const char *path, struct listed_file *file, struct stat *ret_stat)
{
	int fd = elf_file_open(path, ret_stat);

	if (fd == -ENOENT || fd == -ESRCH || fd == -ENOTDIR)
		file->state = FILE_GONE;
	else if (fd == -EACCES || fd == -EPERM || fd == -EMFILE)
		file->state = FILE_UNREADABLE;
	else if (fd < 0 ||
		 group_name_inode_hash(ret_stat->st_dev, ret_stat->st_ino) != file->name.inode_hash)
		file->state = FILE_REPLACED;
	else
		file->state = FILE_REBUILT; /* until its answer has come */
	if (file->state != FILE_REBUILT && fd >= 0)
		close(fd);
	return file->state == FILE_REBUILT ? fd : -1;
}

static void add_listed(struct listed_files *files, const struct uprobe *probes, size_t nr,
		       const struct group_name *name, bool describes)
{
	struct listed_file *file = &files->files[files->nr++];
	struct mapped_file *opened = &files->opened[files->nr_opened];

	*file = (struct listed_file){.name = *name, .question = {probes, nr}};
	opened->fd = open_listed(probes->path, file, &opened->stat);
	if (opened->fd < 0)
		return;
	opened->path = opened->display = probes->path;
	if (describes)
		files->questions[files->nr_opened] = file->question;
	file->answer = files->nr_opened++;
}

/* Asks about the files that are open, and closes them. Returns 0 or a negative errno, reported. */
static int answer_opened(struct listed_files *files)
{
	size_t from = files->nr_answered;
	int err = file_analysis_answer(&files->opened[from], &files->questions[from],
				       files->nr_opened - from, &files->answers[from]);

	close_answered(files, files->nr_opened);
	return err;
}

static void take_answer(struct listed_file *file, const struct file_answer *answer)
{
	if (answer->is_left_out)
		file->state = FILE_UNREADABLE;
	else if (answer->is_elf && answer->has_build_hash &&
		 answer->build_hash == file->name.build_hash)
		file->state = FILE_UNCHANGED;
}

/*
 * Finds the files that the probes of @list are on, and what is at these if @describes; if not, the
 * files of probes that leakprobe registered. Returns 0 or
 * a negative errno, reported. Release with listed_files_deinit().
 */
static int listed_files_init(struct listed_files *ret, const struct uprobe_list *list,
			     bool describes)
{
	int err = 0;

	*ret = (struct listed_files){
		.files = calloc(list->nr + 1, sizeof(*ret->files)),
		.opened = calloc(list->nr + 1, sizeof(*ret->opened)),
		.questions = calloc(list->nr + 1, sizeof(*ret->questions)),
		.answers = calloc(list->nr + 1, sizeof(*ret->answers)),
	};
	if (!ret->files || !ret->opened || !ret->questions || !ret->answers) {
		diag_error("cannot list the probes: out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0, nr; i < list->nr && !err; i += nr) {
		struct group_name name;

		for (nr = 1; i + nr < list->nr; nr++)
			if (strcmp(list->probes[i + nr].group, list->probes[i].group) != 0)
				break;
		if (group_name_parse(list->probes[i].group, &name) == 0 &&
		    (describes || name.owner == GROUP_OF_LEAKPROBE))
			add_listed(ret, &list->probes[i], nr, &name, describes);
		if (ret->nr_opened - ret->nr_answered == MAX_OPEN)
			err = answer_opened(ret);
	}
	if (!err)
		err = answer_opened(ret);
	for (size_t i = 0; i < ret->nr && !err; i++)
		if (ret->files[i].state == FILE_REBUILT)
			take_answer(&ret->files[i], &ret->answers[ret->files[i].answer]);
	return err;
}

/* The answer on the file that the probes were made for; NULL if it is gone. */
static const struct file_answer *find_answer(const struct listed_files *files,
					     const struct listed_file *file)
{
	return file->state == FILE_UNCHANGED ? &files->answers[file->answer] : NULL;
}

/* Names the function of a probe by its event, if the file does not. */
static void name_by_event(const struct uprobe *probe, char *ret, size_t size)
{
	const struct probe_schema *schema;
	struct resource_event resource;
	enum probe_point point;

	if (probe_schema_parse_event(probe->event, &schema, &point) == 0)
		snprintf(ret, size, "%s", schema->function);
	else if (resource_event_parse(probe->event, &resource) == 0)
		snprintf(ret, size, "%s", resource.function);
	else if (probe_schema_is_mark(probe->event))
		snprintf(ret, size, "LEAK_MARK()");
	else
		snprintf(ret, size, "?");
}

/* @place: NULL if the file that the probe was made for is gone. */
static void print_probe(const struct uprobe *probe, const struct place_answer *place,
			int name_width, int path_width)
{
	struct place_answer shown = {.instruction = {PLACEMENT_UNKNOWN, "?"}};
	int path_len = (int)strlen(probe->path);

	if (place)
		shown = *place;
	if (!shown.function[0])
		name_by_event(probe, shown.function, sizeof(shown.function));
	printf("%s:%-*s  %-20s  ", probe->group, name_width - 1 - (int)strlen(probe->group),
	       probe->event, shown.function);
	diag_print_escaped(stdout, probe->path, " ");
	printf("%*s  0x%-8" PRIx64, path_len < path_width ? path_width - path_len : 0, "",
	       probe->offset);
	print_count(probe->has_hits, probe->hits);
	print_count(probe->has_misses, probe->misses);
	printf("  %-8s  %s\n", placement_class_name(shown.instruction.class),
	       shown.instruction.text);
}

/* Prints the allocator that the probes in the next lines watch, and these. */
static void print_file(const struct listed_file *file, const struct file_answer *answer,
		       int name_width, int path_width)
{
	const struct file_question *question = &file->question;

	printf("# ");
	diag_print_escaped(stdout, question->probes->path, NULL);
	if (file->state == FILE_UNREADABLE)
		puts(": the file cannot be read");
	else if (!answer)
		puts(": the file that the probes were made for is gone");
	else
		printf(": %s\n", answer->allocator[0] ? answer->allocator : "resources");
	for (size_t i = 0; i < question->nr; i++)
		print_probe(&question->probes[i], answer ? &answer->places[i] : NULL, name_width,
			    path_width);
}

int leakprobe_list(void)
{
	struct listed_files files;
	struct uprobe_list list;
	int name_width, path_width;
	int err = tracefs_uprobes_read(&list, true);

	if (err)
		return err;
	err = listed_files_init(&files, &list, true);
	if (!err) {
		measure(&list, &name_width, &path_width);
		printf("%-*s  %-20s  %-*s  %-10s  %12s  %12s  %-8s  %s\n", name_width, "EVENT",
		       "FUNCTION", path_width, "FILE", "OFFSET", "HITS", "MISSES", "CLASS",
		       "INSTRUCTION");
	}
	for (size_t i = 0; i < files.nr && !err; i++)
		print_file(&files.files[i], find_answer(&files, &files.files[i]), name_width,
			   path_width);
	listed_files_deinit(&files);
	uprobe_list_deinit(&list);
	return err;
}

/* Prints one line for the group of probes; returns true if all is well. */
static bool check_group(const struct listed_file *file)
{
	const struct uprobe *probe = file->question.probes;
	static const char *const texts[] = {
		[FILE_UNCHANGED] = "ok",
		[FILE_GONE] = "the file is gone; the probes watch processes that still map it",
		[FILE_REPLACED] = "the file was replaced; the probes watch the old one",
		[FILE_REBUILT] =
			"the file was rebuilt in place; the probes may be at wrong instructions",
		[FILE_UNREADABLE] = "the file cannot be read",
	};
	bool is_of_process = strncmp(probe->path, "/proc/", strlen("/proc/")) == 0;
	enum file_state state = file->state;

	printf("%s: ", probe->group);
	diag_print_escaped(stdout, probe->path, NULL);
	if (state == FILE_GONE && is_of_process)
		puts(": the process of that path is gone; the probes watch processes that still map the file");
	else
		printf(": %s\n", texts[state]);
	return state == FILE_UNCHANGED;
}

static bool is_first_of_group(const struct listed_files *files, size_t at)
{
	const char *group = files->files[at].question.probes->group;

	for (size_t i = 0; i < at; i++)
		if (strcmp(files->files[i].question.probes->group, group) == 0)
			return false;
	return true;
}

static int check_groups(void)
{
	struct listed_files files;
	struct uprobe_list list;
	int nr_wrong = 0, nr_groups = 0;
	int err = tracefs_uprobes_read(&list, false);

	if (err)
		return err;
	err = listed_files_init(&files, &list, false);
	for (size_t i = 0; i < files.nr && !err; i++) {
		if (!is_first_of_group(&files, i))
			continue;
		nr_groups++;
		nr_wrong += !check_group(&files.files[i]);
	}
	listed_files_deinit(&files);
	uprobe_list_deinit(&list);
	if (err)
		return err;
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
