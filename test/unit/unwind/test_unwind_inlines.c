/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names addresses throughout optimised C++ programs, in which nearly everything is inlined, and
 * compares functions, inlined functions and lines with llvm-symbolizer's.
 */
#include "unwind/names/demangler.h"
#include "unwind/stacks/stack_store.h"

#include "common/scope.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE	 0x10000000
#define STEP	 5 /* bytes between the addresses asked for */
#define MAX_TEXT 4096

static const char program[] =
	"#include <algorithm>\n"
	"#include <iostream>\n"
	"#include <map>\n"
	"#include <memory>\n"
	"#include <string>\n"
	"#include <vector>\n"
	"namespace app {\n"
	"template <typename T> struct pool {\n"
	"	std::vector<std::unique_ptr<T>> blocks;\n"
	"	T *take() { blocks.push_back(std::make_unique<T>()); return blocks.back().get(); }\n"
	"};\n"
	"namespace { struct local { std::string name; std::map<int, std::string> by_id; }; }\n"
	"static inline int add(pool<local> &p, int n)\n"
	"{\n"
	"	local *l = p.take();\n"
	"	auto fill = [&](int i) { l->by_id[i] = std::to_string(i) + l->name; };\n"
	"	for (int i = 0; i < n; i++) fill(i);\n"
	"	return (int)l->by_id.size();\n"
	"}\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	app::pool<app::local> p;\n"
	"	std::vector<int> v;\n"
	"	for (int i = 0; i < argc + 10; i++) v.push_back(add(p, argc + i));\n"
	"	std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });\n"
	"	for (int n : v) std::cout << n << '\\n';\n"
	"}\n";

static char *dir;

static void run(const char *command)
{
	int status = system(command);

	if (status)
		print_error("%s: status %d\n", command, status);
	assert_int_equal(status, 0);
}

/* Runs a shell command in the scratch directory. Returns the first line of its output. */
static void ask(const char *command, char *ret, size_t size)
{
	FILE *out = popen(command, "re");

	assert_non_null(out);
	assert_non_null(fgets(ret, (int)size, out));
	assert_int_equal(pclose(out), 0);
}

/* True if a name equals llvm-symbolizer's, which is the linkage name or the source's. */
static bool is_same_name(const char *ours, const char *theirs)
{
	_cleanup_free_ char *demangled = demangle(theirs);

	if (!ours || demangled)
		return ours && strcmp(ours, demangled) == 0;
	/* For a name that only the source has, llvm-symbolizer omits namespaces and classes. */
	size_t len = strlen(ours), their_len = strlen(theirs);
	return len >= their_len && strcmp(ours + len - their_len, theirs) == 0 &&
	       (len == their_len || ours[len - their_len - 1] == ':');
}

/* "FILE:LINE", "FILE:LINE (discriminator N)", "FILE:?" or "??:?". */
static bool is_same_line(const struct stack_frame *frame, char *theirs)
{
	char *colon, *space = strstr(theirs, " (");

	if (space)
		*space = '\0';
	colon = strrchr(theirs, ':');
	assert_non_null(colon);
	int line = (int)strtol(colon + 1, NULL, 10);
	if (!line)
		return !frame->file;
	*colon = '\0';

	const char *ours = frame->file ? strrchr(frame->file, '/') : NULL;
	const char *base = strrchr(theirs, '/');
	return frame->file && frame->line == line &&
	       strcmp(ours ? ours + 1 : frame->file, base ? base + 1 : theirs) == 0;
}

static void chomp(char *text)
{
	text[strcspn(text, "\n")] = '\0';
}

struct comparison {
	size_t nr_addresses, nr_inlined, nr_named, nr_different;
	size_t nr_deepest;
};

static void show(const struct stack_frame *frames, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		stack_frame_print(&frames[i], stderr);
		fputc('\n', stderr);
	}
}

/* Compares one frame with two lines of llvm-symbolizer's. */
static bool is_same(const struct stack_frame *frame, char *function, char *line)
{
	chomp(function);
	chomp(line);
	/* For padding between functions llvm-symbolizer may give a neighbour's line. */
	bool same = strcmp(function, "??") == 0
			    ? !frame->function && !frame->file
			    : is_same_name(frame->function, function) && is_same_line(frame, line);

	if (!same)
		fprintf(stderr, "judge: %s %s\n", function, line);
	return same;
}

/* Compares the frames of one address. Its lines in @in end with the next address's, in @next. */
static void compare(struct stack_store *store, uint64_t vaddr, FILE *in, char next[MAX_TEXT],
		    struct comparison *comparison)
{
	char function[MAX_TEXT], line[MAX_TEXT];
	const struct stack_frame *frames;
	const uint64_t address = BASE + vaddr;
	size_t nr, i = 0;
	bool same = true;
	uint32_t id;

	assert_int_equal(stack_store_add_callchain(store, 1, &address, 1, &id), 0);
	assert_int_equal(stack_store_frames(store, id, 0, &frames, &nr), 0);
	while (fgets(function, sizeof(function), in) && strncmp(function, "0x", 2) != 0) {
		assert_non_null(fgets(line, sizeof(line), in));
		same = same && i < nr && is_same(&frames[i], function, line) &&
		       frames[i].inlined == (i + 1 < nr);
		i++;
	}
	if (feof(in))
		next[0] = '\0';
	else
		memcpy(next, function, MAX_TEXT);
	if (!same || i != nr) {
		fprintf(stderr, "0x%" PRIx64 ": %zu functions, %zu expected\n", vaddr, nr, i);
		show(frames, nr);
		comparison->nr_different++;
	}
	comparison->nr_addresses++;
	comparison->nr_inlined += nr > 1;
	comparison->nr_named += frames[nr - 1].function != NULL;
	if (nr > comparison->nr_deepest)
		comparison->nr_deepest = nr;
}

/* All addresses in .text of a program built by @compiler. */
static void compare_with_judge(const char *compiler, struct comparison *ret)
{
	unsigned long start, size, offset;
	char command[1024], line[MAX_TEXT];
	struct stack_store *store;

	*ret = (struct comparison){0};
	snprintf(command, sizeof(command), "cd %s && %s -g -o program program.cc", dir, compiler);
	run(command);
	snprintf(command, sizeof(command),
		 "cd %s && objdump -h program | awk '$2 == \".text\" { print $4, $3, $6 }'", dir);
	ask(command, line, sizeof(line));
	assert_int_equal(sscanf(line, "%lx %lx %lx", &start, &size, &offset), 3);

	snprintf(command, sizeof(command), "%s/program", dir);
	struct stack_mapping mapping = {.pid = 1,
					.start = BASE + start,
					.len = size,
					.file_offset = offset,
					.path = command};
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);

	snprintf(command, sizeof(command),
		 "cd %s && seq %lu %d %lu | xargs printf '0x%%x\\n' |"
		 " llvm-symbolizer --output-style=GNU -a -i -f=linkage --no-demangle -e program",
		 dir, start, STEP, start + size - 1);
	FILE *in = popen(command, "re");
	assert_non_null(in);
	assert_non_null(fgets(line, sizeof(line), in));
	while (line[0])
		compare(store, strtoul(line, NULL, 16), in, line, ret);
	assert_int_equal(pclose(in), 0);
	stack_store_destroy(store);
	print_message(
		"%s: %zu addresses, %zu named, %zu within inlined code, %zu functions at most, "
		"%zu different\n",
		compiler, ret->nr_addresses, ret->nr_named, ret->nr_inlined, ret->nr_deepest,
		ret->nr_different);
}

static void check(const char *compiler)
{
	struct comparison comparison;

	compare_with_judge(compiler, &comparison);
	assert_true(comparison.nr_inlined > 100);
	assert_int_equal(comparison.nr_different, 0);
}

static void by_gcc(void **state)
{
	check("g++ -O2");
	check("g++ -O3 -gdwarf-4");
}

static void by_clang(void **state)
{
	check("clang++ -O2");
	check("clang++ -O2 -gdwarf-5");
}

static int setup(void **state)
{
	char *template = strdup(TEST_BUILD_DIR "/unwind-inlines-XXXXXX"), path[512];

	dir = template ? mkdtemp(template) : NULL;
	if (!dir) {
		free(template);
		return -1;
	}
	snprintf(path, sizeof(path), "%s/program.cc", dir);
	FILE *source = fopen(path, "we");
	if (!source)
		return -1;
	fputs(program, source);
	return fclose(source);
}

static int teardown(void **state)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	run(command);
	free(dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_gcc),
		cmocka_unit_test(by_clang),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
