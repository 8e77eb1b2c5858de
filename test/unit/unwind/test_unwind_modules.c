/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names the stacks of a program built in each way that matters (PIE and not, static, stripped, with
 * a separate debug file, ...), and checks that no names come from a file that is not the recorded
 * one.
 */
#include "unwind/modules/address_space.h"
#include "unwind/modules/module.h"
#include "unwind/stacks/stack_store.h"

#include "common/elf/elf_file.h"
#include "common/scope.h"
#include "test/unit/unwind/scratch_dir.h"
#include "unwind/modules/module_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Prints its executable mappings, then its own callchain. Line numbers matter: see frames[]. */
static const char program[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <unwind.h>\n"
	"#define F(n, next) __attribute__((noinline, noipa)) static int f_##n(void) { int r = next(); __asm__ "
	"volatile(\"\"); return r + n; }\n"
	"static unsigned long chain[64]; static int nr;\n"
	"static _Unwind_Reason_Code take(struct _Unwind_Context *c, void *u) { if (nr < 64) chain[nr++] = "
	"_Unwind_GetIP(c); return _URC_NO_REASON; }\n"
	"static __attribute__((noinline, noipa, noreturn)) void report(void) { /* line 7 */\n"
	"	_Unwind_Backtrace(take, 0); /* line 8 */\n"
	"	char line[4096];\n"
	"	FILE *maps = fopen(\"/proc/self/maps\", \"r\");\n"
	"	while (fgets(line, sizeof(line), maps)) fputs(line, stdout);\n"
	"	for (int i = 0; i < nr; i++) printf(\"frame %lx\\n\", chain[i]);\n"
	"	exit(0);\n"
	"}\n"
	"static __attribute__((noinline, noipa, noreturn)) void ends_with_a_call(void) { report(); } /* line 15 */\n"
	"int mangled(void) __asm__(\"_ZN3app5LayerILi1EE2goEm\");\n"
	"__attribute__((noinline, noipa)) int mangled(void) { ends_with_a_call(); } /* line 17 */\n"
	"F(2, mangled)\n" /* line 18 */
	"F(3, f_2)\n"
	"F(4, f_3)\n"
	"__attribute__((noinline, noipa)) int exported(void) { int r = f_4(); __asm__ volatile(\"\"); return r; }\n"
	"F(6, exported)\n" /* line 22 */
	"F(7, f_6)\n"
	"int main(void) { int r = f_7(); __asm__ volatile(\"\"); return r; }\n";

static const struct {
	const char *function;
	int line;
	bool exported; /* with -rdynamic, also a dynamic symbol */
} frames[] = {
	{"report", 8, false},
	{"ends_with_a_call", 15, false},
	{"app::Layer<1>::go", 17, true},
	{"f_2", 18, false},
	{"f_3", 19, false},
	{"f_4", 20, false},
	{"exported", 21, true},
	{"f_6", 22, false},
	{"f_7", 23, false},
	{"main", 24, true},
};

#define BUILD_ID_FLAG "-Wl,--build-id=0x0102030405060708090a0b0c0d0e0f1011121314"
static const uint8_t build_id[BUILD_ID_MAX] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
					       11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

/* The output of a run of the program. */
struct run {
	char path[256];
	uint64_t start[64], end[64], file_offset[64]; /* the executable mappings of its file */
	size_t nr_mappings;
	uint64_t chain[64];
	size_t nr_chain;
};

/* Compiles the program to @name in the scratch directory, with up to three more flags. */
static void build(const char *name, const char *flag1, const char *flag2, const char *flag3)
{
	RUN("cc", "-g", "-o", name, flag1, flag2, flag3, "-w", "-funwind-tables",
	    "-fno-optimize-sibling-calls", BUILD_ID_FLAG, "program.c");
}

/* Runs the program and parses its output. */
static void run_program(const char *name, struct run *run)
{
	_cleanup_fclose_ FILE *output = NULL;
	const char *argv[] = {in_dir(name), NULL};
	char line[4096], path[256], protection[8];
	uint64_t start, end, offset, address;

	*run = (struct run){.nr_chain = 0};
	snprintf(run->path, sizeof(run->path), "%s", argv[0]);
	run_command(argv, in_dir("output"));
	output = fopen(in_dir("output"), "re");
	assert_non_null(output);
	while (fgets(line, sizeof(line), output)) {
		if (sscanf(line, "frame %" SCNx64, &address) == 1 &&
		    run->nr_chain < ARRAY_SIZE(run->chain))
			run->chain[run->nr_chain++] = address;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255s", &start,
			   &end, protection, &offset, path) != 5 ||
		    protection[2] != 'x' || strcmp(path, run->path) != 0 ||
		    run->nr_mappings == ARRAY_SIZE(run->start))
			continue;
		run->start[run->nr_mappings] = start;
		run->end[run->nr_mappings] = end;
		run->file_offset[run->nr_mappings++] = offset;
	}
	assert_true(run->nr_mappings > 0);
	assert_true(run->nr_chain >= ARRAY_SIZE(frames));
	run->chain[0]--; /* in the call: a callchain begins with an instruction */
}

/* Feeds the run's mappings as those of process @pid, from a file called @path, and its stack. */
static uint32_t feed(struct stack_store *store, const struct run *run, pid_t pid, const char *path,
		     const uint8_t *recorded_build_id)
{
	uint32_t id = STACK_NONE;

	for (size_t i = 0; i < run->nr_mappings; i++) {
		struct stack_mapping mapping = {
			.pid = pid,
			.start = run->start[i],
			.len = run->end[i] - run->start[i],
			.file_offset = run->file_offset[i],
			.path = path,
		};

		if (recorded_build_id) {
			memcpy(mapping.build_id, recorded_build_id, BUILD_ID_MAX);
			mapping.build_id_size = BUILD_ID_MAX;
		}
		assert_int_equal(stack_store_map(store, &mapping), 0);
	}
	assert_int_equal(stack_store_add_callchain(store, pid, run->chain, run->nr_chain, &id), 0);
	return id;
}

enum expected {
	NAMES_AND_LINES,
	NAMES,
	EXPORTED_NAMES,
	NO_NAMES,
};

static void assert_frames(struct stack_store *store, uint32_t id, const char *path,
			  enum expected expected)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		struct stack_frame frame;

		assert_int_equal(stack_store_frame(store, id, i, &frame), 0);
		assert_non_null(frame.module);
		assert_string_equal(frame.module, path);
		if (expected == NO_NAMES || (expected == EXPORTED_NAMES && !frames[i].exported)) {
			assert_null(frame.function);
		} else {
			assert_non_null(frame.function);
			assert_string_equal(frame.function, frames[i].function);
			assert_in_range(frame.function_offset, 1, 200);
		}
		if (expected == NAMES_AND_LINES) {
			assert_non_null(frame.file);
			assert_non_null(strstr(frame.file, "program.c"));
			assert_int_equal(frame.line, frames[i].line);
		} else {
			assert_null(frame.file);
		}
	}
}

static void check(const struct run *run, pid_t pid, const char *path, const char *symfs,
		  const uint8_t *recorded_build_id, enum expected expected)
{
	struct stack_store_options options = {.symfs = symfs};
	struct stack_store *store;

	for (int i = 0; i < 2; i++) {
		uint32_t id;

		options.expect_names = i == 1;
		assert_int_equal(stack_store_create(&options, &store), 0);
		id = feed(store, run, pid, path, recorded_build_id);
		assert_int_equal(stack_store_begin_naming(store), 0);
		assert_frames(store, id, path, expected);
		stack_store_destroy(store);
	}
}

/* Builds, runs and names. */
static void check_build(const char *flag1, const char *flag2, enum expected expected)
{
	struct run run;

	build("variant", flag1, flag2, "-pipe");
	run_program("variant", &run);
	check(&run, 1, run.path, NULL, NULL, expected);
	check(&run, 1, run.path, NULL, build_id, expected);
}

static void position_independent(void **state)
{
	check_build("-O0", "-pie", NAMES_AND_LINES);
	check_build("-O2", "-pie", NAMES_AND_LINES);
}

static void position_dependent(void **state)
{
	check_build("-O2", "-no-pie", NAMES_AND_LINES);
}

static void statically_linked(void **state)
{
	check_build("-O1", "-static", NAMES_AND_LINES);
}

static void code_and_data_in_one_segment(void **state)
{
	check_build("-O1", "-Wl,-z,noseparate-code", NAMES_AND_LINES);
}

static void without_debug_information(void **state)
{
	check_build("-O1", "-g0", NAMES);
}

/* Only exported functions have names. What lies between them does not belong to a neighbour. */
static void stripped(void **state)
{
	check_build("-s", "-O1", NO_NAMES);
	check_build("-s", "-rdynamic", EXPORTED_NAMES);
}

/* The ELF address that is shown without a name is the one that addr2line takes. */
static void offsets_are_elf_addresses(void **state)
{
	struct stack_frame named, unnamed;
	struct stack_store *store;
	struct run run;

	build("whole", "-O1", "-no-pie", "-pipe");
	run_program("whole", &run);
	RUN("strip", "-s", "-o", "stripped", "whole");
	assert_int_equal(stack_store_create(NULL, &store), 0);
	uint32_t whole = feed(store, &run, 1, run.path, NULL);
	uint32_t bare = feed(store, &run, 2, in_dir("stripped"), NULL);

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		assert_int_equal(stack_store_frame(store, whole, i, &named), 0);
		assert_int_equal(stack_store_frame(store, bare, i, &unnamed), 0);
		assert_null(unnamed.function);
		assert_int_equal(named.module_offset, run.chain[i]);
		assert_int_equal(unnamed.module_offset, run.chain[i]);
	}
	stack_store_destroy(store);
}

static void debug_file_apart(void **state)
{
	struct run run;

	build("apart", "-O1", "-pie", "-pipe");
	RUN("objcopy", "--only-keep-debug", "apart", "apart.debug");
	RUN("objcopy", "--strip-all", "--add-gnu-debuglink=apart.debug", "apart");
	run_program("apart", &run);
	check(&run, 1, run.path, NULL, NULL, NAMES_AND_LINES);

	/* Names that were expected but are not needed. */
	const struct stack_store_options options = {.expect_names = true};
	struct stack_store *store;

	assert_int_equal(stack_store_create(&options, &store), 0);
	feed(store, &run, 1, run.path, build_id);
	assert_int_equal(stack_store_begin_naming(store), 0);
	stack_store_destroy(store);

	/* It must not ask servers, and must not change the variable. */
	setenv("DEBUGINFOD_URLS", "http://192.0.2.1/", 1);
	check(&run, 1, run.path, NULL, NULL, NAMES_AND_LINES);
	assert_int_equal(rename(in_dir("apart.debug"), in_dir("gone")), 0);
	check(&run, 1, run.path, NULL, NULL, NO_NAMES);
	assert_string_equal(getenv("DEBUGINFOD_URLS"), "http://192.0.2.1/");
	unsetenv("DEBUGINFOD_URLS");

	/* SYMFS/usr/lib/debug/.build-id/01/0203...debug */
	RUN("mkdir", "-p", "symfs/usr/lib/debug/.build-id/01");
	RUN("mv", "gone",
	    "symfs/usr/lib/debug/.build-id/01/02030405060708090a0b0c0d0e0f1011121314.debug");
	check(&run, 1, run.path, in_dir("symfs"), build_id, NAMES_AND_LINES);
}

/* Files that are opened ahead, with one that is not needed, and one that comes too late. */
static void several_files_expected(void **state)
{
	const struct stack_store_options options = {.expect_names = true};
	const char *const names[] = {"first", "unwanted", "last"};
	uint32_t ids[ARRAY_SIZE(names)];
	struct run runs[ARRAY_SIZE(names)];
	struct stack_store *store;

	assert_int_equal(stack_store_create(&options, &store), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		build(names[i], "-O1", "-pie", "-pipe");
		run_program(names[i], &runs[i]);
		if (i == 2)
			assert_int_equal(stack_store_begin_naming(store), 0);
		ids[i] = feed(store, &runs[i], (pid_t)i + 1, runs[i].path, build_id);
	}
	assert_frames(store, ids[2], runs[2].path, NAMES_AND_LINES);
	assert_frames(store, ids[0], runs[0].path, NAMES_AND_LINES);
	stack_store_destroy(store);
}

static void other_build_ids_name_nothing(void **state)
{
	uint8_t other[BUILD_ID_MAX];
	struct stack_store *store;
	struct run run;

	memcpy(other, build_id, sizeof(other));
	other[19]++;
	build("variant", "-O1", "-pie", "-pipe");
	run_program("variant", &run);
	check(&run, 1, run.path, NULL, other, NO_NAMES);

	/* The recording's header may give the build-id before or after the mapping. */
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_set_build_id(store, run.path, other, sizeof(other)), 0);
	assert_frames(store, feed(store, &run, 1, run.path, NULL), run.path, NO_NAMES);
	stack_store_destroy(store);

	assert_int_equal(stack_store_create(NULL, &store), 0);
	uint32_t id = feed(store, &run, 1, run.path, NULL);
	assert_int_equal(stack_store_set_build_id(store, run.path, other, sizeof(other)), 0);
	assert_frames(store, id, run.path, NO_NAMES);
	stack_store_destroy(store);

	/* A file without a build-id is not a recorded file that has one. */
	RUN("objcopy", "--remove-section=.note.gnu.build-id", "variant", "anonymous");
	check(&run, 1, in_dir("anonymous"), NULL, build_id, NO_NAMES);
	check(&run, 1, in_dir("anonymous"), NULL, NULL, NAMES_AND_LINES);
}

static void deleted_files_need_a_build_id(void **state)
{
	char path[300];
	struct run run;

	build("variant", "-O1", "-pie", "-pipe");
	run_program("variant", &run);
	snprintf(path, sizeof(path), "%s (deleted)", run.path);
	check(&run, 1, path, NULL, NULL, NO_NAMES);
	check(&run, 1, path, NULL, build_id, NAMES_AND_LINES);
}

static void symfs_comes_first(void **state)
{
	struct run run;

	build("variant", "-O1", "-pie", "-pipe");
	run_program("variant", &run);
	RUN("mkdir", "-p", "root/app");
	RUN("cp", "variant", "root/app/program");
	check(&run, 1, "/app/program", in_dir("root"), NULL, NAMES_AND_LINES);
	check(&run, 1, "/app/program", NULL, NULL, NO_NAMES);
	/* Neither ".." nor a link leads outside. */
	check(&run, 1, "/../variant", in_dir("root"), NULL, NO_NAMES);
	RUN("ln", "-s", "../../variant", "root/app/link");
	check(&run, 1, "/app/link", in_dir("root"), NULL, NO_NAMES);
	RUN("ln", "-s", "/app/program", "root/inside");
	check(&run, 1, "/inside", in_dir("root"), NULL, NAMES_AND_LINES);
	/* If it is not there, its own path counts. */
	check(&run, 1, run.path, in_dir("root"), NULL, NAMES_AND_LINES);
}

/* A process whose root is the scratch directory. Returns its pid; 0: not permitted. */
static pid_t start_in_root(void)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if ((geteuid() == 0 || !unshare(CLONE_NEWUSER)) && !chroot(dir) &&
		    write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	ssize_t nr = read(ready[0], &byte, 1);
	close(ready[0]);
	if (nr == 1)
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

/* Finds the file of @mapping, without a build-id, with an @inode of the file system of @st. */
static int find_by_inode(struct stack_mapping mapping, const struct stat *st, ino_t inode)
{
	struct module_table table;
	struct module *module, *other;

	mapping.build_id_size = 0;
	mapping.device = st->st_dev;
	mapping.inode = inode;
	module_table_init(&table, NULL);
	assert_int_equal(module_table_get(&table, &mapping, &module), 0);
	int err = module_find_file(&table, module);
	assert_true(err || module->file_stat.st_ino == inode);
	mapping.inode++; /* what another container has at that path */
	assert_int_equal(module_table_get(&table, &mapping, &other), 0);
	assert_true(other != module && other->state == MODULE_UNTRIED);
	module_table_deinit(&table);
	return err;
}

static void found_in_the_process_root(void **state)
{
	struct stack_mapping mapping = {.path = "/variant"};
	struct stat variant;
	struct run run;

	build("variant", "-O1", "-pie", "-pipe");
	run_program("variant", &run);
	pid_t pid = start_in_root();
	if (!pid)
		skip();
	check(&run, pid, "/variant", NULL, build_id, NAMES_AND_LINES);
	/* Without a build-id it may be any process that got this pid since. */
	check(&run, pid, "/variant", NULL, NULL, NO_NAMES);
	/* Unless its file has the recorded inode, as the one at that path here need not. */
	assert_int_equal(stat(in_dir("variant"), &variant), 0);
	mapping.pid = pid;
	assert_int_equal(find_by_inode(mapping, &variant, variant.st_ino), 0);
	assert_int_equal(find_by_inode(mapping, &variant, variant.st_ino + 1), -ENOENT);
	RUN("install", "-D", "variant", "bin/sh");
	assert_int_equal(stat(in_dir("bin/sh"), &variant), 0);
	mapping.path = "/bin/sh";
	assert_int_equal(find_by_inode(mapping, &variant, variant.st_ino), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	check(&run, pid, "/variant", NULL, build_id, NO_NAMES);
}

static void a_replaced_file_is_not_read(void **state)
{
	struct stack_mapping mapping = {.pid = 1, .start = 0x1000, .len = 0x1000};
	struct module_table table;
	struct module *module;

	build("variant", "-O1", "-pie", "-pipe");
	module_table_init(&table, NULL);
	mapping.path = in_dir("variant");
	assert_int_equal(module_table_get(&table, &mapping, &module), 0);
	assert_int_equal(module_find_file(&table, module), 0);
	int fd = module_open_file(&table, module);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	RUN("cp", "variant", "copy");
	RUN("mv", "copy", "variant");
	assert_int_equal(module_open_file(&table, module), -ESTALE);
	module_table_deinit(&table);
}

/* The mapped file is found, even if another file, or none, has its path. */
static void a_replaced_file_is_found_while_mapped(void **state)
{
	struct stack_mapping mapping = {
		.pid = getpid(), .len = 4096, .build_id_size = BUILD_ID_MAX};
	struct module_table table;
	struct module *module;
	char deleted[PATH_MAX];
	struct stat variant;

	if (access("/proc/self/map_files", R_OK | X_OK) || geteuid() != 0)
		skip();
	build("variant", "-O1", "-pie", "-pipe");
	mapping.path = in_dir("variant");
	memcpy(mapping.build_id, build_id, sizeof(build_id));
	int fd = open(mapping.path, O_RDONLY | O_CLOEXEC);
	void *mapped = mmap(NULL, mapping.len, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(mapped != MAP_FAILED);
	close(fd);
	mapping.start = (uint64_t)mapped;
	assert_int_equal(stat(mapping.path, &variant), 0);
	for (int replaced = 0; replaced < 2; replaced++) {
		assert_int_equal(unlink(mapping.path), 0);
		if (replaced)
			RUN("cp", "program.c", "variant");
		module_table_init(&table, NULL);
		assert_int_equal(module_table_get(&table, &mapping, &module), 0);
		assert_int_equal(module_find_file(&table, module), 0);
		fd = module_open_file(&table, module);
		assert_true(fd >= 0);
		close(fd);
		module_table_deinit(&table);
		if (!replaced)
			RUN("cp", "program.c", "variant");
	}
	snprintf(deleted, sizeof(deleted), "%s (deleted)", mapping.path);
	mapping.path = deleted;
	assert_int_equal(find_by_inode(mapping, &variant, variant.st_ino), 0);
	munmap(mapped, mapping.len);
}

static uid_t find_owner(const char *path, mode_t mode)
{
	const struct stack_mapping mapping = {
		.pid = 1, .start = 0x1000, .len = 0x1000, .path = path};
	struct module_table table;
	struct module *module;
	uid_t owner;

	assert_int_equal(chmod(path, mode), 0);
	module_table_init(&table, NULL);
	assert_int_equal(module_table_get(&table, &mapping, &module), 0);
	assert_int_equal(module_find_file(&table, module), 0);
	owner = module->owner;
	module_table_deinit(&table);
	return owner;
}

/* One user's hostile file that its group can write is no reason to limit another user's. */
static void owners_of_files_that_others_can_write(void **state)
{
	const char *path = in_dir("variant");
	uid_t user = geteuid();

	build("variant", "-O1", "-pie", "-pipe");
	if (user == 0) {
		assert_int_equal(find_owner(path, 0755), 0);
		assert_int_equal(find_owner(path, 0775), ELF_FILE_ANYBODY);
		assert_int_equal(find_owner(path, 0757), ELF_FILE_ANYBODY);
		user = 65534;
		assert_int_equal(chown(path, user, user), 0);
	}
	assert_int_equal(find_owner(path, 0755), user);
	assert_int_equal(find_owner(path, 0775), user);
	assert_int_equal(find_owner(path, 0777), user);
}

static int setup(void **state)
{
	if (scratch_dir_create("unwind-modules"))
		return -1;
	FILE *source = fopen(in_dir("program.c"), "we");
	if (!source)
		return -1;
	fputs(program, source);
	return fclose(source);
}

static int teardown(void **state)
{
	scratch_dir_remove();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(position_independent),
		cmocka_unit_test(position_dependent),
		cmocka_unit_test(statically_linked),
		cmocka_unit_test(code_and_data_in_one_segment),
		cmocka_unit_test(without_debug_information),
		cmocka_unit_test(stripped),
		cmocka_unit_test(offsets_are_elf_addresses),
		cmocka_unit_test(debug_file_apart),
		cmocka_unit_test(several_files_expected),
		cmocka_unit_test(other_build_ids_name_nothing),
		cmocka_unit_test(deleted_files_need_a_build_id),
		cmocka_unit_test(symfs_comes_first),
		cmocka_unit_test(found_in_the_process_root),
		cmocka_unit_test(a_replaced_file_is_not_read),
		cmocka_unit_test(a_replaced_file_is_found_while_mapped),
		cmocka_unit_test(owners_of_files_that_others_can_write),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
