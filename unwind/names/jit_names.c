/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/names/jit_names.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/elf/elf_file.h"
#include "common/elf/root_file.h"
#include "common/partition_point.h"
#include "common/proc/living_thread.h"
#include "common/proc/process_status.h"
#include "common/proc/proc_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_FLAGS     (O_PATH | O_CLOEXEC | O_NOFOLLOW) /* elf_file_reopen() does the rest */
#define MAX_STEPS_BACK 256				 /* over overlapping pieces */
#define MAP_PATH_SIZE  64

/* Opens the file in the process's own root; no link leads out of it. Returns -1 on failure. */
static int open_in_root(pid_t pid, pid_t own_pid)
{
	struct open_how how = {
		.flags = OPEN_FLAGS,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char path[PROC_FILE_PATH_SIZE];

	proc_file_path(path, living_thread(pid), "root");
	_cleanup_close_ int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	snprintf(path, sizeof(path), "tmp/perf-%d.map", (int)own_pid);
	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static void format_path(char path[MAP_PATH_SIZE], pid_t pid)
{
	snprintf(path, MAP_PATH_SIZE, "/tmp/perf-%d.map", (int)pid);
}

/* Opens the trusted file, if any. Returns -1 on failure. */
static int open_map(pid_t pid, const char *symfs)
{
	const struct broker_request request = {BROKER_OPEN_JIT_NAMES, .number = pid, .fd = -1};
	char path[MAP_PATH_SIZE];
	struct process_status status;
	struct stat st;

	if (broker_is_used()) {
		int passed;

		broker_ask(&request, &passed);
		return passed;
	}
	format_path(path, pid);
	if (symfs) {
		int fd = root_file_open(symfs, path, &st);

		if (fd >= 0)
			return fd;
	}

	bool alive = process_status_read(pid, &status) == 0;
	_cleanup_close_ int fd = alive ? open_in_root(pid, status.own_pid) : -1;
	if (fd < 0)
		fd = open(path, OPEN_FLAGS);
	_cleanup_close_ int readable = fd < 0 ? -1 : elf_file_reopen(fd, &st);
	if (readable < 0)
		return -1;
	uid_t user = alive ? status.effective_uid : geteuid();
	if (st.st_uid && st.st_uid != user) {
		diag_warn(
			"%s: belongs to user %u, not to %s or root; JIT code of process %d is not named",
			path, st.st_uid, alive ? "the process's user" : "you", (int)pid);
		return -1;
	}
	return steal_fd(readable);
}

int jit_names_serve(void *context, const struct broker_request *request, int *ret_fd)
{
	if (request->number <= 0 || request->number > INT32_MAX)
		return -EINVAL;
	*ret_fd = open_map((pid_t)request->number, context);
	return *ret_fd < 0 ? -ENOENT : 0;
}

/* Reads up to JIT_MAX_FILE bytes. *@ret_text is NULL if there is nothing to read. */
static int read_text(int fd, char **ret_text, size_t *ret_size)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0, capacity;
	struct stat st;

	*ret_text = NULL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return 0;
	capacity = st.st_size < JIT_MAX_FILE ? (size_t)st.st_size : JIT_MAX_FILE;
	text = malloc(capacity + 1);
	if (!text)
		return -ENOMEM;
	while (size < capacity) {
		ssize_t nr = read(fd, text + size, capacity - size);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			break;
		size += (size_t)nr;
	}
	*ret_text = steal_ptr(text);
	*ret_size = size;
	return 0;
}

void jit_names_deinit(struct jit_names *names)
{
	free(names->path);
	free(names->text);
	free(names->pieces);
	*names = (struct jit_names){0};
}

static int add_piece(struct jit_names *names, const struct jit_piece *piece)
{
	if (names->nr == names->capacity) {
		size_t capacity = names->capacity ? 2 * names->capacity : 256;
		struct jit_piece *larger = reallocarray(names->pieces, capacity, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		names->pieces = larger;
		names->capacity = capacity;
	}
	names->pieces[names->nr++] = *piece;
	return 0;
}

/* Parses a hexadecimal number and the blank after it. */
static bool parse_number(char **cursor, uint64_t *ret)
{
	char *end;

	if (**cursor == '-' || **cursor == '+' || **cursor == ' ')
		return false;
	errno = 0;
	*ret = strtoull(*cursor, &end, 16);
	if (end == *cursor || errno || *end != ' ')
		return false;
	*cursor = end + 1;
	return true;
}

/*
 * V8 marks each version of a function's code: "JS:~f a.js:1:1" is interpreted, "JS:^f", "JS:+f" and
 * "JS:*f" are compiled by one compiler or another (v8/src/objects/code-kind.cc,
 * CodeKindToMarker()). Removes the mark, in place.
 */
static char *without_mark(char *name)
{
	static const char *const kinds[] = {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:"};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t len = strlen(kinds[i]);

		if (strncmp(name, kinds[i], len) != 0 || !name[len] || !strchr("~^+*", name[len]))
			continue;
		memmove(name + 1, name, len);
		return name + 1;
	}
	return name;
}

/*
 * .NET appends it: "Program::f()[QuickJitted]" (runtime/src/coreclr/vm/perfmap.cpp). Removes it, in
 * place.
 */
static void cut_tier(char *name)
{
	static const char *const tiers[] = {
		"[MinOptJitted]",
		"[Optimized]",
		"[QuickJitted]",
		"[OptimizedTier1]",
		"[OptimizedTier1OSR]",
		"[InstrumentedTier]",
		"[InstrumentedTierOptimized]",
	};
	char *tier = strrchr(name, '[');

	for (size_t i = 0; tier && tier > name && i < ARRAY_SIZE(tiers); i++) {
		if (strcmp(tier, tiers[i]) == 0) {
			*tier = '\0';
			return;
		}
	}
}

/* Parses one line. A malformed line is ignored. */
static int parse_line(struct jit_names *names, char *line, size_t number)
{
	struct jit_piece piece = {.line = number};
	uint64_t size;

	if (!parse_number(&line, &piece.start) || !parse_number(&line, &size) || !size || !*line ||
	    size > UINT64_MAX - piece.start)
		return 0;
	if (strlen(line) > JIT_MAX_NAME)
		line[JIT_MAX_NAME] = '\0';
	piece.end = piece.start + size;
	cut_tier(line);
	piece.name = without_mark(line);
	return add_piece(names, &piece);
}

static int compare_pieces(const void *a, const void *b)
{
	const struct jit_piece *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

/* Parses @text of @size bytes. Takes it over and changes it. Returns 0 or -ENOMEM. */
static int parse(struct jit_names *names, char *text, size_t size)
{
	char *line = text, *newline;
	uint64_t highest_end = 0;
	size_t number = 0;
	int err = 0;

	names->text = text;
	/* A last line without a newline is still being written. */
	while (!err && (newline = memchr(line, '\n', size - (size_t)(line - text)))) {
		*newline = '\0';
		err = parse_line(names, line, ++number);
		line = newline + 1;
	}
	if (err)
		return err;
	if (names->nr)
		qsort(names->pieces, names->nr, sizeof(*names->pieces), compare_pieces);
	for (size_t i = 0; i < names->nr; i++) {
		if (names->pieces[i].end > highest_end)
			highest_end = names->pieces[i].end;
		names->pieces[i].highest_end = highest_end;
	}
	return 0;
}

int jit_names_init(struct jit_names *names, pid_t pid, const char *symfs)
{
	char path[MAP_PATH_SIZE], *text;
	size_t size;

	*names = (struct jit_names){0};
	_cleanup_close_ int fd = open_map(pid, symfs);
	if (fd < 0)
		return 0;
	int err = read_text(fd, &text, &size);
	if (err || !text)
		return err;
	format_path(path, pid);
	names->path = strdup(path);
	if (!names->path) {
		free(text);
		return -ENOMEM;
	}
	err = parse(names, text, size);
	if (err)
		jit_names_deinit(names);
	return err;
}

const struct jit_piece *jit_names_find(const struct jit_names *names, uint64_t address)
{
	const struct jit_piece *best = NULL;
	size_t nr = partition_point(names->nr, i, names->pieces[i].start <= address);

	for (size_t i = nr, steps = 0; i > 0 && steps < MAX_STEPS_BACK; i--, steps++) {
		const struct jit_piece *piece = &names->pieces[i - 1];

		if (piece->highest_end <= address)
			break;
		if (address < piece->end && (!best || piece->line > best->line))
			best = piece;
	}
	return best;
}
