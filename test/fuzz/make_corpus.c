/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * make_corpus DIR LIBRARIES: writes the fuzzers' first inputs below DIR, those of fuzz_NAME to
 * DIR/NAME. The unit tests' writers make the recordings and the core file. LIBRARIES is the
 * directory of what CMake makes of allocator.c, libc.c and named.c.
 */
#include "test/fuzz/corpus.h"
#include "test/fuzz/names_input.h"

#include "common/broker/broker.h"
#include "test/support/heap_image.h"
#include "test/support/perf_data_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char script[] =
	"prog  7/7 [000] 1.000001: probe_libc:malloc: (7f30) arg1=0x20 caller=0x5510\n"
	"\t 30 malloc+0x0 (/lib/libc.so.6)\n"
	"\n"
	"prog  7/7 [000] 1.000002: probe_libc:malloc_ret: (7f30 <- 5510) ret=0x9000\n"
	"\t 10 make(int (*)(int))+0x4 (/bin/prog)\n"
	"\t 18 inner (inlined)\n"
	"\t 18 [unknown] ([unknown])\n"
	"prog  8 [001] 1.000003: 1 g:posix_memalign_store: (7f80) memptr=0x9000 block=-1\n"
	"prog  7/8 [001] 1.000003: probe_libc:free: (7f80) mem=0x9000\n"
	"prog  7/8 [001] 1.000005: task:task_newtask: pid=9 comm=prog clone_flags=4100 oom=0\n"
	"prog  7/8 [001] 1.000006: PERF_RECORD_FORK(9:9):(7:8)\n"
	"prog  7/8 [001] 1.000006: PERF_RECORD_EXIT(7:8):(7:7)\n"
	"prog  7/7 [001] 1.000006: PERF_RECORD_LOST lost 12\n"
	"prog  7/7 [001] 1.000007: PERF_RECORD_COMM exec: a b:7/7\n";

/* Of V8 and .NET; pieces that overlap. */
static const char perf_map[] = "7f0000001000 40 JS:~f a.js:1:1\n"
			       "7f0000001000 80 LazyCompile:*g b.js:2:3\n"
			       "7f0000001020 10 void Program::Main()[OptimizedTier1]\n"
			       "ffffffffffffff00 f0 last\n"
			       "7f0000002000 0 empty\n"
			       "7f0000003000 10 unfinished";

/* The first byte: a summary, for a terminal of 20 columns. */
static const char live_state[] =
	"\x53# leaks 2\n"
	"# summary end=70.000000000\n"
	"\n# live: written=1700000000.5 every=10.0 ended=0 left_out=3\n"
	"screen Growing by 3 KiB per minute since 1 m: f() in /bin/a, which is called by others\n"
	"screen \xe2\x96\x81\xe2\x96\x84\xe2\x96\x88 12.5 MiB\n"
	"screen\n"
	"screen   f+0x1  a.c:3  (/bin/x)\n";

static const char maps[] =
	"55d0c0000000-55d0c0001000 r--p 00000000 fd:00 7 /bin/a (deleted)\n"
	"55d0c0001000-55d0c0003000 r-xp 00001000 fd:00 7                  /bin/a b\n"
	"55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                  [heap]\n"
	"7f0000000000-7f0000008000 r-xp 00002000 fd:00 8                  /lib/x\\012y\n"
	"7f0000004000-7f0000005000 rwxp 00000000 00:01 9                  /memfd:code (deleted)\n"
	"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                  [stack]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0          [vsyscall]\n";

static const char process_stat[] =
	"7 (a) b) S 1 7 7 34816 7 4194304 9 0 0 0 1 2 0 0 20 0 3 0 12345 6 7\n"
	"TracerPid:\t8\nNSpid:\t7\t1\n";

void corpus_fail(const char *what)
{
	fprintf(stderr, "make_corpus: %s: %s\n", what, strerror(errno));
	exit(1);
}

void corpus_write(const char *dir, const char *name, const void *bytes, size_t nr)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (!file || fwrite(bytes, nr, 1, file) != 1 || fclose(file))
		corpus_fail(path);
}

/* A heap with a free list, a free chunk, a cycle and lost blocks, and a thread in free(). */
static void write_core(const char *dir)
{
	struct heap_image image;
	uint64_t blocks[8];
	uint8_t *core;
	size_t nr;

	heap_image_init(&image);
	for (int i = 0; i < 8; i++)
		blocks[i] = heap_image_add(&image, 56);
	heap_image_add_free(&image, 104);
	heap_image_add(&image, 0x288);
	heap_image_end(&image);
	heap_image_set(&image, blocks[0], heap_image_link(blocks[0], blocks[1], 16));
	heap_image_set(&image, blocks[1], heap_image_link(blocks[1], 0, 16));
	heap_image_set_fastbin(&image, blocks[0]);
	heap_image_set(&image, blocks[2], blocks[3]);
	heap_image_set(&image, blocks[3], blocks[2]);
	heap_image_set(&image, blocks[3] + 8, blocks[4]);
	heap_image_set(&image, HEAP_IMAGE_DATA + 8, blocks[5]);
	image.snapshot.threads[0].registers.general[0].value = blocks[6] - 16;
	core = heap_image_core(&image, &nr);
	corpus_write(dir, "heap", core, nr);
	free(core);
	/* A chunk that seems to reach around the address space */
	heap_image_set(&image, blocks[1] - 8, UINT64_MAX - (64 << 20));
	core = heap_image_core(&image, &nr);
	corpus_write(dir, "huge-chunk", core, nr);
	free(core);
	heap_image_deinit(&image);
}

/* One request of each kind, as fuzz_broker reads them: a length, then op, number, time and text. */
static void write_requests(const char *dir)
{
	static const char text[] = "/proc/self/exe";
	uint8_t bytes[BROKER_NR_OPS * 64] = {0}, *to = bytes;

	for (uint32_t op = 0; op < BROKER_NR_OPS; op++) {
		const uint64_t number = op % 4;
		const uint16_t head = (uint16_t)(24 + sizeof(text) - 1) | 0x8000;

		memcpy(to, &head, sizeof(head));
		memcpy(to + 2, &op, sizeof(op));
		memcpy(to + 10, &number, sizeof(number));
		memcpy(to + 26, text, sizeof(text) - 1);
		to += 26 + sizeof(text) - 1;
	}
	corpus_write(dir, "requests", bytes, (size_t)(to - bytes));
}

#define MAX_LIBRARY (1 << 20)

/* Writes @head, the library at @path, and @nr_tail zeros. */
static void write_library(const char *dir, const char *name, const void *head, size_t nr_head,
			  const char *path, size_t nr_tail)
{
	static uint8_t bytes[MAX_LIBRARY];
	FILE *file = fopen(path, "r");
	size_t nr;

	if (nr_head)
		memcpy(bytes, head, nr_head);
	nr = file ? fread(bytes + nr_head, 1, sizeof(bytes) - nr_head - nr_tail, file) : 0;
	if (!nr || !feof(file) || fclose(file))
		corpus_fail(path);
	memset(bytes + nr_head + nr, 0, nr_tail);
	corpus_write(dir, name, bytes, nr_head + nr + nr_tail);
}

/* Each library with sizes that differ in the bits by which fuzz_elf decides. */
static void write_elf(const char *dir, const char *libraries)
{
	static const char *const names[] = {"allocator", "libc"};

	for (size_t i = 0; i < 2 * 4; i++) {
		char name[64], path[4096];

		snprintf(name, sizeof(name), "%s-%zu", names[i / 4], i % 4);
		snprintf(path, sizeof(path), "%s/libfuzz_%s.so", libraries, names[i / 4]);
		write_library(dir, name, NULL, 0, path, i % 4);
	}
}

/* Each library in each role. Their code begins below 0x400. */
static void write_named(const char *dir, const char *libraries)
{
	static const char *const forms[] = {"plain", "compressed"};

	for (int i = 0; i < 2 * NAMES_NR_ROLES; i++) {
		const struct names_input input = {
			.role = (uint8_t)(i / 2), .step = 13, .first = 0x300, .line = 31};
		char name[64], path[4096];

		snprintf(name, sizeof(name), "%s-%d", forms[i % 2], i / 2);
		snprintf(path, sizeof(path), "%s/libfuzz_named_%s.so", libraries, forms[i % 2]);
		write_library(dir, name, &input, sizeof(input), path, 0);
	}
}

enum kind {
	ANSWER,
	BROKER,
	CORE,
	ELF,
	EVENT,
	FILES,
	JIT,
	LIVE,
	NAMES,
	PROC,
	REPORT,
	SCRIPT,
	UNWIND,
	NR_KINDS
};

int main(int argc, char **argv)
{
	static const char *const names[NR_KINDS] = {
		[ANSWER] = "answer", [BROKER] = "broker", [CORE] = "core",     [ELF] = "elf",
		[EVENT] = "event",   [FILES] = "file",	  [JIT] = "jit",       [LIVE] = "live",
		[NAMES] = "names",   [PROC] = "proc",	  [REPORT] = "report", [SCRIPT] = "script",
		[UNWIND] = "unwind",
	};
	static char dirs[NR_KINDS][4000], allocator[4096];
	uint64_t event[64] = {PERF_DATA_DEFAULT_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN};

	if (argc != 3) {
		fputs("usage: make_corpus DIR LIBRARIES\n", stderr);
		return 2;
	}
	mkdir(argv[1], 0777);
	for (int i = 0; i < NR_KINDS; i++) {
		snprintf(dirs[i], sizeof(dirs[i]), "%s/%s", argv[1], names[i]);
		mkdir(dirs[i], 0777);
	}
	snprintf(allocator, sizeof(allocator), "%s/libfuzz_allocator.so", argv[2]);
	corpus_write_answers(dirs[ANSWER], allocator);
	write_requests(dirs[BROKER]);
	write_core(dirs[CORE]);
	write_elf(dirs[ELF], argv[2]);
	event[9] = PERF_RECORD_SAMPLE;
	corpus_write(dirs[EVENT], "sample", event, sizeof(event));
	corpus_write_recordings(dirs[FILES]);
	corpus_write(dirs[JIT], "map", perf_map, sizeof(perf_map) - 1);
	corpus_write(dirs[LIVE], "summary", live_state, sizeof(live_state) - 1);
	write_named(dirs[NAMES], argv[2]);
	corpus_write(dirs[PROC], "maps", maps, sizeof(maps) - 1);
	corpus_write(dirs[PROC], "stat", process_stat, sizeof(process_stat) - 1);
	corpus_write_recordings(dirs[REPORT]);
	corpus_write(dirs[SCRIPT], "text", script, sizeof(script) - 1);
	corpus_write_unwind(dirs[UNWIND]);
	return 0;
}
