/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/stacks/stack_store.h"

#include "common/scope.h"
#include "unwind/modules/address_space.h"
#include "unwind/modules/cut_file.h"
#include "unwind/modules/debuginfo.h"
#include "unwind/frames/cfi_guard.h"
#include "unwind/frames/dump_unwinder.h"
#include "unwind/modules/module.h"
#include "unwind/names/place_names.h"
#include "unwind/stacks/stack_table.h"
#include "unwind/names/symbolizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stack_store {
	char *symfs;
	struct debuginfo debuginfo;	  /* for unwinding, which must not wait for servers */
	struct debuginfo named_debuginfo; /* for names */
	struct module_table modules;
	struct address_spaces spaces;
	struct stack_table stacks;
	struct symbolizer symbolizer;
	struct place_names names;
	bool expects_names;
	struct dump_unwinder unwinder;
	pid_t last_pid; /* the process of @last_space; 0: none, or that may have changed */
	const struct address_space *last_space;

	/* Room for one stack. It is too large for the C stack. */
	uint64_t cut[STACK_MAX_FRAMES];
	uint64_t plain[STACK_MAX_FRAMES]; /* addresses without STACK_INTERRUPTED */
	struct placed_frame placed[STACK_MAX_FRAMES];
	struct unwound_stack unwound;
	struct stack_frame frames[STACK_MAX_INLINED + 1];
};

int stack_store_create(const struct stack_store_options *options, struct stack_store **ret)
{
	struct stack_store *store = calloc(1, sizeof(*store));
	const char *symfs = options ? options->symfs : NULL;
	struct debuginfo_options debuginfo = {
		.debug_dir = options ? options->debug_dir : NULL,
		.quiet = true,
		.max_expanded = CFI_GUARD_MAX_EXPANDED,
	};

	if (!store)
		return -ENOMEM;
	if (symfs && *symfs) {
		store->symfs = strdup(symfs);
		if (!store->symfs)
			goto out_of_memory;
		debuginfo.symfs = store->symfs;
	}
	if (debuginfo_init(&store->debuginfo, &debuginfo))
		goto out_of_memory;
	debuginfo.quiet = false;
	debuginfo.max_expanded = 0;
	debuginfo.ask_servers = options && options->ask_servers;
	if (debuginfo_init(&store->named_debuginfo, &debuginfo)) {
		debuginfo_deinit(&store->debuginfo);
		goto out_of_memory;
	}
	module_table_init(&store->modules, store->symfs);
	address_spaces_init(&store->spaces);
	stack_table_init(&store->stacks);
	symbolizer_init(&store->symbolizer, &store->modules, &store->named_debuginfo);
	store->expects_names = options && options->expect_names;
	if (dump_unwinder_init(&store->unwinder, &store->modules, &store->debuginfo,
			       options && options->own_vdso)) {
		stack_store_destroy(store);
		return -ENOMEM;
	}
	store->unwinder.rules.rules.time.is_limited = options && options->limit_time;
	cut_file_catch();
	*ret = store;
	return 0;

out_of_memory:
	free(store->symfs);
	free(store);
	return -ENOMEM;
}

void stack_store_destroy(struct stack_store *store)
{
	if (!store)
		return;
	dump_unwinder_deinit(&store->unwinder);
	symbolizer_deinit(&store->symbolizer);
	place_names_deinit(&store->names);
	stack_table_deinit(&store->stacks);
	address_spaces_deinit(&store->spaces);
	module_table_deinit(&store->modules);
	debuginfo_deinit(&store->named_debuginfo);
	debuginfo_deinit(&store->debuginfo);
	free(store->symfs);
	free(store);
}

static const struct address_space *find_space(struct stack_store *store, pid_t pid)
{
	if (pid != store->last_pid || pid == 0) {
		store->last_pid = pid;
		store->last_space = address_spaces_find(&store->spaces, pid);
	}
	return store->last_space;
}

int stack_store_map(struct stack_store *store, const struct stack_mapping *mapping)
{
	struct stack_mapping placed = *mapping;
	struct module *module;
	int err;

	store->last_pid = 0;
	err = module_table_get(&store->modules, mapping, &module);
	if (err)
		return err;
	/* Code without a file is identified by its address. */
	if (module && module->jit_pid)
		placed.file_offset = placed.start;
	return address_spaces_map(&store->spaces, &placed, module);
}

int stack_store_fork(struct stack_store *store, pid_t child, pid_t parent)
{
	store->last_pid = 0;
	return address_spaces_fork(&store->spaces, child, parent);
}

void stack_store_exec(struct stack_store *store, pid_t pid)
{
	store->last_pid = 0;
	address_spaces_exec(&store->spaces, pid);
}

void stack_store_exit(struct stack_store *store, pid_t pid)
{
	store->last_pid = 0;
	address_spaces_exit(&store->spaces, pid);
}

int stack_store_set_build_id(struct stack_store *store, const char *path, const uint8_t *build_id,
			     uint8_t size)
{
	return module_table_set_build_id(&store->modules, path, build_id, size);
}

int stack_store_name_place(struct stack_store *store, const char *path, uint64_t file_offset,
			   const char *function, uint64_t function_offset)
{
	const struct stack_mapping mapping = {.path = path};
	struct module *module;
	int err = module_table_get(&store->modules, &mapping, &module);

	if (err || !module)
		return err;
	return place_names_add(&store->names, module->id, file_offset, function, function_offset);
}

/*
 * A return address belongs to the call before it, which may be the last instruction of its
 * function.
 */
static struct placed_frame place(const struct address_space *space, uint64_t address, bool is_call)
{
	const struct mapping *mapping = address_space_find(space, address - is_call);

	/* No call comes before a trampoline at its mapping's start: "[uprobes]". */
	if (!mapping && is_call)
		mapping = address_space_find(space, address);
	if (!mapping)
		return (struct placed_frame){.offset = address, .is_call = is_call};
	return (struct placed_frame){
		.offset = address - mapping->start + mapping->file_offset,
		.module_id = mapping->module->id,
		.is_call = is_call,
	};
}

bool stack_store_is_code(struct stack_store *store, pid_t pid, uint64_t return_address)
{
	const struct address_space *space = find_space(store, pid);

	return space && address_space_find(space, return_address - 1);
}

static int place_and_intern(struct stack_store *store, const struct address_space *space,
			    const uint64_t *chain, size_t nr, uint32_t *ret_id)
{
	for (size_t i = 0; i < nr; i++) {
		bool is_call = i > 0 && !(chain[i] & STACK_INTERRUPTED);

		store->plain[i] = chain[i] & ~STACK_INTERRUPTED;
		store->placed[i] = place(space, store->plain[i], is_call);
	}
	return stack_table_intern(&store->stacks, store->placed, store->plain, nr, ret_id);
}

static int expect(struct stack_store *store, uint32_t module_id)
{
	int err;

	cut_file_begin();
	err = symbolizer_expect(&store->symbolizer, module_table_by_id(&store->modules, module_id));
	cut_file_end();
	return err;
}

int stack_store_begin_naming(struct stack_store *store)
{
	_cleanup_free_ bool *seen = NULL;
	int err = 0;

	if (!store->expects_names)
		return 0;
	store->expects_names = false;
	seen = calloc(store->modules.nr + 1, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	for (uint32_t id = 1; id <= store->stacks.nr; id++) {
		const struct placed_stack *stack = stack_table_find(&store->stacks, id);

		for (uint32_t i = 0; i < stack->nr && !err; i++) {
			uint32_t module_id = stack->frames[i].module_id;

			if (module_id != MODULE_NONE && !seen[module_id])
				err = expect(store, module_id);
			seen[module_id] = true;
		}
	}
	if (!err)
		symbolizer_open_expected(&store->symbolizer);
	return err;
}

int stack_store_add_callchain(struct stack_store *store, pid_t pid, const uint64_t *addresses,
			      size_t nr, uint32_t *ret_id)
{
	const struct address_space *space = find_space(store, pid);
	struct stack_chain chain;
	uint64_t hash;
	int err;

	*ret_id = STACK_NONE;
	if (!nr)
		return 0;
	if (nr > STACK_MAX_FRAMES) {
		nr = STACK_MAX_FRAMES;
		memcpy(store->cut, addresses, (nr - 1) * sizeof(*addresses));
		store->cut[nr - 1] = STACK_TRUNCATED;
		addresses = store->cut;
	}
	chain = (struct stack_chain){space ? space->generation : 0, addresses, nr};
	if (stack_table_cache_find(&store->stacks, &chain, &hash, ret_id))
		return 0;
	err = place_and_intern(store, space, addresses, nr, ret_id);
	if (!err)
		stack_table_cache_add(&store->stacks, &chain, hash, *ret_id);
	return err;
}

/*
 * Adds the function that has just returned as the innermost frame. The address it returned to
 * becomes the next one.
 */
static void push_function(struct unwound_stack *stack, uint64_t address)
{
	size_t nr = stack->nr < STACK_MAX_FRAMES ? stack->nr : STACK_MAX_FRAMES - 1;

	memmove(stack->addresses + 1, stack->addresses, nr * sizeof(*stack->addresses));
	memmove(stack->is_call + 1, stack->is_call, nr * sizeof(*stack->is_call));
	stack->addresses[0] = address;
	stack->is_call[0] = false;
	if (nr)
		stack->is_call[1] = true;
	stack->nr = nr + 1;
}

/* Marks a stack that does not reach its end, or goes on elsewhere. */
static void mark_end(struct unwound_stack *stack)
{
	size_t last = stack->nr < STACK_MAX_FRAMES ? stack->nr : STACK_MAX_FRAMES - 1;

	if (stack->complete && !stack->elsewhere)
		return;
	stack->addresses[last] = stack->elsewhere   ? STACK_ELSEWHERE
				 : stack->truncated ? STACK_TRUNCATED
						    : STACK_INCOMPLETE;
	stack->is_call[last] = last > 0;
	stack->nr = last + 1;
}

static int unwind(struct stack_store *store, const struct address_space *space,
		  const struct stack_dump *dump)
{
	int err;

	cut_file_begin();
	err = dump_unwinder_unwind(&store->unwinder, space, dump, &store->unwound);
	cut_file_end();
	if (!err && dump->returned_from && dump->is_returning && store->unwound.nr) {
		store->unwound.addresses[0] = dump->returned_from;
		store->unwound.is_call[0] = false;
	} else if (!err && dump->returned_from)
		push_function(&store->unwound, dump->returned_from);
	return err;
}

/*
 * Makes it a chain, as stack_store_add_callchain() takes it. Returns how many addresses are
 * interrupted.
 */
static size_t mark_interrupted(struct unwound_stack *stack)
{
	size_t nr = 0;

	/* Common case: no frame was interrupted. */
	if (stack->nr < 2 || !memchr(stack->is_call + 1, 0, stack->nr - 1))
		return 0;
	for (size_t i = 1; i < stack->nr; i++) {
		if (stack->is_call[i])
			continue;
		stack->addresses[i] |= STACK_INTERRUPTED;
		nr++;
	}
	return nr;
}

int stack_store_add_dump(struct stack_store *store, pid_t pid, const struct stack_dump *dump,
			 uint32_t *ret_id)
{
	const struct address_space *space = find_space(store, pid);
	struct unwound_stack *unwound = &store->unwound;

	*ret_id = STACK_NONE;
	int err = unwind(store, space, dump);
	if (err)
		return err;
	/* An empty stack needs no mark. */
	if (unwound->nr)
		mark_end(unwound);
	mark_interrupted(unwound);
	return stack_store_add_callchain(store, pid, unwound->addresses, unwound->nr, ret_id);
}

int stack_store_unwind_dump(struct stack_store *store, pid_t pid, const struct stack_dump *dump,
			    const uint64_t **ret_addresses, size_t *ret_nr,
			    struct stack_end *ret_end)
{
	struct unwound_stack *unwound = &store->unwound;
	int err = unwind(store, find_space(store, pid), dump);

	if (err)
		return err;
	*ret_addresses = unwound->addresses;
	*ret_nr = unwound->nr;
	*ret_end = (struct stack_end){
		.is_whole = unwound->complete,
		.is_truncated = unwound->truncated,
		.is_elsewhere = unwound->elsewhere,
		.nr_interrupted = mark_interrupted(unwound),
		.top = unwound->top,
	};
	return 0;
}

size_t stack_store_nr_frames(const struct stack_store *store, uint32_t id)
{
	const struct placed_stack *stack = stack_table_find(&store->stacks, id);

	return stack ? stack->nr : 0;
}

bool stack_store_has_call(const struct stack_store *store, uint32_t id, uint32_t call_id)
{
	const struct placed_stack *stack = stack_table_find(&store->stacks, id);
	const struct placed_stack *call = stack_table_find(&store->stacks, call_id);

	for (uint32_t i = 0; stack && call && i < stack->nr; i++)
		if (memcmp(&stack->frames[i], &call->frames[call->nr - 1], sizeof(*call->frames)) ==
		    0)
			return true;
	return false;
}

int stack_store_place(const struct stack_store *store, uint32_t id, size_t index,
		      struct stack_place *ret)
{
	const struct placed_stack *stack = stack_table_find(&store->stacks, id);
	const struct module *module;

	*ret = (struct stack_place){0};
	if (!stack || index >= stack->nr)
		return -EINVAL;
	module = module_table_by_id(&store->modules, stack->frames[index].module_id);
	if (!module || !module->has_file)
		return 0;
	*ret = (struct stack_place){
		.path = module->path,
		.build_id = module->build_id,
		.build_id_size = module->build_id_size,
		.file_offset = stack->frames[index].offset,
	};
	return 0;
}

static void use_recorded_name(const struct stack_store *store, const struct placed_frame *placed,
			      struct stack_frame *frame)
{
	const struct place_name *name =
		frame->function
			? NULL
			: place_names_find(&store->names, placed->module_id, placed->offset);

	if (!name)
		return;
	frame->function = name->function;
	frame->function_offset = name->function_offset;
}

int stack_store_frames(struct stack_store *store, uint32_t id, size_t index,
		       const struct stack_frame **ret, size_t *ret_nr)
{
	const struct placed_stack *stack = stack_table_find(&store->stacks, id);
	const struct placed_frame *frame;
	struct module *module;
	size_t nr = 1;

	if (!stack || index >= stack->nr)
		return -EINVAL;
	frame = &stack->frames[index];
	store->frames[0] = (struct stack_frame){0};
	module = module_table_by_id(&store->modules, frame->module_id);
	if (module) {
		int err;

		cut_file_begin();
		err = symbolizer_name(&store->symbolizer, module, frame->offset, frame->is_call,
				      store->frames, &nr);
		cut_file_end();
		if (err)
			return err;
		use_recorded_name(store, frame, &store->frames[nr - 1]);
	}
	for (size_t i = 0; i < nr; i++)
		store->frames[i].address = stack->addresses[index];
	*ret = store->frames;
	*ret_nr = nr;
	return 0;
}

int stack_store_frame(struct stack_store *store, uint32_t id, size_t index, struct stack_frame *ret)
{
	const struct stack_frame *frames;
	size_t nr;
	int err = stack_store_frames(store, id, index, &frames, &nr);

	*ret = (struct stack_frame){0};
	if (!err)
		*ret = frames[nr - 1];
	return err;
}

uint64_t stack_store_unwind_failures(const struct stack_store *store)
{
	return store->unwinder.stats.truncated + store->unwinder.stats.lost;
}

const struct stack_unwind_stats *stack_store_unwind_stats(const struct stack_store *store)
{
	return &store->unwinder.stats;
}
