/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes any bytes as what the process that analyses files says of one: what a file that has taken
 * it over can send. What leakprobe and leakrec take from it stays within its ranges.
 */
#include "probes/plan/findings_message.h"
#include "probes/plan/plan_message.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NR_PROBES 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
	if (!is_true)
		abort();
}

/* Text that is shown on a terminal. */
static void require_plain(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	require(len < size);
	for (size_t i = 0; i < len; i++)
		require(text[i] >= ' ' && text[i] <= '~');
}

static void take_answer(struct message_reader *reader)
{
	const struct file_question question = {.nr = NR_PROBES};
	struct file_answer answer = {0};

	require(findings_message_get_answer(reader, &question, &answer) == 0);
	require_plain(answer.allocator, sizeof(answer.allocator));
	for (size_t i = 0; i < NR_PROBES; i++) {
		const struct place_answer *place = &answer.places[i];

		require_plain(place->function, sizeof(place->function));
		require_plain(place->instruction.text, sizeof(place->instruction.text));
		require(place->instruction.class <= PLACEMENT_UNKNOWN);
	}
	file_answers_deinit(&answer, 1);
}

/* Of functions that the user names: some events are theirs. */
static const struct resource_call *find_row(void *context, const char *event,
					    enum probe_point point)
{
	return event[0] == 'f' && point == PROBE_EXIT ? context : NULL;
}

static void take_plan(struct message_reader *reader, const struct mapped_file *file)
{
	static struct resource_call named = {.function = "open"};
	const struct plan_rows rows = {find_row, &named};
	struct probe_set set = {0};

	if (plan_message_get(reader, file, &rows, &set))
		require(set.nr_files == 0);
	for (size_t i = 0; i < set.nr_files; i++)
		for (size_t j = 0; j < set.files[i].nr_probes; j++) {
			const struct probe *probe = &set.files[i].probes[j];

			require(probe->offset <= (uint64_t)file->stat.st_size);
			require(!strpbrk(probe->definition, "\n@;"));
		}
	probe_set_deinit(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct message_reader reader = {(const char *)data + 1, (const char *)data + size, false};
	struct mapped_file file = {
		.fd = memfd_create("file", MFD_CLOEXEC),
		.path = (char[]){"/file"},
		.display = (char[]){"/file"},
		.stat.st_size = 1 << 20,
	};
	struct file_findings findings = {0};
	struct debug_symbols_id wanted;

	if (file.fd < 0)
		abort();
	/* The first byte says which parts come. */
	if (size > 0 && data[0] & 1) {
		require(findings_message_get(&reader, &findings) <= 0);
		require_plain(findings.interpreter, sizeof(findings.interpreter));
	}
	if (size > 0 && data[0] & 2 && findings_message_get_wish(&reader, &wanted)) {
		require(wanted.build_id_size <= sizeof(wanted.build_id));
		require_plain(wanted.link, sizeof(wanted.link));
	}
	if (size > 0 && data[0] & 4)
		take_answer(&reader);
	if (size > 0 && data[0] & 8)
		take_plan(&reader, &file);
	close(file.fd);
	return 0;
}
