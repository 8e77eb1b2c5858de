/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/resources/resource_specs.h"

#include "common/diag.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int resource_specs_add(struct resource_specs *specs, const char *option, const char *text)
{
	struct pair_spec *grown = reallocarray(specs->pairs, specs->nr + 1, sizeof(*grown));
	char why[PAIR_WHY_MAX] = "";
	int err = -ENOMEM;

	if (grown) {
		specs->pairs = grown;
		err = pair_spec_parse(text, strcmp(option, "--ref") == 0, &grown[specs->nr++], why);
	}
	if (err)
		diag_error("%s \"%s\": %s", option, text, *why ? why : strerror(-err));
	return err;
}

void resource_specs_deinit(struct resource_specs *specs)
{
	for (size_t i = 0; i < specs->nr; i++)
		pair_spec_deinit(&specs->pairs[i]);
	free(specs->pairs);
	resource_schemas_deinit(&specs->schemas);
	*specs = (struct resource_specs){0};
}
