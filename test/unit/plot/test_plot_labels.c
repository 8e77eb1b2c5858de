/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/labels/stack_label.h"

#include "common/schema/frame_name.h"
#include "common/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_short(const char *symbol, size_t max_chars, const char *expected)
{
	char *name = frame_name_short(symbol, max_chars);

	assert_non_null(name);
	assert_string_equal(name, expected);
	free(name);
}

static void names_lose_brackets(void **state)
{
	assert_short("main", 40, "main");
	assert_short("cache::Map<std::string, std::vector<int> >::insert", 40,
		     "cache::Map<>::insert");
	assert_short("cache::put(int, void (*)(char))", 40, "cache::put");
	assert_short("(anonymous namespace)::load", 40, "load");
	assert_short("a::(anonymous namespace)::load() const", 40, "a::load");
	assert_short("a::name[abi:cxx11](int)", 40, "a::name");
	assert_short("a::f(int) [clone .part.0]", 40, "a::f");
	assert_short("a::{lambda(int)#1}::operator()", 40, "a::{lambda#1}::operator()");
	assert_short("a::operator<< <char>", 40, "a::operator<< <char>");
	assert_short("a::operator->", 40, "a::operator->");
	assert_short("a::operator+<char, b<char> >(int)", 40, "a::operator+<>");
	assert_short("a::operator()<int>", 40, "a::operator()<>");
	assert_short("server::open::h0123456789abcdef", 40, "server::open");
	assert_short("<a::B<c> as d::E>::f", 40, "<a::B<> as d::E>::f");
}

static void names_of_compiled_lisp_are_read(void **state)
{
	assert_short("F6d616b652d6672616d65_make_frame_0", 40, "make_frame");
	assert_short("F6d616b652d6672616d65_make_frame_12", 40, "make_frame");
	assert_short("F6d616b652d6672616d65_make_frames_0", 40,
		     "F6d616b652d6672616d65_make_frames_0");
	assert_short("F6d616b652d6672616d65_make_frame", 40, "F6d616b652d6672616d65_make_frame");
	assert_short("F6d616b652d6672616d65_make_frame_", 40, "F6d616b652d6672616d65_make_frame_");
	assert_short("F", 40, "F");
	assert_short("F_", 40, "F_");
	assert_short("Fab", 40, "Fab");
	assert_short("Face_detect_0", 40, "Face_detect_0");
}

static void other_names_are_kept(void **state)
{
	assert_short("</script><script>x=1</script>", 40, "</script><script>x=1</script>");
	assert_short("a::b<c", 40, "a::b<c");
	assert_short("a::b(c", 40, "a::b(c");
	assert_short("a::>>)", 40, "a::>>)");
	assert_short("", 40, "");
	assert_short("::", 40, "::");
	assert_short("libx.so+0x1234", 40, "libx.so+0x1234");
}

static void long_names_lose_outer_scopes_first(void **state)
{
	assert_short("one::two::three::four", 16, "...three::four");
	assert_short("one::two::three::four", 21, "one::two::three::four");
	assert_short("a_function_with_a_long_name", 12, "a_functio...");
	assert_short("one::a_function_with_a_long_name", 12, "a_functio...");
	assert_short("\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc", 5, "\u00e4\u00f6...");
}

static void add_frames(struct stack_label *label, const char *const *frames)
{
	for (; *frames; frames++) {
		/* "NAME @FILE:LINE#OFFSET" */
		const char *at = strstr(*frames, " @"), *hash = strchr(*frames, '#');
		_cleanup_free_ char *name = strndup(*frames, strcspn(*frames, "@") - (at != NULL));
		_cleanup_free_ char *line = at ? strndup(at + 2, strcspn(at + 2, "#")) : NULL;
		size_t module_len = strcspn(name, "+");
		_cleanup_free_ char *module = strndup(name, module_len);
		bool has_symbol = !name[module_len];
		const struct stack_label_place place = {
			.line = line && *line ? line : NULL,
			.offset = hash ? hash + 1 : NULL,
		};

		assert_int_equal(stack_label_add(label,
						 &(struct frame_facts){
							 .name = name,
							 .module = has_symbol ? NULL : module,
							 .has_symbol = has_symbol,
						 },
						 &place),
				 0);
	}
}

static void assert_label(const char *const *frames, const char *expected)
{
	struct stack_label label = {0};
	char *text;

	add_frames(&label, frames);
	text = stack_label_text(&label, NULL, 0);
	assert_string_equal(text, expected);
	free(text);
	stack_label_clear(&label);
}

static void labels_begin_with_the_user(void **state)
{
	assert_label((const char *[]){"malloc", "first", "second", "third", NULL},
		     "first <- second");
	assert_label((const char *[]){"malloc", "operator new", "std::vector<int>::reserve",
				      "Cache::fill", "main", NULL},
		     "Cache::fill <- main");
	assert_label((const char *[]){"malloc", "parse", "parse", "parse", "main", NULL},
		     "parse <- main");
	/* Instances of a template have the same short name. */
	assert_label((const char *[]){"malloc", "a::f<int>", "a::f<char>", "main", NULL},
		     "a::f<> <- main");
	/* The next name replaces an address. */
	assert_label((const char *[]){"malloc", "lib.so+0x12", "lib.so+0x34", "lib.so+0x56",
				      "FcFontMatch", "main", NULL},
		     "lib.so+0x12 <- ... <- FcFontMatch");
	assert_label((const char *[]){"malloc", "lib.so+0x12", "FcFontMatch", NULL},
		     "lib.so+0x12 <- FcFontMatch");
	assert_label((const char *[]){"malloc", "lib.so+0x12", "0x7f0012", "0x7f0034", NULL},
		     "lib.so+0x12 <- 0x7f0012");
	assert_label(
		(const char *[]){"malloc", "x+0x12", "x+0x34", "__libc_start_main", "_start", NULL},
		"x+0x12 <- x+0x34");
	assert_label((const char *[]){"malloc", "FcFontMatch", "lib.so+0x12", "main", NULL},
		     "FcFontMatch <- lib.so+0x12");
	/* After the first function, a wrapper is kept. */
	assert_label((const char *[]){"malloc", "first", "xmalloc", NULL}, "first <- xmalloc");
	assert_label((const char *[]){"malloc", "operator new", NULL}, "operator new");
	assert_label((const char *[]){"malloc", "operator new", "std::f", NULL}, "operator new");
	assert_label((const char *[]){"malloc", NULL}, "malloc");
	/* The allocation function is skipped whatever its name, and its module if it is stripped.
	 */
	assert_label((const char *[]){"pool_get", "first", "second", NULL}, "first <- second");
	assert_label((const char *[]){"libc.so+0x1", "libc.so+0x2", "x+0x3", "x+0x4", NULL},
		     "x+0x3 <- x+0x4");
	assert_label((const char *[]){NULL}, "");
}

static void a_pool_is_the_user(void **state)
{
	struct stack_label label = {.search.is_pool = true};
	char *text;

	add_frames(&label, (const char *[]){"pool_get", "first", NULL});
	text = stack_label_text(&label, NULL, 0);
	assert_string_equal(text, "pool_get <- first");
	free(text);
	stack_label_clear(&label);
}

/* The labels of a legend. */
static void assert_legend(const char *const *const *stacks, const char *const *expected)
{
	struct stack_label labels[6] = {0};
	const struct stack_label *legend[6];
	size_t nr = 0;

	for (; stacks[nr]; nr++) {
		add_frames(&labels[nr], stacks[nr]);
		legend[nr] = &labels[nr];
	}
	for (size_t i = 0; i < nr; i++) {
		char *text = stack_label_text(legend[i], legend, nr);

		assert_string_equal(text, expected[i]);
		free(text);
	}
	for (size_t i = 0; i < nr; i++)
		stack_label_clear(&labels[i]);
}

/* The innermost function is the allocator's. */
#define STACK(...)                                                                                 \
	(const char *[])                                                                           \
	{                                                                                          \
		"malloc", __VA_ARGS__, NULL                                                        \
	}

static void labels_of_a_legend_differ(void **state)
{
	assert_legend((const char *const *const[]){STACK("add", "put", "a1", "b", "c1", "main"),
						   STACK("add", "put", "a1", "b", "c2", "main"),
						   STACK("add", "put", "a2", "b", "c1", "main"),
						   STACK("add", "main"), NULL},
		      (const char *const[]){"add <- put <- ... <- c1", "add <- put <- ... <- c2",
					    "add <- put <- a2", "add <- main"});
	/* One stack is the beginning of the other. */
	assert_legend((const char *const *const[]){STACK("add", "put"), STACK("add", "put", "main"),
						   NULL},
		      (const char *const[]){"add <- put", "add <- put <- main"});
	/* Without room, the middle name is left out. */
	assert_legend(
		(const char *const *const[]){
			STACK("libfontconfig.so.1.12.0+0x234d9", "FcFontRenderPrepare", "load_one"),
			STACK("libfontconfig.so.1.12.0+0x234d9", "FcFontRenderPrepare", "load_two"),
			NULL},
		(const char *const[]){"libfontconfig.so.1.12.0+0x234d9 <- ... <- load_one",
				      "libfontconfig.so.1.12.0+0x234d9 <- ... <- load_two"});
	/* They differ within a function: in lines, else in offsets. */
	assert_legend(
		(const char *const *const[]){STACK("add @a.c:1#0x1", "put @a.c:7#0x2", "main"),
					     STACK("add @a.c:1#0x1", "put @a.c:8#0x2", "main"),
					     STACK("add @a.c:2#0x1", "put @a.c:8#0x2", "main"),
					     STACK("get @a.c:2#0x1", "main"), NULL},
		(const char *const[]){"add <- put (a.c:7)", "add <- put (a.c:8)",
				      "add (a.c:2) <- put", "get <- main"});
	assert_legend(
		(const char *const *const[]){STACK("add @#0x1", "put @#0x2", "x", "main @#0x3"),
					     STACK("add @#0x1", "put @#0x2", "x", "main @#0x4"),
					     NULL},
		(const char *const[]){"add <- put <- ... <- main (+0x3)",
				      "add <- put <- ... <- main (+0x4)"});
	assert_legend((const char *const *const[]){STACK("add @a.c:1#0x1", "put @a.c:7#0x2"),
						   STACK("add @a.c:1#0x9", "put @a.c:7#0x2"),
						   STACK("add @a.c:1#0x1", "put @a.c:8#0x2"), NULL},
		      (const char *const[]){"add (+0x1) <- put", "add (+0x9) <- put",
					    "add <- put (a.c:8)"});
	/* They differ in nothing, or in frames that are not kept. */
	assert_legend((const char *const *const[]){STACK("add", "put", "main"),
						   STACK("add", "put", "main"),
						   STACK("get", "main"), NULL},
		      (const char *const[]){"add <- put", "add <- put", "get <- main"});
	assert_legend(
		(const char *const *const[]){STACK("1", "2", "3", "4", "5", "6", "7", "8", "9"),
					     STACK("1", "2", "3", "4", "5", "6", "7", "8"), NULL},
		(const char *const[]){"1 <- 2", "1 <- 2"});
	/* Names that are not shown do not tell labels apart. */
	assert_legend((const char *const *const[]){STACK("x+0x1", "x+0x2", "add"),
						   STACK("x+0x1", "x+0x3", "add"), NULL},
		      (const char *const[]){"x+0x1 <- ... <- add", "x+0x1 <- ... <- add"});
	assert_legend((const char *const *const[]){STACK("x+0x1", "x+0x2"), STACK("x+0x1", "x+0x3"),
						   STACK("malloc"), STACK("operator new"), NULL},
		      (const char *const[]){"x+0x1 <- x+0x2", "x+0x1 <- x+0x3", "malloc",
					    "operator new"});
}

/* They differ in what the user's function called: with template arguments only if need be. */
static void labels_of_a_legend_differ_in_wrappers(void **state)
{
	assert_legend((const char *const *const[]){STACK("operator new", "add", "main"),
						   STACK("calloc", "add", "main"), NULL},
		      (const char *const[]){"add (via operator new) <- main",
					    "add (via calloc) <- main"});
	assert_legend(
		(const char *const *const[]){
			STACK("std::vector<int>::push_back", "serve @s.cc:19#0x1", "main"),
			STACK("std::make_shared<Session>", "serve @s.cc:19#0x2", "main"),
			STACK("std::make_shared<Peer>", "serve @s.cc:18#0x3", "main"), NULL},
		(const char *const[]){"serve (s.cc:19, via std::vector<>::push_back) <- main",
				      "serve (s.cc:19, via std::make_shared<>) <- main",
				      "serve (s.cc:18) <- main"});
	assert_legend(
		(const char *const *const[]){
			STACK("std::make_shared<Session>", "serve @s.cc:19#0x2", "main"),
			STACK("std::make_shared<Peer>", "serve @s.cc:19#0x3", "main"), NULL},
		(const char *const[]){"serve (s.cc:19, via std::make_shared<Session>) <- main",
				      "serve (s.cc:19, via std::make_shared<Peer>) <- main"});
	/* Of many, the outermost are kept. */
	assert_legend(
		(const char *const *const[]){STACK("operator new", "std::a<int>", "std::b<int>",
						   "std::c<int>", "serve", "main"),
					     STACK("operator new", "std::a<int>", "std::b<int>",
						   "std::d<int>", "serve", "main"),
					     NULL},
		(const char *const[]){"serve (via std::c<>) <- main",
				      "serve (via std::d<>) <- main"});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_lose_brackets),
		cmocka_unit_test(names_of_compiled_lisp_are_read),
		cmocka_unit_test(other_names_are_kept),
		cmocka_unit_test(long_names_lose_outer_scopes_first),
		cmocka_unit_test(labels_begin_with_the_user),
		cmocka_unit_test(a_pool_is_the_user),
		cmocka_unit_test(labels_of_a_legend_differ),
		cmocka_unit_test(labels_of_a_legend_differ_in_wrappers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
