/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which size of the rings leakrec recommends after losses. */
#include "recorder/drain/ring_advice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static struct ring_losses losses(uint64_t lost, uint64_t sample_bytes)
{
	return (struct ring_losses){
		.most_lost = lost,
		.sample_bytes = sample_bytes,
		.pages = 16,
		.page_bytes = 4096,
		.most_pages = 4096,
	};
}

static uint32_t pages_for(uint64_t lost, uint64_t sample_bytes)
{
	const struct ring_losses of = losses(lost, sample_bytes);

	return ring_advice_pages(&of);
}

static void what_was_lost_has_room(void **state)
{
	assert_int_equal(pages_for(1, 100), 32);
	assert_int_equal(pages_for(16, 4096), 32);
	assert_int_equal(pages_for(17, 4096), 64);
	assert_int_equal(pages_for(4096 - 16, 4096), 4096);
	/* More than a ring may have. */
	assert_int_equal(pages_for(4096 - 15, 4096), 0);
	assert_int_equal(pages_for(UINT64_MAX, 4096), 0);
	assert_int_equal(pages_for(UINT64_MAX, 1), 0);
}

static void expect_text(const struct ring_losses *of, const char *expected)
{
	char text[160];

	ring_advice_text(text, sizeof(text), of);
	assert_string_equal(text, expected);
}

static void the_text_names_an_option(void **state)
{
	struct ring_losses of = losses(1, 100);

	expect_text(&of, "a ring of 16 pages had no room for 1 event; -m 32 has room for as many");
	of.most_lost = 100000000;
	expect_text(&of, "a ring of 16 pages had no room for 100000000 events; that is more than "
			 "any ring holds: record less, as with --size");
	of.most_lost = 0;
	expect_text(&of, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_lost_has_room),
		cmocka_unit_test(the_text_names_an_option),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
