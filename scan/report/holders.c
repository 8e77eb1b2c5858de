/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/report/holders.h"

#include "common/diag.h"
#include "common/hash.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "scan/marking/nearest_roots.h"
#include "unwind/names/demangler.h"

#include <errno.h>
#include <inttypes.h>

#define MAX_SYMBOL_BYTES 64 /* of a name; longer ones are cut */
#define MAX_MODULE_BYTES 32
#define MIN_ARENA_BYTES	 (256u << 10) /* CPython's ARENA_SIZE until 3.9; later 1 MiB */

/* The id of mappings without a name: this, and the logarithm of their size. */
#define UNNAMED (UINT64_C(1) << 63)

/*
 * The most telling roots are the first: the name of a variable says more than the frame that uses
 * it, and old pointers lie on stacks. The bytes of other memory may be an allocator's.
 */
enum rank { RANK_VARIABLE, RANK_STACK, RANK_REGISTER, RANK_OTHER, NR_RANKS };

/* Words of roots that have one name. */
struct holder {
	struct holder_key {
		uint64_t kind; /* enum root_kind; ROOT_DATA: of a module; ROOT_CODE: other memory */
		uint64_t id;   /* the address of a variable; else the owner of the range */
	} key;
	const struct root_range *range; /* its first word */
	uint64_t offset;
	uint16_t group;
	uint64_t bytes;
	/* Of mappings without a name: how many, the last one, and the sizes of one. */
	size_t nr_mappings, last_mapping;
	uint64_t min_bytes, max_bytes;
	unsigned number; /* 0: not among the largest */
	UT_hash_handle hh;
};

struct holders {
	struct scan_report *report;
	struct holder *by_key;
	struct holder **by_group; /* [group]; [NEAREST_NONE] is NULL */
	size_t nr;		  /* of them, with the first */
};

/* --- which words belong together --- */

static unsigned rank_of(void *context, const struct root_range *range)
{
	const struct holders *holders = context;
	struct scan_report *report = holders->report;
	struct module_place place;

	switch (range->kind) {
	case ROOT_DATA:
		/* The last word, as other memory may follow a module's data in one mapping. */
		module_symbols_find(report->symbols, report->scan->snapshot,
				    range->address + range->size_bytes - 8, &place);
		return place.module ? RANK_VARIABLE : RANK_OTHER;
	case ROOT_STACK:
		return RANK_STACK;
	case ROOT_REGISTER:
	case ROOT_VECTOR:
		return RANK_REGISTER;
	case ROOT_RED_ZONE:
		return NR_RANKS;
	default:
		return RANK_OTHER;
	}
}

static uint64_t mapping_bytes(const struct snapshot *snapshot, size_t mapping)
{
	return snapshot->regions[mapping].end - snapshot->regions[mapping].start;
}

static struct holder_key key_of(struct scan_report *report, const struct root_range *range,
				uint64_t offset)
{
	const struct snapshot *snapshot = report->scan->snapshot;
	uint64_t address = range->address + offset;
	struct module_place place;

	switch (range->kind) {
	case ROOT_DATA:
	case ROOT_CODE:
		module_symbols_find(report->symbols, snapshot, address, &place);
		if (place.module)
			return (struct holder_key){ROOT_DATA,
						   place.symbol ? address - place.offset : address};
		if (snapshot->regions[range->owner].path[0])
			return (struct holder_key){ROOT_CODE, range->owner};
		/* There may be thousands: those of about the same size are one holder. */
		return (struct holder_key){
			ROOT_CODE,
			UNNAMED | (63 - (unsigned)__builtin_clzll(
						mapping_bytes(snapshot, range->owner) | 1))};
	case ROOT_VECTOR:
		return (struct holder_key){ROOT_REGISTER, range->owner};
	default:
		return (struct holder_key){range->kind, range->owner};
	}
}

static unsigned hash_of(const struct holder_key *key)
{
	const uint64_t words[] = {key->kind, key->id};

	return (unsigned)hash_words(words, ARRAY_SIZE(words), hash_seed());
}

static struct holder *add_holder(struct holders *holders, const struct holder_key *key)
{
	size_t nr = holders->nr ? holders->nr : 1;
	struct holder *holder, **grown;

	if (nr > NEAREST_MAX_GROUPS)
		return NULL;
	if ((nr & (nr - 1)) == 0) {
		grown = reallocarray(holders->by_group, nr * 2, sizeof(struct holder *));
		if (!grown)
			return NULL;
		holders->by_group = grown;
	}
	holder = calloc(1, sizeof(*holder));
	if (!holder)
		return NULL;
	holder->key = *key;
	HASH_ADD_BYHASHVALUE(hh, holders->by_key, key, sizeof(holder->key), hash_of(key), holder);
	if (!hash_added(holder)) {
		free(holder);
		return NULL;
	}
	holder->group = (uint16_t)nr;
	holders->by_group[NEAREST_NONE] = NULL;
	holders->by_group[nr] = holder;
	holders->nr = nr + 1;
	return holder;
}

/* Words come in the order of their addresses. */
static void count_mapping(struct holder *holder, const struct snapshot *snapshot, size_t mapping)
{
	uint64_t bytes = mapping_bytes(snapshot, mapping);

	if (holder->nr_mappings && holder->last_mapping == mapping)
		return;
	if (!holder->nr_mappings || bytes < holder->min_bytes)
		holder->min_bytes = bytes;
	if (bytes > holder->max_bytes)
		holder->max_bytes = bytes;
	holder->last_mapping = mapping;
	holder->nr_mappings++;
}

/* Too many, or no memory: the word has no name. */
static uint16_t group_of(void *context, const struct root_range *range, uint64_t offset)
{
	struct holders *holders = context;
	struct holder_key key = key_of(holders->report, range, offset);
	struct holder *holder;

	HASH_FIND_BYHASHVALUE(hh, holders->by_key, &key, sizeof(key), hash_of(&key), holder);
	if (!holder) {
		holder = add_holder(holders, &key);
		if (!holder)
			return NEAREST_NONE;
		holder->range = range;
		holder->offset = offset;
	}
	if (key.kind == ROOT_CODE && key.id & UNNAMED)
		count_mapping(holder, holders->report->scan->snapshot, range->owner);
	return holder->group;
}

static void deinit_holders(struct holders *holders)
{
	HASH_CLEAR(hh, holders->by_key);
	for (size_t i = 0; i < holders->nr; i++)
		free(holders->by_group[i]);
	free(holders->by_group);
}

/* --- their names --- */

/* A long name is cut. */
static void write_cut(FILE *out, const char *name, size_t max_bytes)
{
	char text[MAX_SYMBOL_BYTES + 1];
	bool is_cut = strlen(name) > max_bytes;

	snprintf(text, is_cut ? max_bytes - 2 : sizeof(text), "%s", name);
	diag_print_escaped(out, text, NULL);
	if (is_cut)
		fputs("...", out);
}

static void write_variable(FILE *out, const struct module_place *place)
{
	_cleanup_free_ char *plain = place->symbol ? demangle(place->symbol) : NULL;

	if (plain || place->symbol) {
		write_cut(out, plain ? plain : place->symbol, MAX_SYMBOL_BYTES);
		fputs(" (", out);
		write_cut(out, place->module, MAX_MODULE_BYTES);
		fputc(')', out);
	} else {
		write_cut(out, place->module, MAX_MODULE_BYTES);
		fprintf(out, "+0x%" PRIx64, place->offset);
	}
}

/* Python has its objects in mappings without a name, which it calls arenas. */
static bool has_python(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_regions; i++) {
		const char *slash = strrchr(snapshot->regions[i].path, '/');

		if (slash && (strncmp(slash, "/python3", strlen("/python3")) == 0 ||
			      strncmp(slash, "/libpython3", strlen("/libpython3")) == 0))
			return true;
	}
	return false;
}

/* "an anonymous mapping of 8.00 KiB", "7 anonymous mappings of 1.00 MiB to 1.75 MiB" */
static void write_mapping(FILE *out, const struct snapshot *snapshot, const struct holder *holder)
{
	if (!(holder->key.id & UNNAMED)) {
		fputs("the mapping of ", out);
		write_cut(out, snapshot->regions[holder->range->owner].path, MAX_SYMBOL_BYTES);
		return;
	}
	if (holder->nr_mappings == 1)
		fputs("an anonymous mapping of ", out);
	else
		fprintf(out, "%zu anonymous mappings of ", holder->nr_mappings);
	fputs(quantity_bytes((double)holder->min_bytes).text, out);
	if (holder->max_bytes > holder->min_bytes)
		fprintf(out, " to %s", quantity_bytes((double)holder->max_bytes).text);
	if (holder->min_bytes >= MIN_ARENA_BYTES && has_python(snapshot))
		fputs(" (Python's arenas?)", out);
}

static void write_name(FILE *out, struct scan_report *report, const struct holder *holder)
{
	const struct snapshot *snapshot = report->scan->snapshot;
	const struct root_range *range = holder->range;
	const char *what = "the stack";
	struct module_place place;

	switch (range->kind) {
	case ROOT_DATA:
	case ROOT_CODE:
		module_symbols_find(report->symbols, snapshot, range->address + holder->offset,
				    &place);
		if (place.module)
			write_variable(out, &place);
		else
			write_mapping(out, snapshot, holder);
		return;
	case ROOT_KERNEL:
	case ROOT_THREAD:
		holder_write_root(out, report, range->first_slot);
		return;
	case ROOT_REGISTER:
	case ROOT_VECTOR:
		what = "registers";
		break;
	case ROOT_DTV:
		what = "thread-local variables";
		break;
	default:
		break;
	}
	if (range->owner < snapshot->nr_threads)
		fprintf(out, "%s of thread %d", what, snapshot->threads[range->owner].tid);
	else
		fprintf(out, "%s of a thread that has ended", what);
}

/* --- which blocks they hold --- */

static int compare_holders(const void *a, const void *b)
{
	const struct holder *x = *(const struct holder *const *)a,
			    *y = *(const struct holder *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

static int call_with_name(struct holders *holders, const struct holder *holder,
			  int (*on_name)(void *context, unsigned number, const char *name),
			  void *context)
{
	_cleanup_free_ char *name = NULL;
	size_t size;
	FILE *out = open_memstream(&name, &size);

	if (!out)
		return -ENOMEM;
	write_name(out, holders->report, holder);
	return fclose(out) ? -ENOMEM : on_name(context, holder->number, name);
}

/* Numbers and names those with the most bytes. */
static int name_largest(struct holders *holders,
			int (*on_name)(void *context, unsigned number, const char *name),
			void *context)
{
	size_t nr = holders->nr ? holders->nr - 1 : 0;
	_cleanup_free_ struct holder **order = calloc(nr + 1, sizeof(struct holder *));
	int err = order ? 0 : -ENOMEM;

	if (err)
		return err;
	if (nr)
		memcpy(order, holders->by_group + 1, nr * sizeof(struct holder *));
	qsort(order, nr, sizeof(struct holder *), compare_holders);
	for (size_t i = 0; i < nr && i < HOLDERS_MAX && order[i]->bytes && !err; i++) {
		order[i]->number = (unsigned)i + 1;
		err = call_with_name(holders, order[i], on_name, context);
	}
	return err;
}

static int write_numbered(void *context, unsigned number, const char *name)
{
	FILE *out = context;

	fprintf(out, "# holder %u %s\n", number, name);
	return 0;
}

/* Blocks that follow each other and have the same holder. */
struct run {
	unsigned number;
	uint64_t start, end; /* no bytes: there is none */
};

static void write_run(FILE *out, const struct run *run)
{
	if (run->end > run->start)
		fprintf(out, "# held %u %" PRIu64 " 0x%" PRIx64 "\n", run->number,
			run->end - run->start, run->start);
}

static bool is_reachable(const struct scan *scan, uint32_t block)
{
	return scan->marking.states[block] & (MARK_HELD | MARK_POSSIBLE);
}

static unsigned number_of(const struct holders *holders, uint16_t group)
{
	return group == NEAREST_NONE ? 0 : holders->by_group[group]->number;
}

/* Writes all runs, if @out is not NULL. Returns their number. */
static size_t write_runs(FILE *out, const struct holders *holders, const uint16_t *groups)
{
	const struct scan *scan = holders->report->scan;
	struct run run = {0};
	size_t nr = 0;

	for (uint32_t i = 0; i < scan->heap.map.nr_blocks; i++) {
		unsigned number = number_of(holders, groups[i]);
		struct heap_block_view view;

		if (!is_reachable(scan, i))
			continue;
		if (out)
			heap_block_view(&scan->heap, i, &view);
		if (!nr || number != run.number) {
			if (out)
				write_run(out, &run);
			run.number = number;
			run.start = out ? view.address : 0;
			nr++;
		}
		run.end = out ? view.address + view.size_bytes : 0;
	}
	if (out)
		write_run(out, &run);
	return nr;
}

/* Writes the blocks that hold each @step-th byte: a share of each holder's and each stack's. */
static void write_sample(FILE *out, const struct holders *holders, const uint16_t *groups,
			 uint64_t step)
{
	const struct scan *scan = holders->report->scan;
	uint64_t at = 0;

	for (uint32_t i = 0; i < scan->heap.map.nr_blocks; i++) {
		struct heap_block_view view;

		if (!is_reachable(scan, i))
			continue;
		heap_block_view(&scan->heap, i, &view);
		at += view.size_bytes;
		if (at < step)
			continue;
		at %= step;
		write_run(out, &(struct run){number_of(holders, groups[i]), view.address,
					     view.address + view.size_bytes});
	}
}

static int find_groups(struct holders *holders, uint16_t **ret)
{
	const struct root_groups root_groups = {holders, rank_of, NR_RANKS, group_of};

	return nearest_roots_find(&holders->report->scan->marking, &root_groups, ret);
}

void holders_write(FILE *out, struct scan_report *report)
{
	const struct scan *scan = report->scan;
	struct holders holders = {.report = report};
	_cleanup_free_ uint16_t *groups = NULL;
	uint64_t bytes = 0;
	int err = find_groups(&holders, &groups);

	for (uint32_t i = 0; i < scan->heap.map.nr_blocks && !err; i++) {
		uint64_t block_bytes = is_reachable(scan, i) ? heap_block_bytes(&scan->heap, i) : 0;

		bytes += block_bytes;
		if (groups[i] != NEAREST_NONE)
			holders.by_group[groups[i]]->bytes += block_bytes;
	}
	if (!err)
		err = name_largest(&holders, write_numbered, out);
	if (!err && write_runs(NULL, &holders, groups) <= HOLDERS_MAX_LINES)
		write_runs(out, &holders, groups);
	else if (!err)
		write_sample(out, &holders, groups, bytes / HOLDERS_MAX_LINES + 1);
	deinit_holders(&holders);
	if (err)
		diag_warn("what leads to the blocks is not known: out of memory");
}

int holders_name(struct scan_report *report, const uint32_t *blocks, size_t nr,
		 int (*on_name)(void *context, unsigned number, const char *name), void *context,
		 unsigned *ret_numbers)
{
	const struct scan *scan = report->scan;
	struct holders holders = {.report = report};
	_cleanup_free_ uint16_t *groups = NULL;
	int err = find_groups(&holders, &groups);

	for (size_t i = 0; i < nr && !err; i++)
		if (blocks[i] != HEAP_NONE && groups[blocks[i]] != NEAREST_NONE &&
		    is_reachable(scan, blocks[i]))
			holders.by_group[groups[blocks[i]]]->bytes +=
				heap_block_bytes(&scan->heap, blocks[i]);
	if (!err)
		err = name_largest(&holders, on_name, context);
	for (size_t i = 0; i < nr && !err; i++)
		ret_numbers[i] = blocks[i] != HEAP_NONE && is_reachable(scan, blocks[i])
					 ? number_of(&holders, groups[blocks[i]])
					 : 0;
	deinit_holders(&holders);
	return err;
}
