/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/wrapper_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void wrappers_are_known(void **state)
{
	static const char *const wrappers[] = {
		"malloc",	  "posix_memalign",    "operator new",	   "operator new[]",
		"g_malloc0",	  "xstrdup",	       "std::vector<int>", "strdup",
		"__libc_calloc",  "__GI___mmap64",     "mmap64",	   "__sbrk",
		"zmalloc_usable", "ztrymalloc_usable", "zcalloc_num",	   "xmalloc",
		"xzalloc",	  "lrealloc",	       "CRYPTO_zalloc",	   "kmalloc64"};
	static const char *const others[] = {
		"main",	    "operator newer", "my_malloc_test", "standard", "allocate", "",
		"demalloc", "xmallocate",     "_zmalloc",	"x",	    "xtry"};

	for (size_t i = 0; i < sizeof(wrappers) / sizeof(*wrappers); i++)
		assert_true(wrapper_names_have(wrappers[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(wrapper_names_have(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrappers_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
