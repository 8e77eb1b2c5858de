/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/usdt_pool_probes.h"

#include "probes/sites/probe_arch.h"
#include "probes/elf/usdt_notes.h"

#include "common/diag.h"
#include "common/schema/resource_schema.h"
#include "common/scope.h"

#include <errno.h>
#include <string.h>

#define PROVIDER   "leaktools"
#define KIND	   "pool"
#define MAX_PROBES 64 /* The most probes of a file, as for marks. */

/* How leak_probes.h passes arguments: in the first argument registers of a call. */
#if defined(__x86_64__)
#define ALLOC_ARGUMENTS "8@%rdi 8@%rsi"
#define FREE_ARGUMENTS	"8@%rdi"
#elif defined(__aarch64__)
#define ALLOC_ARGUMENTS "8@x0 8@x1"
#define FREE_ARGUMENTS	"8@x0"
#endif

static const struct resource_kind usdt_pool_kind = {.name = KIND, .number = 1};

#define POOL_CALL(name, does)                                                                      \
	{                                                                                          \
		.schema =                                                                          \
			{                                                                          \
				.function = (name),                                                \
				.effect = RESOURCE_AT_ENTRY,                                       \
				.nr_args = 2,                                                      \
				.arg_names = {RESOURCE_FIELD_HANDLE, RESOURCE_FIELD_SIZE},         \
				.size_arg = 1,                                                     \
				.count_arg = -1,                                                   \
				.block_arg = 0,                                                    \
			},                                                                         \
		.kind = &usdt_pool_kind, .role = (does), .function = (name)                        \
	}

static const struct usdt_pool_call {
	struct resource_call call;
	const char *arguments;
} usdt_pool_calls[] = {
	{POOL_CALL(RESOURCE_POOL_GIVES, RESOURCE_GIVE), ALLOC_ARGUMENTS},
	{POOL_CALL(RESOURCE_POOL_TAKES, RESOURCE_TAKE), FREE_ARGUMENTS},
};

static const struct usdt_pool_call *find_call(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(usdt_pool_calls); i++)
		if (strcmp(usdt_pool_calls[i].call.function, name) == 0)
			return &usdt_pool_calls[i];
	return NULL;
}

const struct probe_schema *usdt_pool_probes_row(size_t nr)
{
	return nr < ARRAY_SIZE(usdt_pool_calls) ? &usdt_pool_calls[nr].call.schema : NULL;
}

bool usdt_pool_probes_has_name(const char *name)
{
	return find_call(name) != NULL;
}

/* Appends the @nth probe of the file. */
static int plan_probe(struct probe_file *file, const struct elf_image *image,
		      const struct usdt_probe *found, const struct usdt_pool_call *pool, size_t nth)
{
	const struct probe_arch *arch = probe_arch_native();
	struct resource_event event = {.kind = KIND, .role = pool->call.role};
	struct probe *probe = probe_file_append(file);

	if (!probe)
		return -ENOMEM;
	probe->schema = &pool->call.schema;
	probe->point = PROBE_ENTRY;
	probe->function_offset = probe->offset = found->offset;
	probe_arch_describe_at(image, found->offset, &probe->instruction);
	snprintf(probe->symbol, sizeof(probe->symbol), "%s", pool->call.function);
	/* Each place has an event of its own: tracefs would merge events of one name. */
	snprintf(event.function, sizeof(event.function), "%.32s_%zu", pool->call.function, nth);
	resource_event_format(&event, probe->event);
	if (asprintf(&probe->fetch_args,
		     pool->call.role == RESOURCE_GIVE ? RESOURCE_FIELD_HANDLE
			     "=%s:x64 " RESOURCE_FIELD_SIZE "=%s:u64"
						      : RESOURCE_FIELD_HANDLE "=%s:x64",
		     arch->arguments[0], arch->arguments[1]) < 0) {
		probe->fetch_args = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int plan_probes(struct probe_file *file, const struct probe_source *source)
{
	struct usdt_probes found;
	size_t nr_unusable = 0;
	int err = usdt_probes_find(source->image, PROVIDER, MAX_PROBES, &found);

	for (size_t i = 0; i < found.nr && !err; i++) {
		const struct usdt_probe *probe = &found.probes[i];
		const struct usdt_pool_call *pool = find_call(probe->name);

		if (!pool)
			continue;
		if (strcmp(probe->arguments, pool->arguments) != 0 || probe->has_semaphore)
			nr_unusable++;
		else
			err = plan_probe(file, source->image, probe, pool, file->nr_probes + 1);
	}
	if (!err && nr_unusable)
		diag_note(
			"%s: %zu of its USDT probes on pools ignored: not made by this version of "
			"<leaktools/leak_probes.h>",
			source->display, nr_unusable);
	usdt_probes_deinit(&found);
	return err;
}

int usdt_pool_probes_plan_file(struct probe_set *set, const struct probe_source *source)
{
	struct probe_file file = {.fd = -1, .has_resources = true};
	struct group_name name;
	int err = plan_probes(&file, source);

	if (!err && file.nr_probes) {
		err = probe_file_set_source(&file, source, "pools", &name);
		if (!err)
			err = probe_file_set_group(&file, &name);
		if (!err)
			err = probe_set_append(set, &file);
	}
	probe_file_deinit(&file);
	return err;
}
