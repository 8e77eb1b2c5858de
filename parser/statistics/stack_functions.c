/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/statistics/stack_functions.h"

#include "common/hash.h"
#include "common/scope.h"
#include "unwind/stacks/stack_store.h"

/* The code of a frame. */
static uint64_t place_number(const struct stack_frame *frame)
{
	uint64_t seed = hash_seed();
	const uint64_t words[] = {
		hash_text(frame->module, seed),
		frame->module ? frame->module_offset : frame->address,
	};

	return hash_words(words, ARRAY_SIZE(words), seed);
}

/* A function is the same by name and module; without a name, only by its code. */
static uint64_t function_number(const struct stack_frame *frame)
{
	uint64_t seed = hash_seed(), number;
	const uint64_t words[] = {
		hash_text(frame->module, seed),
		hash_text(frame->function, seed),
	};

	number = frame->function ? hash_words(words, ARRAY_SIZE(words), seed) : place_number(frame);
	return frame->is_generated ? number | GENERATED_FUNCTION : number & ~GENERATED_FUNCTION;
}

/* Inlined functions are functions, too. */
static int number_frames(struct stack_store *stacks, uint32_t stack_id,
			 uint64_t (*number)(const struct stack_frame *), uint64_t *ret, size_t max,
			 size_t *ret_nr)
{
	size_t nr = 0;

	for (size_t i = stack_store_nr_frames(stacks, stack_id); i-- > 0;) {
		const struct stack_frame *frames;
		size_t nr_frames;
		int err = stack_store_frames(stacks, stack_id, i, &frames, &nr_frames);

		if (err)
			return err;
		while (nr_frames-- > 0 && nr < max)
			ret[nr++] = number(&frames[nr_frames]);
	}
	*ret_nr = nr;
	return 0;
}

int stack_functions_of(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max, size_t *ret_nr)
{
	return number_frames(stacks, stack_id, function_number, ret, max, ret_nr);
}

int stack_places_of(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max, size_t *ret_nr)
{
	return number_frames(stacks, stack_id, place_number, ret, max, ret_nr);
}

bool stack_has_call(void *stacks, uint32_t stack_id, uint32_t call_id)
{
	return stack_store_has_call(stacks, stack_id, call_id);
}
