/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/causes/cause_versions.h"

#include "common/hash.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COMPARED 256  /* later stacks that one is compared with */
#define MAX_PAUSE    0.25 /* between two versions, of the time in which they allocate */

/* What is compared of a stack. Hashes have a random seed, so only their equality counts. */
struct compiled_stack {
	size_t member;
	uint64_t code;	/* native code by place, generated functions by name */
	uint64_t entry; /* the functions up to the first generated one */
	/* Generated functions, outermost first; then native code inside all, innermost first. */
	uint64_t *words;
	size_t nr_generated, nr_native;
	uint64_t first_ns, last_ns; /* of the allocations of all stacks with this code */
	/* The stack that takes over from it, the one it takes over from; how much they share. */
	size_t next, previous, next_alike, previous_alike;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_codes(const void *a, const void *b)
{
	const struct compiled_stack *x = a, *y = b;
	int order = compare_numbers(x->code, y->code);

	return order ? order : compare_numbers(x->member, y->member);
}

static int compare_entries(const void *a, const void *b)
{
	const struct compiled_stack *x = a, *y = b;
	int order = compare_numbers(x->entry, y->entry);

	if (!order)
		order = compare_numbers(x->first_ns, y->first_ns);
	return order ? order : compare_numbers(x->member, y->member);
}

int cause_versions_add(struct cause_versions *versions, const struct cause_finder *finder,
		       const uint64_t *functions, const uint64_t *places, size_t nr)
{
	const struct site *site = finder->members[finder->nr_members - 1].counts;
	struct compiled_stack *stack;
	uint64_t code[2] = {0};

	if (versions->nr == versions->capacity) {
		size_t capacity = versions->capacity ? 2 * versions->capacity : 64;
		struct compiled_stack *list = reallocarray(versions->list, capacity, sizeof(*list));

		if (!list)
			return -ENOMEM;
		versions->list = list;
		versions->capacity = capacity;
	}
	stack = &versions->list[versions->nr];
	*stack = (struct compiled_stack){
		.member = finder->nr_members - 1,
		.words = calloc(nr + 1, sizeof(*stack->words)),
		.first_ns = site->first_ns,
		.last_ns = site->last_ns,
	};
	if (!stack->words)
		return -ENOMEM;
	versions->nr++;
	for (size_t i = 0; i < nr; i++) {
		bool is_generated = functions[i] & GENERATED_FUNCTION;

		code[1] = is_generated ? functions[i] : places[i];
		code[0] = hash_words(code, 2, 0);
		if (!is_generated)
			continue;
		if (!stack->nr_generated)
			stack->entry = hash_words(functions, i + 1, 0);
		stack->words[stack->nr_generated++] = functions[i];
		stack->nr_native = 0;
		while (i + 1 + stack->nr_native < nr &&
		       !(functions[i + 1 + stack->nr_native] & GENERATED_FUNCTION))
			stack->nr_native++;
	}
	stack->code = code[0];
	for (size_t i = 0; i < stack->nr_native; i++)
		stack->words[stack->nr_generated + i] = places[nr - 1 - i];
	return 0;
}

/* True if the functions of the one, which has fewer, are all in the other, in that order. */
static bool has_functions_of(const struct compiled_stack *more, const struct compiled_stack *fewer)
{
	size_t found = 0;

	for (size_t i = 0; i < more->nr_generated && found < fewer->nr_generated; i++)
		found += more->words[i] == fewer->words[found];
	return found == fewer->nr_generated;
}

/* The number of innermost native frames that both have. */
static size_t nr_alike(const struct compiled_stack *a, const struct compiled_stack *b)
{
	size_t nr = 0;

	while (nr < a->nr_native && nr < b->nr_native &&
	       a->words[a->nr_generated + nr] == b->words[b->nr_generated + nr])
		nr++;
	return nr;
}

/*
 * True if @later may be what @stack was compiled to: it takes over, some of its functions are not
 * seen, or no longer, because they are compiled into their callers, and only the way from the
 * generated code into the runtime may be another one.
 */
static bool takes_over(const struct compiled_stack *later, const struct compiled_stack *stack,
		       size_t *ret_alike)
{
	bool has_more = later->nr_generated > stack->nr_generated;
	size_t nr = later->nr_native < stack->nr_native ? later->nr_native : stack->nr_native;

	*ret_alike = nr_alike(later, stack);
	return later->first_ns > stack->last_ns &&
	       (double)(later->first_ns - stack->last_ns) <=
		       MAX_PAUSE * (double)(later->last_ns - stack->first_ns) &&
	       *ret_alike > nr / 2 &&
	       (has_more ? has_functions_of(later, stack) : has_functions_of(stack, later));
}

/* Moves the first of the stacks with equal code to the front: it stands for all. Returns how many.
 */
static size_t join_same_code(struct cause_versions *versions, size_t *version_of)
{
	struct compiled_stack *list = versions->list;
	size_t nr = 0;

	qsort(list, versions->nr, sizeof(*list), compare_codes);
	for (size_t i = 0; i < versions->nr; i++) {
		struct compiled_stack stack = list[i], *first = &list[nr ? nr - 1 : 0];

		if (!nr || first->code != stack.code) {
			list[i] = list[nr];
			list[nr++] = stack;
			version_of[stack.member] = stack.member;
			continue;
		}
		version_of[stack.member] = first->member;
		if (stack.first_ns < first->first_ns)
			first->first_ns = stack.first_ns;
		if (stack.last_ns > first->last_ns)
			first->last_ns = stack.last_ns;
	}
	return nr;
}

/* Of several stacks that may take over, the one that shares most does; then the nearest. */
static void find_neighbours(struct compiled_stack *list, size_t nr)
{
	size_t alike;

	qsort(list, nr, sizeof(*list), compare_entries);
	for (size_t i = 0; i < nr; i++)
		list[i].next = list[i].previous = SIZE_MAX;
	for (size_t i = 0; i < nr; i++) {
		for (size_t k = i + 1; k < nr && k - i <= MAX_COMPARED; k++) {
			if (list[k].entry != list[i].entry)
				break;
			if (!takes_over(&list[k], &list[i], &alike))
				continue;
			if (list[i].next == SIZE_MAX || alike > list[i].next_alike) {
				list[i].next = k;
				list[i].next_alike = alike;
			}
			if (list[k].previous == SIZE_MAX || alike >= list[k].previous_alike) {
				list[k].previous = i;
				list[k].previous_alike = alike;
			}
		}
	}
}

/* Tells the members of which one they are a version, and cuts their paths. */
static void tell(const struct cause_versions *versions, struct cause_finder *finder,
		 const size_t *version_of)
{
	for (size_t i = 0; i < versions->nr; i++) {
		size_t index = versions->list[i].member;
		struct cause_member *first = &finder->members[version_of[version_of[index]]];
		uint32_t nr = (uint32_t)cause_nr_shared(first, &finder->members[index]);

		finder->members[index].version = first->counts->stack_id;
		if (nr < first->nr)
			first->nr = nr;
	}
	for (size_t i = 0; i < versions->nr; i++) {
		size_t index = versions->list[i].member;

		finder->members[index].nr = finder->members[version_of[version_of[index]]].nr;
	}
}

int cause_versions_join(struct cause_versions *versions, struct cause_finder *finder)
{
	_cleanup_free_ size_t *version_of = calloc(finder->nr_members + 1, sizeof(*version_of));
	struct compiled_stack *list = versions->list;
	size_t nr;

	if (!version_of)
		return -ENOMEM;
	if (!versions->nr)
		return 0;
	nr = join_same_code(versions, version_of);
	find_neighbours(list, nr);
	for (size_t i = 0; i < nr; i++)
		if (list[i].next != SIZE_MAX && list[list[i].next].previous == i)
			version_of[list[list[i].next].member] = version_of[list[i].member];
	tell(versions, finder, version_of);
	return 0;
}

void cause_versions_deinit(struct cause_versions *versions)
{
	for (size_t i = 0; i < versions->nr; i++)
		free(versions->list[i].words);
	free(versions->list);
}
