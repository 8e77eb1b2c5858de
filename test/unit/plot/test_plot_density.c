/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/labels/plot_colours.h"
#include "plot/leaks/leak_density.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void leaks_go_to_their_cells(void **state)
{
	struct leak_density density;
	struct leak_density_cell cell;

	assert_int_equal(leak_density_init(&density, 10, 4, 3), 0);
	leak_density_add(&density, 0.05, 0.1, 0);
	leak_density_add(&density, 0.09, 0.2, 2);
	leak_density_add(&density, 0.01, 0, 2);
	leak_density_add(&density, 0.1, 0.1, 1);
	cell = leak_density_cell(&density, 0, 0);
	assert_int_equal(cell.nr, 3);
	assert_int_equal(cell.series, 2);
	assert_int_equal(leak_density_cell(&density, 1, 0).nr, 1);
	assert_int_equal(leak_density_cell(&density, 2, 0).nr, 0);
	assert_int_equal(leak_density_max(&density), 3);
	leak_density_deinit(&density);
}

static void leaks_outside_count_at_the_edge(void **state)
{
	const double outside[] = {1, 1.5, 1e300, INFINITY};
	struct leak_density density;

	assert_int_equal(leak_density_init(&density, 10, 4, 1), 0);
	for (size_t i = 0; i < 4; i++) {
		leak_density_add(&density, outside[i], outside[i], 0);
		leak_density_add(&density, -outside[i], -outside[i], 0);
	}
	leak_density_add(&density, NAN, NAN, 0);
	assert_int_equal(leak_density_cell(&density, 9, 3).nr, 4);
	assert_int_equal(leak_density_cell(&density, 0, 0).nr, 5);
	leak_density_deinit(&density);
}

static void shades_follow_the_logarithm(void **state)
{
	assert_int_equal(leak_density_step(1, 1, 6), 5);
	assert_int_equal(leak_density_step(1, 1000, 6), 0);
	assert_int_equal(leak_density_step(1000, 1000, 6), 5);
	for (uint64_t nr = 2; nr <= 1000; nr++)
		assert_true(leak_density_step(nr, 1000, 6) >= leak_density_step(nr - 1, 1000, 6));
}

/* The relative luminance of a colour (ITU-R BT.709). */
static double luminance(uint32_t colour)
{
	return 0.2126 * (colour >> 16 & 0xff) + 0.7152 * (colour >> 8 & 0xff) +
	       0.0722 * (colour & 0xff);
}

static void shades_become_darker(void **state)
{
	for (size_t rank = 0; rank <= PLOT_RANKS; rank++) {
		double before = 256;

		for (size_t step = 0; step < 6; step++) {
			uint32_t shade = plot_shade(plot_rank_colour(rank), step, 6);

			assert_true(luminance(shade) < before);
			before = luminance(shade);
		}
		/* The palest shade is visible on white. */
		assert_true(luminance(plot_shade(plot_rank_colour(rank), 0, 6)) < 235);
	}
	assert_int_equal(plot_shade(0x0072b2, 0, 1), plot_shade(0x0072b2, 5, 6));
}

static void verdicts_are_found_by_name(void **state)
{
	for (enum plot_verdict verdict = 0; verdict < PLOT_NO_VERDICT; verdict++)
		assert_int_equal(plot_verdict_find(plot_verdict_look(verdict)->name), verdict);
	assert_int_equal(plot_verdict_find("growths"), PLOT_NO_VERDICT);
	assert_int_equal(plot_verdict_find(NULL), PLOT_NO_VERDICT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaks_go_to_their_cells),
		cmocka_unit_test(leaks_outside_count_at_the_edge),
		cmocka_unit_test(shades_follow_the_logarithm),
		cmocka_unit_test(shades_become_darker),
		cmocka_unit_test(verdicts_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
