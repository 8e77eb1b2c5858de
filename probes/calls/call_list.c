/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/calls/call_list.h"

#include "common/number.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STACKS 8192

static const struct {
	const char *word;
	enum call_kind kind;
} kinds[] = {
	{"alloc ", CALL_ALLOCATES},
	{"release ", CALL_RELEASES},
	{"other ", CALL_IS_OTHER},
};

static int add_stack(struct call_list *list, enum call_kind kind, const char *count)
{
	const struct call_stack *last = list->nr ? &list->stacks[list->nr - 1] : NULL;
	size_t of = CALL_OF_CAUSE;
	struct call_stack *stacks;

	if (list->nr == MAX_STACKS)
		return -E2BIG;
	if (last && kind == CALL_RELEASES)
		of = last->kind == CALL_IS_OTHER ? list->nr - 1 : last->of;
	stacks = reallocarray(list->stacks, list->nr + 1, sizeof(*stacks));
	if (!stacks)
		return -ENOMEM;
	list->stacks = stacks;
	stacks[list->nr] = (struct call_stack){.kind = kind, .of = of, .first = list->nr_frames};
	return number_parse(count, &stacks[list->nr++].nr_calls) ? -EINVAL : 0;
}

/* @text: "BUILD-ID<TAB>OFFSET<TAB>PATH", with "-" for what is not known. It is cut up. */
static int add_frame(struct call_list *list, char *text)
{
	struct call_frame *frames, frame = {0};
	char *rest = NULL, *end = NULL, *build_id = strtok_r(text, "\t", &rest);
	char *offset = build_id ? strtok_r(NULL, "\t", &rest) : NULL;

	if (!list->nr || !offset)
		return -EINVAL;
	if (list->nr_frames == CALL_LIST_MAX_FRAMES)
		return -E2BIG;
	if (strspn(build_id, "0123456789abcdef") == strlen(build_id) &&
	    strlen(build_id) < sizeof(frame.build_id) && strcmp(offset, "-") != 0) {
		memcpy(frame.build_id, build_id, strlen(build_id));
		errno = 0;
		frame.landing = strtoull(offset, &end, 16);
		if (errno || *end || frame.landing > INT64_MAX)
			return -EINVAL;
	}
	frames = reallocarray(list->frames, list->nr_frames + 1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	list->frames = frames;
	frames[list->nr_frames++] = frame;
	list->stacks[list->nr - 1].nr++;
	return 0;
}

static int set_observed(struct call_list *list, const char *text)
{
	char *end;

	list->observed_s = strtod(text, &end);
	return end == text || *end || !(list->observed_s >= 0) ? -EINVAL : 0;
}

static int add_line(struct call_list *list, char *line)
{
	static const char observed[] = "observed ";

	line[strcspn(line, "\n")] = '\0';
	if (*line == '#') {
		list->is_cut |= strncmp(line, "# not ", 6) == 0;
		return 0;
	}
	if (strncmp(line, observed, strlen(observed)) == 0)
		return set_observed(list, line + strlen(observed));
	if (*line == '\t')
		return add_frame(list, line + 1);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strncmp(line, kinds[i].word, strlen(kinds[i].word)) == 0)
			return add_stack(list, kinds[i].kind, line + strlen(kinds[i].word));
	return -EINVAL;
}

int call_list_read(struct call_list *ret, FILE *from)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int err = 0;

	*ret = (struct call_list){0};
	while (!err && getline(&line, &size, from) >= 0)
		err = add_line(ret, line);
	/* The cause's own stacks come first. */
	if (err == -E2BIG) {
		ret->is_cut = true;
		err = 0;
	}
	return !err && !ret->nr ? -ENODATA : err;
}

void call_list_deinit(struct call_list *list)
{
	free(list->stacks);
	free(list->frames);
	*list = (struct call_list){0};
}
