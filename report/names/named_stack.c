/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/names/named_stack.h"

#include "common/schema/user_frame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ADDRESS_NAME 300

const char *named_stack_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Names a frame without a symbol. */
static void name_address(char *text, size_t size, const struct stack_frame *frame)
{
	if (frame->module)
		snprintf(text, size, "%.250s+0x%" PRIx64, named_stack_basename(frame->module),
			 frame->module_offset);
	else if (frame->address == STACK_TRUNCATED)
		snprintf(text, size, "(truncated)");
	else if (frame->address == STACK_INCOMPLETE)
		snprintf(text, size, "(incomplete)");
	else if (frame->address == STACK_ELSEWHERE)
		snprintf(text, size, "(elsewhere)");
	else
		snprintf(text, size, "0x%" PRIx64, frame->address);
}

static int name_frame(struct named_stack *stack, const struct stack_frame *frame)
{
	struct named_frame *named = &stack->frames[stack->nr];
	const char *function = frame->module ? frame->function : NULL;
	char address[MAX_ADDRESS_NAME];
	int err;

	*named = (struct named_frame){
		.line = frame->file ? frame->line : 0,
		.address = frame->address,
		.module_offset = frame->module ? frame->module_offset : 0,
		.has_symbol = function != NULL,
		.inlined = frame->inlined,
		.is_mark = !frame->module && frame->address <= STACK_LAST_MARK,
	};
	if (!function)
		name_address(address, sizeof(address), frame);
	err = name_pool_add(stack->names, function ? function : address, &named->name);
	if (!err)
		err = name_pool_add(stack->names, frame->module, &named->module);
	if (!err)
		err = name_pool_add(stack->names, frame->file, &named->file);
	stack->nr += !err;
	return err;
}

static int reserve(struct named_stack *stack, size_t nr)
{
	size_t max = stack->max ? stack->max : 64;
	struct named_frame *frames;

	while (max < stack->nr + nr)
		max *= 2;
	if (max == stack->max)
		return 0;
	frames = realloc(stack->frames, max * sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	stack->frames = frames;
	stack->max = max;
	return 0;
}

int named_stack_load(struct named_stack *stack, struct stack_store *store, uint32_t stack_id)
{
	size_t nr = stack_store_nr_frames(store, stack_id);

	stack->nr = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct stack_frame *frames;
		size_t nr_frames;
		int err = stack_store_frames(store, stack_id, i, &frames, &nr_frames);

		if (!err)
			err = reserve(stack, nr_frames);
		for (size_t k = 0; !err && k < nr_frames; k++)
			err = name_frame(stack, &frames[k]);
		if (err)
			return err;
	}
	return 0;
}

int named_stack_load_frames(struct named_stack *stack, struct stack_store *store, uint32_t stack_id)
{
	int err = named_stack_load(stack, store, stack_id);

	if (err || stack->nr)
		return err;
	err = reserve(stack, 1);
	if (err)
		return err;
	stack->frames[0] = (struct named_frame){0};
	stack->nr = 1;
	return name_pool_add(stack->names, "(no stack)", &stack->frames[0].name);
}

void named_stack_deinit(struct named_stack *stack)
{
	free(stack->frames);
	*stack = (struct named_stack){0};
}

size_t named_stack_user_frame(const struct named_stack *stack, const char *function)
{
	struct user_frame_search search = {.is_pool = user_frame_is_pool(function)};
	size_t found = 0;

	for (size_t i = 0; i < stack->nr && !search.is_over; i++) {
		const struct named_frame *frame = &stack->frames[i];
		const struct frame_facts facts = {
			.name = frame->name,
			.module = frame->module,
			.has_symbol = frame->has_symbol,
			.inlined = frame->inlined,
			.is_own_wrapper =
				own_wrappers_has(stack->wrappers, frame->name, frame->module),
		};

		if (user_frame_is_better(&search, &facts))
			found = i;
	}
	return found;
}
