/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/tracefs/uprobe_list.h"

#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>

static void uprobe_deinit(struct uprobe *probe)
{
	free(probe->group);
	free(probe->event);
	free(probe->path);
	free(probe->fetch_args);
}

void uprobe_list_deinit(struct uprobe_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		uprobe_deinit(&list->probes[i]);
	free(list->probes);
	*list = (struct uprobe_list){0};
}

/*
 * Parses "p:GROUP/EVENT PATH:0xOFFSET NAME=ARG ..." or "r:...". The offset may be followed by
 * "(0xREFCOUNT)": trace_uprobe_show() in the kernel's kernel/trace/trace_uprobe.c (6.1). @line is
 * cut apart. Returns 0, -EINVAL or -ENOMEM.
 */
static int parse_event(char *line, struct uprobe *ret)
{
	char *saved, *name, *place, *rest, *slash, *colon, *end;

	if ((line[0] != 'p' && line[0] != 'r') || line[1] != ':')
		return -EINVAL;
	name = strtok_r(line + 2, " ", &saved);
	place = strtok_r(NULL, " ", &saved);
	rest = strtok_r(NULL, "", &saved);
	slash = name ? strchr(name, '/') : NULL;
	colon = place ? strrchr(place, ':') : NULL;
	if (!slash || !colon)
		return -EINVAL;
	*slash = '\0';
	*colon = '\0';
	*ret = (struct uprobe){.is_return = line[0] == 'r'};
	ret->offset = strtoull(colon + 1, &end, 16);
	if (end == colon + 1 || (*end && *end != '('))
		return -EINVAL;
	ret->group = strdup(name);
	ret->event = strdup(slash + 1);
	ret->path = strdup(place);
	ret->fetch_args = strdup(rest ? rest : "");
	if (!ret->group || !ret->event || !ret->path || !ret->fetch_args) {
		uprobe_deinit(ret);
		return -ENOMEM;
	}
	return 0;
}

int uprobe_list_parse(struct uprobe_list *ret, const char *events)
{
	_cleanup_free_ char *text = strdup(events);
	char *saved;

	*ret = (struct uprobe_list){0};
	if (!text)
		return -ENOMEM;
	for (char *line = strtok_r(text, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
		struct uprobe probe, *grown;
		int err = parse_event(line, &probe);

		if (err == -EINVAL)
			continue;
		grown = err ? NULL : reallocarray(ret->probes, ret->nr + 1, sizeof(*grown));
		if (!grown) {
			if (!err)
				uprobe_deinit(&probe);
			uprobe_list_deinit(ret);
			return -ENOMEM;
		}
		ret->probes = grown;
		ret->probes[ret->nr++] = probe;
	}
	return 0;
}

/* Parses "  PATH EVENT HITS", perhaps with a column of misses, as kprobe_profile has. */
static int add_profile_line(struct uprobe *probe, char *line)
{
	char *saved, *path, *event, *hits, *misses;

	path = strtok_r(line, " \t", &saved);
	event = strtok_r(NULL, " \t", &saved);
	hits = strtok_r(NULL, " \t", &saved);
	misses = strtok_r(NULL, " \t", &saved);
	if (!hits || strcmp(path, probe->path) != 0 || strcmp(event, probe->event) != 0)
		return -EAGAIN;
	probe->hits = strtoull(hits, NULL, 10);
	probe->has_hits = true;
	probe->has_misses = misses != NULL;
	probe->misses = misses ? strtoull(misses, NULL, 10) : 0;
	return 0;
}

int uprobe_list_add_profile(struct uprobe_list *list, const char *profile)
{
	_cleanup_free_ char *text = strdup(profile);
	char *saved;
	size_t nr = 0;

	if (!text)
		return -ENOMEM;
	for (char *line = strtok_r(text, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
		if (nr == list->nr || add_profile_line(&list->probes[nr], line))
			return -EAGAIN;
		nr++;
	}
	return nr == list->nr ? 0 : -EAGAIN;
}

const struct uprobe *uprobe_list_find(const struct uprobe_list *list, const char *group,
				      const char *event)
{
	for (size_t i = 0; i < list->nr; i++)
		if (strcmp(list->probes[i].group, group) == 0 &&
		    strcmp(list->probes[i].event, event) == 0)
			return &list->probes[i];
	return NULL;
}

bool uprobe_list_has_others(const struct uprobe_list *list, const struct uprobe *probe)
{
	for (size_t i = 0; i < list->nr; i++)
		if (&list->probes[i] != probe && strcmp(list->probes[i].group, probe->group) == 0 &&
		    strcmp(list->probes[i].event, probe->event) == 0)
			return true;
	return false;
}
