/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/formats/pprof_profile.h"

#include "report/names/word_table.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A growing array of pointers to messages, as protobuf-c takes them. */
struct list {
	void **items;
	size_t nr, max;
};

/* The key of a message within its table. Names are compared as pointers. */
struct known {
	struct known_key {
		uint64_t table;
		uint64_t words[3];
	} key;
	uint64_t number; /* from 1 */
	UT_hash_handle hh;
};

enum { TABLE_FUNCTION, TABLE_MAPPING, TABLE_LOCATION };

struct pprof_profile {
	struct name_pool *names;
	struct named_stack stack;
	struct list samples, mappings, locations, functions, strings;
	bool has_program; /* the first mapping is the program */
	struct known *known;
};

static void *list_add(struct list *list, size_t size)
{
	void *item;

	if (list->nr == list->max) {
		size_t max = list->max ? 2 * list->max : 64;
		void **items = realloc(list->items, max * sizeof(*items));

		if (!items)
			return NULL;
		list->items = items;
		list->max = max;
	}
	item = calloc(1, size);
	if (item)
		list->items[list->nr++] = item;
	return item;
}

static void list_free(struct list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		free(list->items[i]);
	free(list->items);
}

struct pprof_profile *pprof_profile_create(void)
{
	struct pprof_profile *profile = calloc(1, sizeof(*profile));
	const char *name;

	if (!profile)
		return NULL;
	profile->names = name_pool_create();
	profile->stack.names = profile->names;
	/* String 0 is the empty string (profile.proto). */
	if (!profile->names || name_pool_add(profile->names, "", &name)) {
		pprof_profile_destroy(profile);
		return NULL;
	}
	return profile;
}

void pprof_profile_destroy(struct pprof_profile *profile)
{
	struct known *known, *next;

	if (!profile)
		return;
	for (size_t i = 0; i < profile->samples.nr; i++) {
		Pprof__Sample *sample = profile->samples.items[i];

		free(sample->location_id);
		free(sample->value);
	}
	for (size_t i = 0; i < profile->locations.nr; i++) {
		Pprof__Location *location = profile->locations.items[i];

		for (size_t k = 0; k < location->n_line; k++)
			free(location->line[k]);
		free(location->line);
	}
	list_free(&profile->samples);
	list_free(&profile->mappings);
	list_free(&profile->locations);
	list_free(&profile->functions);
	list_free(&profile->strings);
	HASH_ITER (hh, profile->known, known, next) {
		HASH_DEL(profile->known, known);
		free(known);
	}
	named_stack_deinit(&profile->stack);
	name_pool_destroy(profile->names);
	free(profile);
}

/*
 * Gets the number of the message with @key, of a table of @nr messages. Returns 1 if it is new,
 * else 0 or -ENOMEM.
 */
static int look_up(struct pprof_profile *profile, const struct known_key *key, size_t nr,
		   uint64_t *ret)
{
	struct known *known;

	WORD_TABLE_FIND(profile->known, key, known);
	if (known) {
		*ret = known->number;
		return 0;
	}
	known = calloc(1, sizeof(*known));
	if (!known)
		return -ENOMEM;
	known->key = *key;
	known->number = nr + 1;
	*ret = known->number;
	WORD_TABLE_ADD(profile->known, key, known);
	if (hash_added(known))
		return 1;
	free(known);
	return -ENOMEM;
}

static int64_t string_number(const char *name)
{
	return name ? name_pool_number(name) : 0;
}

static int get_function(struct pprof_profile *profile, const struct named_frame *frame,
			uint64_t *ret)
{
	const struct known_key key = {
		TABLE_FUNCTION,
		{(uintptr_t)frame->name, (uintptr_t)frame->file, (uintptr_t)frame->module}};
	int err = look_up(profile, &key, profile->functions.nr, ret);
	Pprof__Function *function;

	if (err <= 0)
		return err;
	function = list_add(&profile->functions, sizeof(*function));
	if (!function)
		return -ENOMEM;
	pprof__function__init(function);
	function->id = *ret;
	function->name = function->system_name = string_number(frame->name);
	function->filename = string_number(frame->file);
	return 0;
}

static int get_mapping(struct pprof_profile *profile, const struct named_frame *frame,
		       uint64_t *ret)
{
	const struct known_key key = {TABLE_MAPPING, {(uintptr_t)frame->module}};
	Pprof__Mapping *mapping;
	int err;

	*ret = 0;
	if (!frame->module)
		return 0;
	err = look_up(profile, &key, profile->mappings.nr, ret);
	if (err <= 0)
		return err;
	mapping = list_add(&profile->mappings, sizeof(*mapping));
	if (!mapping)
		return -ENOMEM;
	pprof__mapping__init(mapping);
	mapping->id = *ret;
	mapping->filename = string_number(frame->module);
	/* Keeps pprof from symbolising the profile again. */
	mapping->has_functions = mapping->has_filenames = mapping->has_line_numbers = true;
	mapping->has_inline_frames = true;
	return 0;
}

/* Puts the mapping with _start first: pprof takes the first mapping for the program. */
static void find_program(struct pprof_profile *profile, const struct named_frame *frame,
			 uint64_t mapping_id)
{
	void **mappings = profile->mappings.items;

	if (profile->has_program || !mapping_id || strcmp(frame->name, "_start") != 0)
		return;
	for (size_t i = 0; i < profile->mappings.nr; i++) {
		Pprof__Mapping *mapping = mappings[i];

		if (mapping->id != mapping_id)
			continue;
		mappings[i] = mappings[0];
		mappings[0] = mapping;
		profile->has_program = true;
	}
}

/* Sets the lines of a location: the inlined frames, then the function that contains them. */
static int set_lines(struct pprof_profile *profile, Pprof__Location *location,
		     const struct named_frame *frames, size_t nr)
{
	void **lines = calloc(nr, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	location->line = (Pprof__Line **)lines;
	for (size_t i = 0; i < nr; i++) {
		Pprof__Line *line = calloc(1, sizeof(*line));
		int err;

		if (!line)
			return -ENOMEM;
		location->line[location->n_line++] = line;
		pprof__line__init(line);
		line->line = frames[i].line;
		err = get_function(profile, &frames[i], &line->function_id);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Processes may map a file at different addresses, so the address of a location is its offset in
 * the file.
 */
static int get_location(struct pprof_profile *profile, const struct named_frame *frames, size_t nr,
			uint64_t *ret)
{
	const struct named_frame *frame = &frames[nr - 1];
	const struct known_key key = {TABLE_LOCATION,
				      {(uintptr_t)frame->module,
				       frame->module ? frame->module_offset : frame->address,
				       (uintptr_t)frame->name}};
	int err = look_up(profile, &key, profile->locations.nr, ret);
	Pprof__Location *location;

	if (err <= 0)
		return err;
	location = list_add(&profile->locations, sizeof(*location));
	if (!location)
		return -ENOMEM;
	pprof__location__init(location);
	location->id = *ret;
	location->address = key.words[1];
	err = get_mapping(profile, frame, &location->mapping_id);
	if (!err)
		find_program(profile, frame, location->mapping_id);
	return err ? err : set_lines(profile, location, frames, nr);
}

int pprof_profile_add(struct pprof_profile *profile, struct stack_store *store, uint32_t stack_id,
		      int64_t blocks, int64_t bytes)
{
	struct named_stack *stack = &profile->stack;
	Pprof__Sample *sample = list_add(&profile->samples, sizeof(*sample));
	size_t first = 0;
	int err = sample ? 0 : -ENOMEM;

	if (sample)
		pprof__sample__init(sample);
	if (!err)
		err = named_stack_load_frames(stack, store, stack_id);
	if (err)
		return err;
	sample->location_id = calloc(stack->nr + 1, sizeof(*sample->location_id));
	sample->value = calloc(2, sizeof(*sample->value));
	if (!sample->location_id || !sample->value)
		return -ENOMEM;
	sample->value[0] = blocks;
	sample->value[1] = bytes;
	sample->n_value = 2;
	for (size_t i = 0; i < stack->nr && !err; i++) {
		if (stack->frames[i].inlined && i + 1 < stack->nr)
			continue;
		err = get_location(profile, &stack->frames[first], i + 1 - first,
				   &sample->location_id[sample->n_location_id++]);
		first = i + 1;
	}
	return err;
}

/* A copy with control characters and invalid UTF-8 escaped: protobuf strings must be UTF-8. */
static char *escaped_copy(const char *name)
{
	char *copy;
	size_t size;
	FILE *out = open_memstream(&copy, &size);

	if (!out)
		return NULL;
	diag_print_escaped(out, name, NULL);
	if (fclose(out) == 0)
		return copy;
	free(copy);
	return NULL;
}

/* Fills profile->strings. */
static int make_strings(struct pprof_profile *profile)
{
	size_t nr = name_pool_size(profile->names);
	_cleanup_free_ const char **names = calloc(nr, sizeof(*names));
	struct list *strings = &profile->strings;

	strings->items = calloc(nr, sizeof(*strings->items));
	if (!names || !strings->items)
		return -ENOMEM;
	name_pool_list(profile->names, names);
	for (size_t i = 0; i < nr; i++) {
		strings->items[strings->nr] = escaped_copy(names[i]);
		if (!strings->items[strings->nr])
			return -ENOMEM;
		strings->nr++;
	}
	return 0;
}

static int name_type(struct pprof_profile *profile, const char *type, const char *unit,
		     Pprof__ValueType *ret)
{
	const char *type_name, *unit_name;
	int err = name_pool_add(profile->names, type, &type_name);

	if (!err)
		err = name_pool_add(profile->names, unit, &unit_name);
	if (err)
		return err;
	pprof__value_type__init(ret);
	ret->type = string_number(type_name);
	ret->unit = string_number(unit_name);
	return 0;
}

int pprof_profile_pack(struct pprof_profile *profile, int64_t duration_ns, uint8_t **ret,
		       size_t *ret_size)
{
	Pprof__Profile message;
	Pprof__ValueType blocks, bytes;
	int err = name_type(profile, "inuse_objects", "count", &blocks);

	*ret = NULL;
	if (!err)
		err = name_type(profile, "inuse_space", "bytes", &bytes);
	if (!err)
		err = make_strings(profile);
	if (err)
		return err;
	pprof__profile__init(&message);
	message.sample_type = (Pprof__ValueType *[]){&blocks, &bytes};
	message.n_sample_type = 2;
	message.default_sample_type = bytes.type;
	message.duration_nanos = duration_ns;
	message.sample = (Pprof__Sample **)profile->samples.items;
	message.n_sample = profile->samples.nr;
	message.mapping = (Pprof__Mapping **)profile->mappings.items;
	message.n_mapping = profile->mappings.nr;
	message.location = (Pprof__Location **)profile->locations.items;
	message.n_location = profile->locations.nr;
	message.function = (Pprof__Function **)profile->functions.items;
	message.n_function = profile->functions.nr;
	message.string_table = (char **)profile->strings.items;
	message.n_string_table = profile->strings.nr;
	*ret_size = pprof__profile__get_packed_size(&message);
	*ret = malloc(*ret_size ? *ret_size : 1);
	if (!*ret)
		return -ENOMEM;
	pprof__profile__pack(&message, *ret);
	return 0;
}
