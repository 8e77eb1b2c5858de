/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When leakrec begins no more work on the files of users, and what it says of it. */
#include "common/clock.h"
#include "test/unit/unwind/made_file.h"
#include "unwind/frames/cfi_guard.h"
#include "unwind/frames/dump_unwinder.h"
#include "unwind/modules/module_file.h"
#include "unwind/modules/owner_time.h"

#include <sys/mman.h>

/* Unwinds through files that the test makes. */
struct unwinding {
	struct debuginfo debuginfo;
	struct module_table modules;
	struct dump_unwinder unwinder;
	struct owner_time *time;
};

static void begin(struct unwinding *unwinding)
{
	assert_int_equal(debuginfo_init(&unwinding->debuginfo, NULL), 0);
	module_table_init(&unwinding->modules, NULL);
	assert_int_equal(dump_unwinder_init(&unwinding->unwinder, &unwinding->modules,
					    &unwinding->debuginfo, false),
			 0);
	unwinding->time = &unwinding->unwinder.rules.rules.time;
	unwinding->time->is_limited = true;
	owner_time_window(unwinding->time);
}

static void end(struct unwinding *unwinding)
{
	dump_unwinder_deinit(&unwinding->unwinder);
	module_table_deinit(&unwinding->modules);
	debuginfo_deinit(&unwinding->debuginfo);
}

/* In a window that has just begun. */
static void use_up(struct owner_time *time, uint64_t *spent, uint64_t limit_ns)
{
	time->window_ns = clock_now_ns();
	*spent = limit_ns;
}

static void begin_next_window(struct owner_time *time)
{
	time->window_ns -= OWNER_TIME_WINDOW_NS;
}

/* Makes a file, of a user without privileges if that is possible. */
static const char *make_file(const char *name)
{
	const char *path = in_dir(name);
	uint8_t content[FRAME_FILE_MAX];

	write_file(path, content, frame_file_make(&frame_entries[0], content));
	if (geteuid() == 0)
		assert_int_equal(chown(path, 65534, 65534), 0);
	return path;
}

static struct module *get_module(struct unwinding *unwinding, const char *path)
{
	const struct stack_mapping mapping = {
		.pid = 1, .start = LOAD_ADDRESS, .len = 0x1000, .path = path};
	struct module *module;

	assert_int_equal(module_table_get(&unwinding->modules, &mapping, &module), 0);
	return module;
}

static bool is_refused(struct unwinding *unwinding, const char *path)
{
	struct cfi_rules *rules = &unwinding->unwinder.rules.rules;
	const struct cfi_rule *rule;

	assert_int_equal(
		cfi_rules_find(rules, get_module(unwinding, path), FRAME_FILE_INSIDE, &rule), 0);
	assert_int_equal(rule->kind, rules->is_late ? CFI_ABSENT : CFI_FRAME);
	return rules->is_late;
}

/* A user may have as many files, and names of them, as he likes. */
static void no_first_rule_without_time(void **state)
{
	struct unwinding unwinding = {0};
	struct owner_time *time;

	begin(&unwinding);
	time = unwinding.time;
	assert_false(is_refused(&unwinding, make_file("first")));
	assert_int_equal(time->nr, 1);
	assert_true(time->opening_ns && time->users[0].ns && time->all_ns);
	use_up(time, &time->users[0].ns, OWNER_TIME_NS);
	assert_true(is_refused(&unwinding, make_file("second")));
	begin_next_window(time);
	assert_false(is_refused(&unwinding, in_dir("second")));

	use_up(time, &time->opening_ns, OWNER_TIME_OPENING_NS);
	assert_true(is_refused(&unwinding, make_file("third")));
	assert_int_equal(get_module(&unwinding, in_dir("third"))->state, MODULE_UNTRIED);
	begin_next_window(time);
	assert_false(is_refused(&unwinding, in_dir("third")));
	end(&unwinding);
}

static const struct address_space *map(struct address_spaces *spaces, pid_t pid,
				       struct module *module, uint64_t at)
{
	const struct stack_mapping mapping = {
		.pid = pid, .start = LOAD_ADDRESS + at, .len = 0x1000, .path = module->path};

	assert_int_equal(address_spaces_map(spaces, &mapping, module), 0);
	return address_spaces_find(spaces, pid);
}

/* True if libdwfl finds that @caller has called the function at @address. */
static bool finds_call(struct unwinding *unwinding, const struct address_space *space,
		       uint64_t caller, uint64_t address)
{
	static struct unwound_stack stack;
	const uint64_t words[8] = {LOAD_ADDRESS + caller};
	/* No frame pointer */
	const uint64_t registers[20] = {[7] = STACK_ADDRESS, [8] = LOAD_ADDRESS + address};
	const struct stack_dump dump = {
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = X86_MASK,
		.regs = registers,
		.bytes = (const uint8_t *)words,
		.nr_bytes = sizeof(words),
	};

	assert_int_equal(dwfl_unwinder_ops.unwind(&unwinding->unwinder.dwfl, space, &dump, &stack),
			 0);
	return stack.nr > 1;
}

/* The same of a function of the file that is mapped first. */
static bool finds_caller(struct unwinding *unwinding, const struct address_space *space)
{
	return finds_call(unwinding, space, BESIDE, FRAME_FILE_INSIDE);
}

/* What there was no time for is used when there is time again, and not only in a new process. */
static void left_out_until_the_next_window(void **state)
{
	struct unwinding unwinding = {0};
	const struct address_space *space;
	struct address_spaces spaces;
	struct owner_time *time;

	begin(&unwinding);
	time = unwinding.time;
	address_spaces_init(&spaces);
	space = map(&spaces, 1, get_module(&unwinding, make_file("left-out")), 0);
	assert_true(finds_caller(&unwinding, space));
	assert_true(time->users[0].ns);

	map(&spaces, 1, get_module(&unwinding, make_file("another")), 0x10000);
	use_up(time, &time->users[0].ns, OWNER_TIME_NS);
	assert_false(finds_caller(&unwinding, space));
	begin_next_window(time);
	assert_true(finds_caller(&unwinding, space));
	address_spaces_deinit(&spaces);
	end(&unwinding);
}

/* Each new mapping of code has all files of a process opened again, also root's. */
static void opening_files_again_and_again(void **state)
{
	struct unwinding unwinding = {0};
	const struct address_space *space;
	struct address_spaces spaces;
	struct module *module;

	begin(&unwinding);
	address_spaces_init(&spaces);
	module = get_module(&unwinding, make_file("again"));
	assert_int_equal(chown(module->path, geteuid(), getegid()), 0);
	space = map(&spaces, 1, module, 0);
	assert_true(finds_caller(&unwinding, space));
	use_up(unwinding.time, &unwinding.time->opening_ns, 0);
	map(&spaces, 1, module, 0x10000);
	assert_true(finds_caller(&unwinding, space));
	assert_true(unwinding.time->opening_ns > 0);

	map(&spaces, 1, module, 0x20000);
	use_up(unwinding.time, &unwinding.time->opening_ns, OWNER_TIME_OPENING_NS);
	assert_false(finds_caller(&unwinding, space));
	begin_next_window(unwinding.time);
	assert_true(finds_caller(&unwinding, space));
	address_spaces_deinit(&spaces);
	end(&unwinding);
}

/* A user whose files take much memory does not have all other processes' files opened again. */
static void much_memory(void **state)
{
	struct unwinding unwinding = {0};
	struct dwfl_unwinder *dwfl = &unwinding.unwinder.dwfl;
	const struct address_space *users, *roots;
	struct address_spaces spaces;
	struct module *module;

	begin(&unwinding);
	address_spaces_init(&spaces);
	users = map(&spaces, 1, get_module(&unwinding, make_file("much")), 0);
	module = get_module(&unwinding, make_file("root's"));
	assert_int_equal(module_find_file(&unwinding.modules, module), 0);
	module->owner = 0;
	roots = map(&spaces, 2, module, 0);
	assert_true(finds_caller(&unwinding, roots));
	assert_int_equal(dwfl->kept_bytes, 0);
	assert_true(finds_caller(&unwinding, users));
	assert_true(dwfl->kept_bytes > 0);

	dwfl->kept_bytes += DEBUGINFO_MAX_KEPT_BYTES;
	use_up(unwinding.time, &unwinding.time->opening_ns, 0);
	assert_true(finds_caller(&unwinding, roots));
	assert_int_equal(unwinding.time->opening_ns, 0);
	assert_int_equal(dwfl->kept_bytes, DEBUGINFO_MAX_KEPT_BYTES);
	address_spaces_deinit(&spaces);
	end(&unwinding);
}

#define NEAR 0x10000
#define FAR  0x100000

/* A note with a build-id, and call frame information for a function at @code. */
#define NOTE_AND_FRAMES(CODE)                                                                      \
	{                                                                                          \
		{.name = ".note", .type = SHT_NOTE, .data = note, .size = sizeof(note)},           \
			FRAMES_IN(".debug_frame", 0, frames, make_frames(frames, CODE)),           \
	}

static const uint8_t note[] = {4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4};

static size_t make_frames(uint8_t frames[FRAMES_MAX], uint64_t code)
{
	uint8_t *at = frames;

	put_common(&at, 0);
	put_entry(&at, code, NULL, 0);
	return (size_t)(at - frames);
}

/* Writes what the file says of its segments. */
static void set_segments(const char *path, const Elf64_Phdr segments[2])
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, segments, 2 * sizeof(*segments), sizeof(Elf64_Ehdr)),
			 2 * sizeof(*segments));
	assert_int_equal(fchmod(fd, 0666), 0);
}

/* By its only segment, a file reaches behind what is mapped of it. */
static void beyond_the_mapping(void **state)
{
	const Elf64_Phdr segments[2] = {
		{.p_type = PT_LOAD, .p_flags = PF_X, .p_memsz = 2 * FAR, .p_align = 0x1000}};
	const char *path = in_dir("reaching-up");
	struct unwinding unwinding = {0};
	struct dwfl_unwinder *dwfl = &unwinding.unwinder.dwfl;
	uint8_t frames[FRAMES_MAX];
	const struct added_section sections[] = NOTE_AND_FRAMES(FAR);
	const struct address_space *space;
	struct address_spaces spaces;
	uint64_t kept_bytes;

	write_sections(path, sections, ARRAY_SIZE(sections));
	set_segments(path, segments);
	begin(&unwinding);
	address_spaces_init(&spaces);
	space = map(&spaces, 1, get_module(&unwinding, path), 0);
	assert_true(finds_call(&unwinding, space, 3 * FAR, FAR + 8));
	kept_bytes = dwfl->kept_bytes;
	assert_true(finds_call(&unwinding, space, 3 * FAR, FAR + 8));
	assert_true(dwfl->kept_bytes > kept_bytes);

	use_up(unwinding.time, &unwinding.time->users[0].ns, OWNER_TIME_NS);
	assert_false(finds_call(&unwinding, space, 3 * FAR, FAR + 8));
	address_spaces_deinit(&spaces);
	end(&unwinding);
}

/* By its first segment, which is not mapped, a file reaches to where root's is. */
static void over_roots_file(void **state)
{
	const Elf64_Phdr segments[2] = {
		{.p_type = PT_LOAD, .p_vaddr = NEAR / 2, .p_memsz = 0x1000, .p_align = 0x1000},
		{.p_type = PT_LOAD,
		 .p_flags = PF_X,
		 .p_vaddr = FAR,
		 .p_memsz = 0x1000,
		 .p_align = 0x1000},
	};
	const char *path = in_dir("reaching-down"), *debug = in_dir("reaching-down.debug");
	struct unwinding unwinding = {0};
	uint8_t frames[FRAMES_MAX];
	const struct added_section sections[] = NOTE_AND_FRAMES(NEAR);
	struct module *roots;
	struct address_spaces spaces;

	write_sections(path, sections, 1);
	set_segments(path, segments);
	write_sections(debug, sections, ARRAY_SIZE(sections));
	set_segments(debug, segments);
	begin(&unwinding);
	unwinding.debuginfo.max_expanded = CFI_GUARD_MAX_EXPANDED;
	address_spaces_init(&spaces);
	roots = get_module(&unwinding, make_file("reached"));
	assert_int_equal(module_find_file(&unwinding.modules, roots), 0);
	roots->owner = 0;
	map(&spaces, 1, get_module(&unwinding, path), FAR);
	map(&spaces, 1, roots, 0); /* libdwfl takes root's if no file is below the user's */
	assert_true(finds_call(&unwinding, map(&spaces, 1, roots, NEAR), 3 * FAR, NEAR + 8));
	assert_int_equal(roots->owner, 0);

	use_up(unwinding.time, &unwinding.time->users[0].ns, OWNER_TIME_NS);
	assert_false(finds_call(&unwinding, address_spaces_find(&spaces, 1), 3 * FAR, NEAR + 8));
	address_spaces_deinit(&spaces);
	end(&unwinding);
}

/* Begins work on a file. Returns the messages in @text. */
static bool begin_saying(struct owner_time *time, const struct module *module, char text[1024])
{
	int saved = dup(STDERR_FILENO), fd = memfd_create("stderr", MFD_CLOEXEC);
	bool has_begun;

	memset(text, 0, 1024);
	dup2(fd, STDERR_FILENO);
	has_begun = owner_time_begin(time, module);
	owner_time_end(time);
	dup2(saved, STDERR_FILENO);
	assert_true(pread(fd, text, 1023, 0) >= 0);
	close(saved);
	close(fd);
	return has_begun;
}

/* A user can mount root's program beside a debug file of his. */
static void debug_files_of_others(void **state)
{
	struct unwinding unwinding = {0};
	struct cfi_rules *rules = &unwinding.unwinder.rules.rules;
	uint8_t frames[FRAMES_MAX];
	const struct added_section sections[] = NOTE_AND_FRAMES(BESIDE);
	const struct cfi_rule *rule;
	struct module *module;

	write_sections(in_dir("lent"), sections, 1);
	write_sections(in_dir("lent.debug"), sections, ARRAY_SIZE(sections));
	assert_int_equal(chmod(in_dir("lent.debug"), 0666), 0);
	begin(&unwinding);
	unwinding.debuginfo.max_expanded = CFI_GUARD_MAX_EXPANDED;
	module = get_module(&unwinding, in_dir("lent"));
	for (uint64_t i = 0; i < 3; i++) {
		if (i == 2)
			use_up(unwinding.time, &unwinding.time->users[0].ns, OWNER_TIME_NS);
		assert_int_equal(cfi_rules_find(rules, module, BESIDE + i, &rule), 0);
		assert_int_equal(rules->is_late, i == 2);
		assert_int_equal(rule->kind, i == 2 ? CFI_ABSENT : CFI_FRAME);
	}
	end(&unwinding);
}

/* A file is named only if the time of its own user is used up. */
static void the_limit_that_was_reached_is_named(void **state)
{
	const struct module files[] = {
		{.path = "/file", .state = MODULE_FOUND, .owner = 1000},
		{.path = "/other", .state = MODULE_FOUND, .owner = 1001},
		{.path = "/root's", .state = MODULE_FOUND, .owner = 0},
	};
	struct owner_time time = {.is_limited = true};
	char text[1024];

	assert_true(begin_saying(&time, &files[0], text));
	use_up(&time, &time.all_ns, OWNER_TIME_ALL_NS);
	assert_false(begin_saying(&time, &files[1], text));
	assert_non_null(strstr(text, "users' files took more than 3 s"));
	assert_null(strstr(text, "/other"));
	use_up(&time, &time.users[0].ns, OWNER_TIME_NS);
	assert_false(begin_saying(&time, &files[0], text));
	assert_non_null(strstr(text, "/file: its call frame information"));
	assert_false(begin_saying(&time, &files[0], text));
	assert_string_equal(text, "");
	assert_true(begin_saying(&time, &files[2], text));
	begin_next_window(&time);
	assert_true(begin_saying(&time, &files[0], text));
	assert_true(begin_saying(&time, &files[1], text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_first_rule_without_time),
		cmocka_unit_test(left_out_until_the_next_window),
		cmocka_unit_test(opening_files_again_and_again),
		cmocka_unit_test(much_memory),
		cmocka_unit_test(beyond_the_mapping),
		cmocka_unit_test(over_roots_file),
		cmocka_unit_test(debug_files_of_others),
		cmocka_unit_test(the_limit_that_was_reached_is_named),
	};

	return cmocka_run_group_tests(tests, scratch_dir_setup, scratch_dir_teardown);
}
