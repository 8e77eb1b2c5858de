/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakprobe: adds, lists, deletes and checks the uprobes on allocators. */
#include "probes/tracefs/group_name.h"
#include "tools/leakprobe_report.h"
#include "tools/pid_list.h"
#include "probes/plan/allocator_plan.h"
#include "probes/resources/registered_resources.h"
#include "common/proc/process_namespace.h"
#include "probes/resources/resource_plan.h"
#include "probes/tracefs/tracefs_uprobes.h"

#include "common/diag.h"
#include "common/options.h"
#include "common/quantity.h"
#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>

struct options {
	struct pid_list pids;
	const char *lib, *exe;
	bool mismatch, dry_run, all, no_heap;
	struct resource_specs resources;
};

/* The commands, as bits: an option's groups are those that take it. */
enum {
	COMMAND_ADD = 1 << 0,
	COMMAND_LIST = 1 << 1,
	COMMAND_DEL = 1 << 2,
	COMMAND_CHECK = 1 << 3,
};

/* A command's status is one of enum diag_exit. */
struct command {
	const char *name;
	int (*run)(struct options *options, char **names);
	unsigned int group;
	bool takes_names;
};

static int usage_error(const char *what)
{
	diag_error("%s; see leakprobe --help", what);
	return DIAG_EXIT_USAGE;
}

/* Removes the probes that recorders which no longer run have left, and reports their number. */
static int remove_abandoned(void)
{
	int nr = probe_set_reap();

	if (nr > 0)
		diag_note("removed %d probe%s that a leakrec which no longer runs had left", nr,
			  quantity_plural(nr));
	return nr < 0 ? nr : 0;
}

/* @pid: 0 for the file of --lib or --exe. */
static int plan(struct probe_set *set, struct options *options, pid_t pid)
{
	int err;

	*set = (struct probe_set){0};
	if (!pid)
		return allocator_plan_file(set, options->lib ? options->lib : options->exe,
					   options->mismatch);
	err = options->no_heap ? 0 : allocator_plan_pid(set, pid, options->mismatch);
	if (err)
		return err;
	err = resource_plan_pid(set, pid, &options->resources);
	if (err)
		probe_set_deinit(set);
	return err;
}

/* The points where leakrec's BPF programs record a function by one trap, without tracefs. */
static void print_points(const struct probe *ret)
{
	for (size_t i = 0; i < ret->nr_points; i++) {
		const struct single_trap_point *point = &ret->points[i];

		printf("# leakrec: %s+0x%" PRIx64 " %s: %s\n", ret->symbol, point->offset,
		       placement_class_name(point->instruction.class), point->instruction.text);
	}
}

/* tracefs ignores text after '#', so the lines can be written there as they are. */
static void print_definitions(const struct probe_set *set)
{
	for (size_t i = 0; i < set->nr_files; i++) {
		printf("# ");
		diag_print_escaped(stdout, set->files[i].display, NULL);
		printf(": %s\n", set->files[i].allocator);
		for (size_t j = 0; j < set->files[i].nr_probes; j++) {
			const struct probe *probe = &set->files[i].probes[j];

			bool is_before = probe->offset < probe->function_offset;

			/* An exit may be before the function: code of it may be anywhere in the
			 * file. */
			printf("%s # %s%c0x%" PRIx64 " %s: %s\n", probe->definition, probe->symbol,
			       is_before ? '-' : '+',
			       is_before ? probe->function_offset - probe->offset
					 : probe->offset - probe->function_offset,
			       placement_class_name(probe->instruction.class),
			       probe->instruction.text);
			print_points(probe);
		}
	}
}

/* Ends the line of @file: its path as @pid sees it and, if that differs, as seen from here. */
static void print_file_path(const struct probe_file *file, pid_t pid)
{
	char process[PROCESS_NAME_MAX];

	diag_print_escaped(stdout, file->display, NULL);
	if (pid && process_namespace_format_name(pid, process))
		printf(" of %s", process);
	if (pid && strcmp(file->path, file->display) != 0) {
		fputs(", here ", stdout);
		diag_print_escaped(stdout, file->path, NULL);
	}
	printf(": %s\n", file->allocator);
}

/* @pid: the process that has mapped the files, or 0. */
static void print_added(const struct probe_set *set, pid_t pid)
{
	for (size_t i = 0; i < set->nr_files; i++) {
		const struct probe_file *file = &set->files[i];
		size_t nr_added = 0;

		for (size_t j = 0; j < file->nr_probes; j++)
			nr_added += file->probes[j].registered_here;
		printf("%s: ", file->group);
		if (nr_added == file->nr_probes)
			printf("added %zu probe%s to ", nr_added, quantity_plural(nr_added));
		else if (nr_added > 0)
			printf("added %zu of %zu probes, the others existed, to ", nr_added,
			       file->nr_probes);
		else
			printf("all %zu probes existed already, on ", file->nr_probes);
		print_file_path(file, pid);
	}
}

/* @pid: as of plan(). */
static int add(struct options *options, pid_t pid)
{
	struct probe_set set;
	int err = plan(&set, options, pid);

	if (err)
		return err;
	if (options->dry_run)
		print_definitions(&set);
	else
		err = probe_set_register(&set);
	if (!err && !options->dry_run)
		print_added(&set, pid);
	probe_set_deinit(&set);
	return err;
}

static int command_add(struct options *options, char **names)
{
	int nr_targets = (options->pids.nr > 0) + (options->lib != NULL) + (options->exe != NULL);
	int err = 0;

	if (nr_targets != 1)
		return usage_error("add needs one of --pid, --lib and --exe");
	if (options->resources.nr && !options->pids.nr)
		return usage_error("--pair and --ref go with --pid");
	if (options->no_heap && !options->resources.nr)
		return usage_error("--no-heap goes with --pair or --ref");
	if (!options->dry_run && remove_abandoned())
		return DIAG_EXIT_FAILED;
	if (!options->pids.nr)
		err = add(options, 0);
	for (size_t i = 0; i < options->pids.nr; i++)
		if (add(options, options->pids.pids[i]))
			err = -EIO;
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}

static int command_list(struct options *options, char **names)
{
	return remove_abandoned() || leakprobe_list() ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}

static int command_check(struct options *options, char **names)
{
	return remove_abandoned() || leakprobe_check(&options->pids) ? DIAG_EXIT_FAILED
								     : DIAG_EXIT_OK;
}

/* True if @name (GROUP, GROUP:EVENT or GROUP/EVENT) matches @probe. */
static bool name_matches(const char *name, const struct uprobe *probe)
{
	size_t group_len = strlen(probe->group);

	if (strncmp(name, probe->group, group_len) != 0)
		return false;
	if (name[group_len] == '\0')
		return true;
	return (name[group_len] == ':' || name[group_len] == '/') &&
	       strcmp(name + group_len + 1, probe->event) == 0;
}

/* Reports the events of one group that could not be removed, in one line. */
static void report_busy(const struct uprobe *first, size_t nr)
{
	if (nr == 1)
		diag_error("cannot remove %s:%s: a recorder still uses it; end that first",
			   first->group, first->event);
	else if (nr > 1)
		diag_error("cannot remove %s:%s and %zu more: a recorder still uses them; end that "
			   "first",
			   first->group, first->event, nr - 1);
}

/* An earlier version registered it, and the kernel does not see whether it is in use. */
static int report_several_places(const struct uprobe *probe)
{
	diag_error("cannot remove %s:%s safely: it has several places; end all recorders, then: "
		   "echo '-:%s/%s' >>%s/uprobe_events",
		   probe->group, probe->event, probe->group, probe->event, probe_tracefs_dir());
	return -EEXIST;
}

/* Removes leakprobe's probes for which @matches is true. Tries all, returns the first error. */
static int delete_matching(const struct uprobe_list *list,
			   bool (*matches)(const struct uprobe *probe,
					   const struct group_name *group, const void *context),
			   const void *context, size_t *nr_deleted)
{
	const struct uprobe *busy = NULL;
	size_t nr_busy = 0;
	int first_err = 0;

	for (size_t i = 0; i < list->nr; i++) {
		const struct uprobe *probe = &list->probes[i];
		struct group_name group;
		int err;

		if (group_name_parse(probe->group, &group) || group.owner != GROUP_OF_LEAKPROBE ||
		    !matches(probe, &group, context))
			continue;
		err = uprobe_list_has_others(list, probe)
			      ? report_several_places(probe)
			      : tracefs_uprobe_destroy(probe->group, probe->event);
		*nr_deleted += !err;
		if (err && !first_err)
			first_err = err;
		if (err != -EBUSY)
			continue;
		if (!busy || strcmp(busy->group, probe->group) != 0) {
			report_busy(busy, nr_busy);
			busy = probe;
			nr_busy = 0;
		}
		nr_busy++;
	}
	report_busy(busy, nr_busy);
	return first_err;
}

static bool matches_all(const struct uprobe *probe, const struct group_name *group,
			const void *context)
{
	return true;
}

static bool matches_names(const struct uprobe *probe, const struct group_name *group,
			  const void *context)
{
	for (char *const *name = context; *name; name++)
		if (name_matches(*name, probe))
			return true;
	return false;
}

/* Any build of the same file: probes from before it was rebuilt are removed, too. */
static bool matches_set(const struct uprobe *probe, const struct group_name *group,
			const void *context)
{
	const struct probe_set *set = context;

	for (size_t i = 0; i < set->nr_files; i++) {
		struct group_name planned;

		if (group_name_parse(set->files[i].group, &planned) == 0 &&
		    planned.inode_hash == group->inode_hash)
			return true;
	}
	return false;
}

/* Returns 0, or -ENOENT, reported, if @name matches no probe of leakprobe's. */
static int check_name(const struct uprobe_list *list, const char *name)
{
	for (size_t i = 0; i < list->nr; i++) {
		struct group_name group;

		if (!name_matches(name, &list->probes[i]))
			continue;
		if (group_name_parse(list->probes[i].group, &group))
			diag_error("%s was not made by leakprobe; it stays", name);
		else if (group.owner == GROUP_OF_LEAKREC)
			diag_error(
				"%s belongs to leakrec, process %d%s, which removes it when it ends",
				name, (int)group.pid, group.pid_namespace ? " in a container" : "");
		else
			return 0;
		return -ENOENT;
	}
	diag_error("there is no probe %s; leakprobe list shows all probes", name);
	return -ENOENT;
}

static int delete_names(const struct uprobe_list *list, char **names, size_t *nr_deleted)
{
	int first_err = 0, err;

	for (char **name = names; *name; name++) {
		err = check_name(list, *name);
		if (err && !first_err)
			first_err = err;
	}
	err = delete_matching(list, matches_names, names, nr_deleted);
	return first_err ? first_err : err;
}

static int delete_of_process(const struct uprobe_list *list, pid_t pid, size_t *nr_deleted)
{
	struct resource_schemas schemas = {0};
	struct probe_set set;
	/* true: probes that --mismatch added are removed, too. */
	int err = allocator_plan_pid(&set, pid, true);

	if (err)
		return err;
	err = registered_resources_add(&set, pid, &schemas);
	if (!err)
		err = delete_matching(list, matches_set, &set, nr_deleted);
	probe_set_deinit(&set);
	resource_schemas_deinit(&schemas);
	return err;
}

static int command_del(struct options *options, char **names)
{
	struct uprobe_list list;
	size_t nr_deleted = 0;
	int err = 0;

	if (options->all + (options->pids.nr > 0) + (*names != NULL) != 1)
		return usage_error("del needs one of --all, --pid and names");
	if (remove_abandoned() || tracefs_uprobes_read(&list, false))
		return DIAG_EXIT_FAILED;
	if (options->all)
		err = delete_matching(&list, matches_all, NULL, &nr_deleted);
	else if (*names)
		err = delete_names(&list, names, &nr_deleted);
	for (size_t i = 0; i < options->pids.nr; i++)
		if (delete_of_process(&list, options->pids.pids[i], &nr_deleted))
			err = -EIO;
	uprobe_list_deinit(&list);
	if (!err || nr_deleted > 0)
		printf("removed %zu probe%s\n", nr_deleted, quantity_plural(nr_deleted));
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}

static const struct command commands[] = {
	{"add", command_add, COMMAND_ADD, false},
	{"list", command_list, COMMAND_LIST, false},
	{"del", command_del, COMMAND_DEL, true},
	{"check", command_check, COMMAND_CHECK, false},
};

static int parse_pids(void *context, const struct option_row *row, const char *text)
{
	struct options *options = context;
	int err = pid_list_parse(&options->pids, text);

	return err == -EINVAL ? options_reject(row, text) : err;
}

/* --pair and --ref */
static int parse_resource(void *context, const struct option_row *row, const char *text)
{
	struct options *options = context;

	return resource_specs_add(&options->resources,
				  strcmp(row->name, "ref") == 0 ? "--ref" : "--pair", text);
}

#define FIELD(field) OPTION_FIELD(struct options, field)

static const struct option_row rows[] = {
	{"pid", 'p', OPTION_PARSED, "PID[,PID...]",
	 "the allocators that these processes have mapped", .parse = parse_pids,
	 .takes = "process ids, separated by commas", .completes = OPTION_COMPLETES_PIDS,
	 .groups = COMMAND_ADD | COMMAND_DEL | COMMAND_CHECK},
	{"lib", 0, OPTION_TEXT, "PATH", "the library at PATH", FIELD(lib),
	 .completes = OPTION_COMPLETES_FILES, .groups = COMMAND_ADD},
	{"exe", 0, OPTION_TEXT, "PATH",
	 "the program at PATH: its own allocator, or the libc it will load", FIELD(exe),
	 .completes = OPTION_COMPLETES_FILES, .groups = COMMAND_ADD},
	{"pair", 0, OPTION_PARSED, "'GIVING / TAKING'",
	 "what other functions give and take, too, in these processes, as in "
	 "'fopen|fdopen:ret / fclose:arg1' (docs/resources.md)",
	 .parse = parse_resource, .groups = COMMAND_ADD},
	{"ref", 0, OPTION_PARSED, "'UP / DOWN'",
	 "references to objects, too, as in 'g_object_ref:arg1 / g_object_unref:arg1'",
	 .parse = parse_resource, .groups = COMMAND_ADD},
	{"no-heap", 0, OPTION_FLAG, .help = "only what --pair and --ref say, no allocators",
	 FIELD(no_heap), .groups = COMMAND_ADD},
	{"mismatch", 0, OPTION_FLAG,
	 .help = "C++'s operators new and delete, too, also where they call malloc: leakparse then "
		 "reports blocks that are released by the wrong function",
	 FIELD(mismatch), .groups = COMMAND_ADD},
	{"dry-run", 0, OPTION_FLAG, .help = "print the tracefs definitions, register nothing",
	 FIELD(dry_run), .groups = COMMAND_ADD},
	{"all", 0, OPTION_FLAG, .help = "all probes that leakprobe added", FIELD(all),
	 .groups = COMMAND_DEL},
};

static const struct option_table table = {
	.tool = "leakprobe",
	.synopsis =
		"leakprobe add --pid PID[,PID...] | --lib PATH | --exe PATH [--mismatch] [--dry-run]\n"
		"leakprobe add --pid PID[,PID...] [--no-heap] [--pair 'GIVING / TAKING']... [--ref 'UP / DOWN']...\n"
		"leakprobe list\n"
		"leakprobe del --all | --pid PID[,PID...] | NAME...\n"
		"leakprobe check [--pid PID[,PID...]]",
	.about =
		"Manages the uprobes on the functions that allocate and free memory: add registers "
		"probes on an allocator's functions; list prints the probes, with their hits; del "
		"removes probes that leakprobe added; check prints which probes watch a file that "
		"has changed since, and which of a process's allocators have none.",
	.notes = "NAME is GROUP, GROUP:EVENT or GROUP/EVENT, as `leakprobe list` prints them.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* A failed write is known at the latest when the buffer is flushed. */
static int finish_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	diag_output_failed("the output", errno);
	return status ? status : DIAG_EXIT_FAILED;
}

static int run(int argc, char **argv, struct options *options)
{
	const struct option_row *row;
	const struct command *command;
	struct option_result result;
	int err = options_parse(&table, argc, argv, options, &result);

	/* finish_output() flushes what --help printed. */
	if (err)
		return err == 1 ? DIAG_EXIT_OK : options_exit_status(err);
	if (!result.nr_operands)
		return usage_error("no command given");
	command = find_command(result.operands[0]);
	if (!command) {
		diag_error("there is no command %s; see leakprobe --help", result.operands[0]);
		return DIAG_EXIT_USAGE;
	}
	row = options_given_outside(&table, &result, command->group);
	if (row) {
		diag_error("%s does not take --%s; see leakprobe --help", command->name, row->name);
		return DIAG_EXIT_USAGE;
	}
	if (result.nr_operands > 1 && !command->takes_names) {
		diag_error("%s takes no argument %s; see leakprobe --help", command->name,
			   result.operands[1]);
		return DIAG_EXIT_USAGE;
	}
	return command->run(options, result.operands + 1);
}

int main(int argc, char **argv)
{
	struct options options = {0};
	int status;

	diag_begin("leakprobe");
	/* A closed pipe, or a limit on the size of files, is a write error, which is reported. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	status = run(argc, argv, &options);
	resource_specs_deinit(&options.resources);
	pid_list_deinit(&options.pids);
	return finish_output(status);
}
