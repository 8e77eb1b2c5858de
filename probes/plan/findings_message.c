/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/findings_message.h"

#include "common/diag.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void findings_message_put(FILE *to, int err, const struct file_findings *findings)
{
	message_put_number(to, (uint64_t)(int64_t)err);
	message_put_number(to, findings->is_elf);
	message_put_number(to, findings->is_native);
	message_put_number(to, findings->is_static);
	message_put_number(to, findings->is_allocator);
	message_put_number(to, findings->is_libc);
	message_put_string(to, findings->interpreter);
}

void findings_message_put_wish(FILE *to, bool is_wanted, const struct debug_symbols_id *id)
{
	message_put_number(to, is_wanted);
	if (!is_wanted)
		return;
	message_put_number(to, id->build_id_size);
	for (size_t i = 0; i < id->build_id_size; i++)
		message_put_number(to, id->build_id[i]);
	message_put_string(to, id->link);
	message_put_number(to, id->crc);
}

void findings_message_put_answer(FILE *to, const struct file_question *question,
				 const struct file_answer *answer)
{
	message_put_number(to, answer->has_build_hash);
	message_put_number(to, answer->build_hash);
	message_put_string(to, answer->allocator);
	for (size_t i = 0; i < question->nr; i++) {
		message_put_string(to, answer->places[i].function);
		message_put_number(to, answer->places[i].instruction.class);
		message_put_string(to, answer->places[i].instruction.text);
	}
}

int findings_message_get(struct message_reader *reader, struct file_findings *ret)
{
	int err = (int)message_get_number(reader, -4095, 0);

	ret->is_elf = message_get_number(reader, false, true);
	ret->is_native = message_get_number(reader, false, true);
	ret->is_static = message_get_number(reader, false, true);
	ret->is_allocator = message_get_number(reader, false, true);
	ret->is_libc = message_get_number(reader, false, true);
	snprintf(ret->interpreter, sizeof(ret->interpreter), "%s",
		 message_get_string(reader, sizeof(ret->interpreter) - 1, NULL));
	return err;
}

bool findings_message_get_wish(struct message_reader *reader, struct debug_symbols_id *ret)
{
	*ret = (struct debug_symbols_id){0};
	if (!message_get_number(reader, false, true))
		return false;
	ret->build_id_size = (size_t)message_get_number(reader, 0, DEBUG_SYMBOLS_MAX_ID);
	for (size_t i = 0; i < ret->build_id_size; i++)
		ret->build_id[i] = (uint8_t)message_get_number(reader, 0, UINT8_MAX);
	snprintf(ret->link, sizeof(ret->link), "%s",
		 message_get_string(reader, sizeof(ret->link) - 1, NULL));
	ret->crc = (uint32_t)message_get_number(reader, 0, UINT32_MAX);
	return true;
}

static void get_place(struct message_reader *reader, struct place_answer *ret)
{
	snprintf(ret->function, sizeof(ret->function), "%s",
		 message_get_string(reader, sizeof(ret->function) - 1, NULL));
	ret->instruction.class =
		(enum placement_class)message_get_number(reader, 0, PLACEMENT_UNKNOWN);
	snprintf(ret->instruction.text, sizeof(ret->instruction.text), "%s",
		 message_get_string(reader, sizeof(ret->instruction.text) - 1, NULL));
}

int findings_message_get_answer(struct message_reader *reader, const struct file_question *question,
				struct file_answer *ret)
{
	ret->has_build_hash = message_get_number(reader, false, true);
	ret->build_hash = (uint32_t)message_get_number(reader, 0, UINT32_MAX);
	snprintf(ret->allocator, sizeof(ret->allocator), "%s",
		 message_get_string(reader, sizeof(ret->allocator) - 1, NULL));
	ret->places = calloc(question->nr + 1, sizeof(*ret->places));
	if (!ret->places) {
		diag_error("cannot describe probes: out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < question->nr; i++)
		get_place(reader, &ret->places[i]);
	return 0;
}

void file_answers_deinit(struct file_answer *answers, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(answers[i].places);
	memset(answers, 0, nr * sizeof(*answers));
}
