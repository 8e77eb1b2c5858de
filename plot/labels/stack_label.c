/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/labels/stack_label.h"

#include "common/schema/frame_name.h"
#include "common/scope.h"

#include <errno.h>
#include <string.h>

/* Of a name with template arguments, which may be long. */
#define SYMBOL_BYTES_MAX 64

/*
 * Whether @symbol is an address, "libx.so+0x1234" or "0x1234", or a function in which all programs
 * or threads begin.
 */
static bool is_unnamed(const char *symbol)
{
	static const char *const beginnings[] = {
		"_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone",
		"clone3", "__clone3"};
	const char *address = strrchr(symbol, '+');

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (strcmp(symbol, beginnings[i]) == 0)
			return true;
	address = address ? address + 1 : symbol;
	if (strncmp(address, "0x", 2) != 0)
		return false;
	return address[2] && !address[2 + strspn(address + 2, "0123456789abcdef")];
}

/* Keeps the names of a frame inside the user's, instead of the innermost one's if need be. */
static int add_inner(struct stack_label *label, const char *symbol, const char *name)
{
	_cleanup_free_ char *short_name = strdup(name);
	_cleanup_free_ char *full = strndup(symbol, SYMBOL_BYTES_MAX);

	if (!short_name || !full)
		return -ENOMEM;
	if (label->nr_inner == STACK_LABEL_INNER) {
		free(label->inner[0]);
		free(label->inner_full[0]);
		label->nr_inner--;
		for (int i = 0; i < label->nr_inner; i++) {
			label->inner[i] = label->inner[i + 1];
			label->inner_full[i] = label->inner_full[i + 1];
		}
	}
	label->inner[label->nr_inner] = steal_ptr(short_name);
	label->inner_full[label->nr_inner++] = steal_ptr(full);
	return 0;
}

static void drop_inner(struct stack_label *label)
{
	label->nr_inner--;
	free(label->inner[label->nr_inner]);
	free(label->inner_full[label->nr_inner]);
}

/*
 * Returns 1 if @frame, named *@name, is the user's frame or one further out, 0 if it comes before
 * the user's, or -ENOMEM.
 */
static int find_user(struct stack_label *label, const struct frame_facts *frame, char **name)
{
	struct frame_facts facts = *frame;

	if (label->search.is_over)
		return 1;
	if (add_inner(label, frame->name, *name))
		return -ENOMEM;
	/* The search compares with the innermost frame's module. */
	if (label->search.at == BEFORE_INNERMOST && frame->module) {
		facts.module = label->module = strdup(frame->module);
		if (!label->module)
			return -ENOMEM;
	}
	if (user_frame_is_better(&label->search, &facts) && !label->search.is_over) {
		free(label->wrapper);
		label->wrapper = steal_ptr(*name);
	}
	if (label->search.is_over)
		drop_inner(label);
	return label->search.is_over;
}

/* Returns 0 or -ENOMEM. */
static int add_place(struct stack_label *label, const struct stack_label_place *place)
{
	if (label->nr >= STACK_LABEL_PLACES)
		return 0;
	if (place->line)
		label->lines[label->nr] = strdup(place->line);
	if (place->offset)
		label->offsets[label->nr] = strdup(place->offset);
	return (place->line && !label->lines[label->nr]) ||
			       (place->offset && !label->offsets[label->nr])
		       ? -ENOMEM
		       : 0;
}

int stack_label_add(struct stack_label *label, const struct frame_facts *frame,
		    const struct stack_label_place *place)
{
	_cleanup_free_ char *name = NULL;
	const char *symbol = frame->name;
	int is_outside;

	if (label->nr == STACK_LABEL_FRAMES)
		return 0;
	name = frame_name_short(symbol, STACK_LABEL_NAME_CHARS);
	if (!name)
		return -ENOMEM;
	is_outside = find_user(label, frame, &name);
	if (is_outside <= 0)
		return is_outside;
	if (label->nr && strcmp(label->names[label->nr - 1], name) == 0)
		return 0;
	if (label->nr && is_unnamed(symbol) && is_unnamed(label->names[0])) {
		if (!label->unnamed)
			label->unnamed = steal_ptr(name);
		return 0;
	}
	if (add_place(label, place))
		return -ENOMEM;
	label->names[label->nr++] = steal_ptr(name);
	return 0;
}

/* The number of innermost names that both have in common. */
static int nr_common(const struct stack_label *a, const struct stack_label *b)
{
	int nr = 0;

	while (nr < a->nr && nr < b->nr && strcmp(a->names[nr], b->names[nr]) == 0)
		nr++;
	return nr;
}

static bool is_same_name(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether labels with the same names have the same text. */
static bool looks_alike(const struct stack_label *a, const struct stack_label *b)
{
	if (a->nr == 0)
		return is_same_name(a->wrapper, b->wrapper);
	return a->nr > 1 || is_same_name(a->unnamed, b->unnamed);
}

/* What tells labels with the same names apart. The later ones are for what shares the others. */
enum detail { DETAIL_NONE, DETAIL_LINE, DETAIL_VIA, DETAIL_VIA_FULL, DETAIL_OFFSET };

struct distinct_place {
	enum detail detail;
	int at; /* the index of a name; with DETAIL_VIA: how far inside the user's frame */
};

static bool is_via(enum detail detail)
{
	return detail == DETAIL_VIA || detail == DETAIL_VIA_FULL;
}

/* The name of frame number @at inside the user's; NULL if there is none. */
static const char *inner_name(const struct stack_label *label, enum detail detail, int at)
{
	char *const *names = detail == DETAIL_VIA ? label->inner : label->inner_full;

	return at < label->nr_inner ? names[label->nr_inner - 1 - at] : NULL;
}

/* Finds the first place that differs. */
static struct distinct_place find_place(const struct stack_label *a, const struct stack_label *b)
{
	for (int i = 0; i < a->nr && i < STACK_LABEL_PLACES; i++)
		if (!is_same_name(a->lines[i], b->lines[i]))
			return (struct distinct_place){DETAIL_LINE, i};
	for (enum detail detail = DETAIL_VIA; a->nr && is_via(detail); detail++)
		for (int i = 0; i < STACK_LABEL_INNER; i++)
			if (!is_same_name(inner_name(a, detail, i), inner_name(b, detail, i)))
				return (struct distinct_place){detail, i};
	for (int i = 0; i < a->nr && i < STACK_LABEL_PLACES; i++)
		if (!is_same_name(a->offsets[i], b->offsets[i]))
			return (struct distinct_place){DETAIL_OFFSET, i};
	return (struct distinct_place){DETAIL_NONE, 0};
}

/*
 * The first name that tells @label apart from all others of @legend; 0 if there is none.
 * *@ret_place tells it apart from those with the same names.
 */
static int distinct_name(const struct stack_label *label, const struct stack_label *const *legend,
			 size_t nr, struct distinct_place *ret_place)
{
	int most = 0;

	*ret_place = (struct distinct_place){DETAIL_NONE, 0};
	for (size_t i = 0; i < nr; i++) {
		int common = nr_common(label, legend[i]);

		if (legend[i] == label)
			continue;
		if (common == label->nr && common == legend[i]->nr) {
			struct distinct_place place = find_place(label, legend[i]);

			if (looks_alike(label, legend[i]) &&
			    (place.detail == ret_place->detail ? place.at > ret_place->at
							       : place.detail > ret_place->detail))
				*ret_place = place;
		} else if (common < label->nr && common > most)
			most = common;
	}
	return most;
}

/* " (list.c:63, via std::vector<>::push_back)"; nothing without them. */
static void print_via(FILE *out, const struct stack_label *label,
		      const struct distinct_place *place)
{
	const char *line = label->lines[0], *name = inner_name(label, place->detail, place->at);

	if (line || name)
		fprintf(out, " (%s%s%s%s)", line ? line : "", line && name ? ", " : "",
			name ? "via " : "", name ? name : "");
}

/* Writes name @i, with its place if that tells the label apart. */
static void print_name(FILE *out, const struct stack_label *label, int i,
		       const struct distinct_place *place)
{
	const char *text = NULL;

	fputs(label->names[i], out);
	if (is_via(place->detail) && i == 0)
		print_via(out, label, place);
	else if (place->detail == DETAIL_LINE && i == place->at)
		text = label->lines[i];
	else if (place->detail == DETAIL_OFFSET && i == place->at)
		text = label->offsets[i];
	if (text)
		fprintf(out, place->detail == DETAIL_OFFSET ? " (+%s)" : " (%s)", text);
}

/* Whether there is room for three names; else the middle one is left out. */
static bool has_room(const struct stack_label *label, int distinct)
{
	return strlen(label->names[0]) + strlen(label->names[1]) + strlen(label->names[distinct]) <=
	       STACK_LABEL_NAMES_BYTES;
}

char *stack_label_text(const struct stack_label *label, const struct stack_label *const *legend,
		       size_t nr)
{
	_cleanup_free_ char *text = NULL;
	struct distinct_place place;
	int distinct = distinct_name(label, legend, nr, &place);
	bool is_short;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (!is_via(place.detail) && distinct < place.at)
		distinct = place.at;
	is_short = distinct > 1 && !has_room(label, distinct);
	if (label->nr == 0 && label->wrapper)
		fputs(label->wrapper, out);
	if (label->nr)
		print_name(out, label, 0, &place);
	if (label->nr > 1 && !is_short) {
		fputs(label->unnamed ? " <- ... <- " : " <- ", out);
		print_name(out, label, 1, &place);
	} else if (label->nr < 2 && label->unnamed) {
		fprintf(out, " <- %s", label->unnamed);
	}
	if (distinct > 1) {
		fputs(distinct > 2 || is_short ? " <- ... <- " : " <- ", out);
		print_name(out, label, distinct, &place);
	}
	return fclose(out) == 0 ? steal_ptr(text) : NULL;
}

void stack_label_clear(struct stack_label *label)
{
	for (int i = 0; i < label->nr; i++)
		free(label->names[i]);
	for (int i = 0; i < STACK_LABEL_PLACES; i++) {
		free(label->lines[i]);
		free(label->offsets[i]);
	}
	while (label->nr_inner)
		drop_inner(label);
	free(label->module);
	free(label->wrapper);
	free(label->unnamed);
	*label = (struct stack_label){0};
}
