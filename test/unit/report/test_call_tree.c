/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Merging of call paths, in both directions. */
#include "report/trees/call_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define FRAME(function, line_)                                                                     \
	{                                                                                          \
		.name = (function), .module = "/bin/x", .file = "x.c", .line = (line_)             \
	}

static struct call_tree *tree;

static void make(const struct call_tree_options *options)
{
	assert_int_equal(call_tree_create(options, &tree), 0);
}

static void add(const char *group, const struct named_frame *frames, size_t nr, int64_t bytes)
{
	const struct call_weights weights = {
		.of = {[CALL_HELD_BYTES] = bytes, [CALL_HELD_BLOCKS] = 1},
	};

	assert_int_equal(call_tree_add_frames(tree, group, frames, nr, &weights), 0);
}

static size_t nr_nodes(void)
{
	size_t nr = 0;

	for (const struct call_node *node = call_tree_root(tree); node; node = call_tree_next(node))
		nr++;
	return nr;
}

/* "main 30+0(f 20+20)(g 10+10)": name, total, self, children in order. Destroys the tree. */
static void assert_tree(const char *expected)
{
	char text[1024] = "";
	size_t len = 0;
	uint32_t depth = 0;

	call_tree_sort(tree, CALL_HELD_BYTES);
	for (const struct call_node *node = call_tree_next(call_tree_root(tree)); node;
	     node = call_tree_next(node)) {
		for (; depth >= node->depth; depth--)
			len += (size_t)snprintf(text + len, sizeof(text) - len, ")");
		depth = node->depth;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "(%s %lld+%lld", node->name,
					(long long)node->total.of[CALL_HELD_BYTES],
					(long long)node->self.of[CALL_HELD_BYTES]);
	}
	for (; depth > 0; depth--)
		len += (size_t)snprintf(text + len, sizeof(text) - len, ")");
	assert_string_equal(text, expected);
	call_tree_destroy(tree);
}

static const struct named_frame by_f[] = {FRAME("malloc", 1), FRAME("f", 2), FRAME("main", 3)};
static const struct named_frame by_g[] = {FRAME("malloc", 1), FRAME("g", 5), FRAME("main", 9)};

static void both_directions(void **state)
{
	make(&(struct call_tree_options){0});
	add(NULL, by_f, 3, 10);
	add(NULL, by_g, 3, 20);
	add(NULL, by_g, 2, 5);
	assert_int_equal(call_tree_root(tree)->total.of[CALL_HELD_BLOCKS], 3);
	assert_tree("(malloc 35+0(g 25+5(main 20+20))(f 10+0(main 10+10)))");

	make(&(struct call_tree_options){.main_first = true});
	add(NULL, by_f, 3, 10);
	add(NULL, by_g, 3, 20);
	assert_int_equal(nr_nodes(), 6);
	assert_int_equal(call_tree_root(tree)->first->first_line, 3);
	assert_int_equal(call_tree_root(tree)->first->last_line, 9);
	assert_tree("(main 30+0(g 20+0(malloc 20+20))(f 10+0(malloc 10+10)))");
}

static void the_innermost_frames_only(void **state)
{
	make(&(struct call_tree_options){.main_first = true, .max_depth = 2});
	add(NULL, by_f, 3, 10);
	add(NULL, by_g, 3, 20);
	assert_tree("(g 20+0(malloc 20+20))(f 10+0(malloc 10+10))");
}

static void by_module_neighbours_are_one(void **state)
{
	struct named_frame frames[] = {FRAME("malloc", 1), FRAME("f", 2), FRAME("main", 3)};

	frames[0].module = "/lib/c";
	frames[0].file = NULL;
	make(&(struct call_tree_options){.merge = CALL_BY_MODULE});
	add(NULL, frames, 3, 10);
	assert_tree("(/lib/c 10+0(/bin/x 10+10))");
	make(&(struct call_tree_options){.merge = CALL_BY_FILE});
	add(NULL, frames, 3, 10);
	assert_tree("(/lib/c 10+0(x.c 10+10))");
}

static void groups_come_first(void **state)
{
	make(&(struct call_tree_options){.main_first = true});
	add("64 bytes", by_f, 1, 64);
	add("32 bytes", by_f, 1, 32);
	add("64 bytes", by_f, 1, 64);
	assert_tree("(64 bytes 128+0(malloc 128+128))(32 bytes 32+0(malloc 32+32))");
}

/* Modules tell equal names apart, and sums saturate. */
static void hostile_values(void **state)
{
	struct named_frame other = by_f[0];

	other.module = "/bin/y";
	make(&(struct call_tree_options){0});
	add(NULL, by_f, 1, INT64_MAX);
	add(NULL, by_f, 1, INT64_MAX);
	add(NULL, &other, 1, -4);
	add(NULL, NULL, 0, 0);
	assert_int_equal(call_tree_root(tree)->nr_children, 2);
	assert_tree("(malloc 9223372036854775807+9223372036854775807)(malloc -4+-4)");
}

static void nodes_have_a_limit(void **state)
{
	struct named_frame deep[3000];
	char names[3000][8];

	for (int i = 0; i < 3000; i++) {
		snprintf(names[i], sizeof(names[i]), "f%d", i);
		deep[i] = (struct named_frame){.name = names[i], .module = "/bin/x"};
	}
	make(&(struct call_tree_options){.max_nodes = 2});
	add(NULL, deep, 3000, 7);
	assert_int_equal(call_tree_nr_cut(tree), 1);
	assert_tree("(f0 7+0(f1 7+7))");

	make(&(struct call_tree_options){0});
	add(NULL, deep, 3000, 7);
	call_tree_sort(tree, CALL_HELD_BYTES);
	assert_int_equal(nr_nodes(), 3001);
	call_tree_destroy(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_directions),
		cmocka_unit_test(the_innermost_frames_only),
		cmocka_unit_test(by_module_neighbours_are_one),
		cmocka_unit_test(groups_come_first),
		cmocka_unit_test(hostile_values),
		cmocka_unit_test(nodes_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
