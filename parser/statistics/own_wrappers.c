/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/statistics/own_wrappers.h"

#include "common/hash.h"
#include "common/schema/user_frame.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES  32 /* of a stack, the innermost ones */
#define MAX_ROUNDS  3  /* wrappers of wrappers of wrappers */

#define MIN_CALLERS 8	/* functions that call it */
#define MIN_SIZES   4	/* that they ask for, on average, at one place of its code */
#define MIN_SHARE   0.1 /* of the recording's allocations, or of its bytes */
#define MIN_PASSED  0.9 /* of its own allocations: those at such places */

/* A site, as one allocation through the first frame that is no known wrapper. */
struct passage {
	uint64_t function, place, caller; /* hashes */
	uint64_t allocations, bytes;
	bool leaks, is_clean; /* neither: it says nothing */
	struct own_wrapper names;
};

struct search {
	const struct own_wrappers_input *input;
	struct own_wrappers *found;
	struct passage *passages;
	size_t nr;
	uint64_t *sizes; /* of one place's callers */
	uint64_t allocations, bytes;
};

bool own_wrappers_has(const struct own_wrappers *wrappers, const char *function, const char *module)
{
	if (!wrappers || !function || !module)
		return false;
	for (size_t i = 0; i < wrappers->nr; i++)
		if (strcmp(wrappers->list[i].function, function) == 0 &&
		    strcmp(wrappers->list[i].module, module) == 0)
			return true;
	return false;
}

int own_wrappers_frames(void *store, uint32_t stack_id, struct stack_frame *ret, size_t max,
			size_t *ret_nr)
{
	size_t nr = stack_store_nr_frames(store, stack_id);

	*ret_nr = 0;
	for (size_t i = 0; i < nr && *ret_nr < max; i++) {
		const struct stack_frame *frames;
		size_t nr_frames;
		int err = stack_store_frames(store, stack_id, i, &frames, &nr_frames);

		if (err)
			return err;
		for (size_t k = 0; k < nr_frames && *ret_nr < max; k++)
			ret[(*ret_nr)++] = frames[k];
	}
	return 0;
}

/* The index of the frame that asked for the memory, as far as is known; @nr: there is none. */
static size_t user_frame(const struct own_wrappers *wrappers, const struct stack_frame *frames,
			 size_t nr)
{
	struct user_frame_search search = {0};
	size_t i;

	for (i = 0; i < nr; i++) {
		const struct stack_frame *frame = &frames[i];

		user_frame_is_better(&search,
				     &(struct frame_facts){
					     .name = frame->function ? frame->function
						     : frame->module ? "0x"
								     : "(truncated)",
					     .module = frame->module,
					     .has_symbol = frame->function != NULL,
					     .inlined = frame->inlined,
					     .is_own_wrapper = own_wrappers_has(
						     wrappers, frame->function, frame->module),
				     });
		if (search.is_over)
			break;
	}
	return i;
}

/* The code of an inlined function is in many places; its lines are not. */
static uint64_t place_of(const struct stack_frame *frame)
{
	return frame->inlined ? (uint64_t)frame->line : frame->module_offset;
}

static bool is_same_function(const struct stack_frame *a, const struct stack_frame *b)
{
	return a->function && b->function && strcmp(a->function, b->function) == 0;
}

/*
 * The first frame outside @frames[0], which is not the same function. Functions without a name
 * count as one for each module: their number is not known. 0: there is none.
 */
static uint64_t caller_of(const struct stack_frame *frames, size_t nr)
{
	size_t i = 1;

	while (i < nr && is_same_function(&frames[0], &frames[i]))
		i++;
	if (i >= nr || !frames[i].module)
		return 0;
	return hash_text(frames[i].function, hash_text(frames[i].module, hash_seed()));
}

static int add_passage(struct search *search, size_t site_index)
{
	const struct own_wrappers_input *input = search->input;
	const struct site *site = &input->sites[site_index];
	struct passage *passage = &search->passages[search->nr];
	bool is_held = site_held_blocks(site) > site->allocations / 2;
	struct stack_frame frames[MAX_FRAMES];
	size_t nr, user;
	int err = input->frames_of(input->stacks, site->stack_id, frames, MAX_FRAMES, &nr);

	if (err || !site->allocations)
		return err;
	user = user_frame(search->found, frames, nr);
	search->allocations += site->allocations;
	search->bytes += site->allocated_bytes;
	if (user >= nr || !frames[user].function || !frames[user].module)
		return 0;
	*passage = (struct passage){
		.function = hash_text(frames[user].function,
				      hash_text(frames[user].module, hash_seed())),
		.place = place_of(&frames[user]),
		.caller = caller_of(frames + user, nr - user),
		.allocations = site->allocations,
		.bytes = site->allocated_bytes,
		.leaks = input->leaks ? input->leaks[site_index] : is_held,
		.names = {frames[user].function, frames[user].module},
	};
	passage->is_clean = !passage->leaks && !is_held;
	search->nr += passage->caller != 0;
	return 0;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_passages(const void *a, const void *b)
{
	const struct passage *x = a, *y = b;
	int order = compare_numbers(x->function, y->function);

	if (!order)
		order = compare_numbers(x->place, y->place);
	return order ? order : compare_numbers(x->caller, y->caller);
}

static int compare_sizes(const void *a, const void *b)
{
	return compare_numbers(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* What is known of one place in a function, and of the function as a whole. */
struct place_facts {
	uint64_t allocations, bytes;
	size_t nr_callers, nr_sizes;
	size_t nr_leaking, nr_clean; /* callers */
};

/* Adds up the @nr passages at one place, which are sorted by caller. */
static struct place_facts look_at(struct search *search, const struct passage *at, size_t nr)
{
	struct place_facts facts = {0};

	for (size_t i = 0, next; i < nr; i = next) {
		uint64_t allocations = 0, bytes = 0;
		bool leaks = false, is_clean = false;

		for (next = i; next < nr && at[next].caller == at[i].caller; next++) {
			allocations += at[next].allocations;
			bytes += at[next].bytes;
			leaks |= at[next].leaks;
			is_clean |= at[next].is_clean;
		}
		search->sizes[facts.nr_callers++] = bytes / (allocations ? allocations : 1);
		facts.allocations += allocations;
		facts.bytes += bytes;
		facts.nr_leaking += leaks;
		facts.nr_clean += is_clean && !leaks;
	}
	qsort(search->sizes, facts.nr_callers, sizeof(*search->sizes), compare_sizes);
	for (size_t i = 0; i < facts.nr_callers; i++)
		facts.nr_sizes += !i || search->sizes[i] != search->sizes[i - 1];
	return facts;
}

/* Whether the function of these @nr passages only passes memory on. */
static bool is_wrapper(struct search *search, const struct passage *of, size_t nr)
{
	struct place_facts all = {0}, passed = {0};

	for (size_t i = 0, next; i < nr; i = next) {
		struct place_facts place;

		for (next = i; next < nr && of[next].place == of[i].place;)
			next++;
		place = look_at(search, of + i, next - i);
		all.allocations += place.allocations;
		if (place.nr_callers < MIN_CALLERS || place.nr_sizes < MIN_SIZES)
			continue;
		passed.allocations += place.allocations;
		passed.bytes += place.bytes;
		passed.nr_leaking += place.nr_leaking;
		passed.nr_clean += place.nr_clean;
	}
	return passed.allocations && passed.nr_leaking <= passed.nr_clean &&
	       (double)passed.allocations >= MIN_PASSED * (double)all.allocations &&
	       ((double)passed.allocations >= MIN_SHARE * (double)search->allocations ||
		(double)passed.bytes >= MIN_SHARE * (double)search->bytes);
}

static int find_once(struct search *search)
{
	search->nr = search->allocations = search->bytes = 0;
	for (size_t i = 0; i < search->input->nr_sites; i++) {
		int err = add_passage(search, i);

		if (err)
			return err;
	}
	qsort(search->passages, search->nr, sizeof(*search->passages), compare_passages);
	for (size_t i = 0, next; i < search->nr; i = next) {
		for (next = i; next < search->nr &&
			       search->passages[next].function == search->passages[i].function;)
			next++;
		if (search->found->nr < OWN_WRAPPERS_MAX &&
		    is_wrapper(search, search->passages + i, next - i))
			search->found->list[search->found->nr++] = search->passages[i].names;
	}
	return 0;
}

int own_wrappers_find(struct own_wrappers *wrappers, const struct own_wrappers_input *input)
{
	_cleanup_free_ struct passage *passages = calloc(input->nr_sites + 1, sizeof(*passages));
	_cleanup_free_ uint64_t *sizes = calloc(input->nr_sites + 1, sizeof(*sizes));
	struct search search = {input, wrappers, passages, 0, sizes, 0, 0};
	int err = passages && sizes ? 0 : -ENOMEM;
	size_t nr_before;

	wrappers->nr = 0;
	for (int round = 0; round < MAX_ROUNDS && !err; round++) {
		nr_before = wrappers->nr;
		err = find_once(&search);
		if (wrappers->nr == nr_before)
			break;
	}
	return err;
}
