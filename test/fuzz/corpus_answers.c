/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test/fuzz/corpus.h"

#include "probes/elf/analysis_limit.h"
#include "probes/plan/findings_message.h"
#include "probes/plan/plan_message.h"
#include "probes/plan/probe_plan.h"

#include "common/schema/resource_schema.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The parts of an input, which its first byte names (fuzz_answer.c). */
#define FINDINGS  1
#define WISH	  2
#define ANSWER	  4
#define PLAN	  8

#define NR_PROBES 3 /* that fuzz_answer asks for */

static const struct file_findings findings = {
	.is_elf = true,
	.is_native = true,
	.is_allocator = true,
	.interpreter = "/lib64/ld-linux-x86-64.so.2",
};

struct input {
	FILE *out;
	char *bytes;
	size_t nr;
};

static void begin(struct input *input, int parts)
{
	*input = (struct input){0};
	input->out = open_memstream(&input->bytes, &input->nr);
	if (!input->out || fputc(parts, input->out) == EOF)
		corpus_fail("memory");
	if (parts & FINDINGS)
		findings_message_put(input->out, 0, &findings);
}

static void end(struct input *input, const char *dir, const char *name)
{
	if (fclose(input->out))
		corpus_fail("memory");
	corpus_write(dir, name, input->bytes, input->nr);
	free(input->bytes);
}

static void plan(const char *path, struct probe_set *ret)
{
	struct stat st;
	struct allocator allocator;
	struct elf_image image;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*ret = (struct probe_set){.with_operators = true};
	if (fd < 0 || fstat(fd, &st))
		corpus_fail(path);
	const struct probe_source source = {fd, &image, &st, "/file", "/file"};

	analysis_limit_begin(ANALYSIS_LIMIT_NS);
	if (elf_image_init(&image, fd) || allocator_init(&allocator, &image, true) ||
	    probe_plan_file(ret, &source, &allocator) || !ret->nr_files ||
	    ret->files[0].nr_probes < NR_PROBES)
		corpus_fail(path);
	analysis_limit_end();
	allocator_deinit(&allocator);
	elf_image_deinit(&image);
	close(fd);
}

static void write_wish(const char *dir)
{
	const struct debug_symbols_id wanted = {{1, 2, 3}, 3, "file.debug", 4};
	struct input input;

	begin(&input, FINDINGS | WISH);
	findings_message_put_wish(input.out, true, &wanted);
	end(&input, dir, "wish");
}

static void write_answer(const char *dir, const struct probe_file *file)
{
	struct place_answer places[NR_PROBES] = {0};
	const struct file_question question = {.nr = NR_PROBES};
	struct file_answer answer = {.has_build_hash = true, .build_hash = 5, .places = places};
	struct input input;

	snprintf(answer.allocator, sizeof(answer.allocator), "%s", file->allocator);
	for (size_t i = 0; i < NR_PROBES; i++) {
		const struct probe *probe = &file->probes[i];

		snprintf(places[i].function, sizeof(places[i].function), "%s+0x%" PRIx64,
			 probe->symbol, probe->offset - probe->function_offset);
		places[i].instruction = probe->instruction;
	}
	begin(&input, FINDINGS | WISH | ANSWER);
	findings_message_put_wish(input.out, false, NULL);
	findings_message_put_answer(input.out, &question, &answer);
	end(&input, dir, "answer");
}

static void write_plans(const char *dir, struct probe_set *set)
{
	const struct resource_event event = {"file", RESOURCE_GIVE, RESOURCE_EXIT, "open", 0};
	struct resource_schemas schemas = {0};
	struct resource_call *named;
	struct probe *probe = &set->files[0].probes[0];
	struct input input;

	begin(&input, FINDINGS | WISH | PLAN);
	findings_message_put_wish(input.out, false, NULL);
	plan_message_put(input.out, set);
	end(&input, dir, "plan");
	/* A function that the user names. */
	if (resource_schemas_add(&schemas, &event, &named))
		corpus_fail("memory");
	probe->schema = &named->schema;
	probe->point = PROBE_EXIT;
	snprintf(probe->event, sizeof(probe->event), "file__exit__open");
	begin(&input, PLAN);
	plan_message_put(input.out, set);
	end(&input, dir, "named");
	resource_schemas_deinit(&schemas);
}

void corpus_write_answers(const char *dir, const char *path)
{
	struct probe_set set;

	plan(path, &set);
	write_wish(dir);
	write_answer(dir, &set.files[0]);
	write_plans(dir, &set);
	probe_set_deinit(&set);
}
