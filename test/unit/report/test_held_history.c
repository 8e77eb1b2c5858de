/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares the history of held amounts with a naive model. Also tests JSON strings. */
#include "common/json/json_text.h"
#include "common/scope.h"
#include "report/formats/held_history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define NR_STACKS 7
#define NR_BLOCKS 200

static struct heap_change change_of(bool enters, uint64_t time_ns, uint32_t stack, uint64_t bytes)
{
	return (struct heap_change){
		.enters = enters,
		.block = {.size_bytes = bytes,
			  .size_known = true,
			  .allocated = {.stack_id = stack}},
		.op = {.time_ns = time_ns},
	};
}

static void equals_a_naive_model(void **state)
{
	struct held_history *history = held_history_create(NULL);
	struct {
		uint32_t stack;
		uint64_t bytes; /* 0: free */
	} blocks[NR_BLOCKS] = {{0}};
	uint64_t held[NR_STACKS] = {0}, at_peak[NR_STACKS] = {0};
	uint64_t total = 0, most = 0, most_ns = 0, time_ns = 1000, random = 1;
	uint64_t start_ns, period_ns, peak_ns;
	size_t nr;

	for (int i = 0; i < 20000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		size_t index = (random >> 33) % NR_BLOCKS;
		bool enters = !blocks[index].bytes;

		if (enters) {
			blocks[index].stack = (uint32_t)((random >> 45) % NR_STACKS);
			blocks[index].bytes = 1 + (random >> 50);
		}
		struct heap_change change = change_of(enters, time_ns += 100000,
						      blocks[index].stack, blocks[index].bytes);
		held_history_change(history, &change);
		held[blocks[index].stack] += enters ? blocks[index].bytes : -blocks[index].bytes;
		total += enters ? blocks[index].bytes : -blocks[index].bytes;
		if (!enters)
			blocks[index].bytes = 0;
		if (total > most) {
			most = total;
			most_ns = time_ns;
			memcpy(at_peak, held, sizeof(held));
		}
	}
	assert_int_equal(held_history_peak(history, &peak_ns).bytes, most);
	assert_int_equal(peak_ns, most_ns);
	for (uint32_t i = 0; i < NR_STACKS; i++)
		assert_int_equal(held_history_at_peak(history, i).bytes, at_peak[i]);
	const struct held_amount *points = held_history_points(history, &nr, &start_ns, &period_ns);
	assert_true(nr > HELD_POINTS / 2 && nr <= HELD_POINTS);
	assert_int_equal(points[nr - 1].bytes, total);
	assert_in_range(time_ns, start_ns + (nr - 1) * period_ns, start_ns + nr * period_ns - 1);
	assert_int_equal(held_history_error(history), 0);
	held_history_destroy(history);
}

static void periods_without_changes(void **state)
{
	struct held_history *history = held_history_create(NULL);
	struct heap_change first = change_of(true, 5, 1, 100);
	struct heap_change second = change_of(true, 5 + (UINT64_C(100) << 20), 1, 10);
	struct heap_change late = change_of(false, UINT64_MAX, 1, 100);
	struct heap_change early = change_of(true, 0, 1, 1);
	const struct held_amount *points;
	uint64_t start_ns, period_ns;
	size_t nr;

	held_history_points(history, &nr, &start_ns, &period_ns);
	assert_int_equal(nr, 0);
	held_history_change(history, &first);
	held_history_change(history, &second);
	points = held_history_points(history, &nr, &start_ns, &period_ns);
	assert_int_equal(nr, 101);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(points[i].bytes, 100);
	assert_int_equal(points[100].bytes, 110);

	/* The clock may jump in either direction. */
	held_history_change(history, &late);
	held_history_change(history, &early);
	points = held_history_points(history, &nr, &start_ns, &period_ns);
	assert_in_range(nr, HELD_POINTS / 2, HELD_POINTS);
	assert_int_equal(points[0].bytes, 110);
	assert_int_equal(points[nr - 2].bytes, 110);
	assert_int_equal(points[nr - 1].bytes, 11);
	held_history_destroy(history);
}

static void of_one_size(void **state)
{
	const struct size_range size = {100, 200};
	struct held_history *history = held_history_create(&size);
	struct heap_change changes[] = {change_of(true, 1, 1, 99), change_of(true, 2, 1, 150),
					change_of(false, 4, 1, 150)};
	uint64_t peak_ns;

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		held_history_change(history, &changes[i]);
	assert_int_equal(held_history_peak(history, &peak_ns).bytes, 150);
	assert_int_equal(peak_ns, 2);
	assert_int_equal(held_history_at_peak(history, 12345).bytes, 0);
	held_history_destroy(history);
}

static void assert_json(const char *text, const char *expected)
{
	char *written;
	size_t size;
	FILE *out = open_memstream(&written, &size);

	json_write_string(out, text);
	fclose(out);
	assert_string_equal(written, expected);
	free(written);
}

static void strings_of_json(void **state)
{
	assert_json(NULL, "null");
	assert_json("", "\"\"");
	assert_json("a\"b\\c\n\t\x01\x7f", "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\"");
	assert_json("</script>", "\"\\u003c/script>\"");
	assert_json("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		    "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
	/* Cut off, overlong, a surrogate, beyond U+10FFFF, a lone continuation byte. */
	assert_json("\xe2\x82", "\"\\ufffd\\ufffd\"");
	assert_json("\xc0\xaf", "\"\\ufffd\\ufffd\"");
	assert_json("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");
	assert_json("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	assert_json("\xffx\x80", "\"\\ufffdx\\ufffd\"");
	assert_json("\xe2\x80\xa8", "\"\\u2028\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_a_naive_model),
		cmocka_unit_test(periods_without_changes),
		cmocka_unit_test(of_one_size),
		cmocka_unit_test(strings_of_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
