/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/leak_density.h"

#include "common/diag.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int leak_density_init(struct leak_density *density, uint32_t columns, uint32_t rows,
		      uint32_t nr_series)
{
	*density = (struct leak_density){columns, rows, nr_series, NULL};
	density->counts = calloc((size_t)columns * rows, nr_series * sizeof(*density->counts));
	if (density->counts)
		return 0;
	diag_error("cannot draw the plot: out of memory");
	return -ENOMEM;
}

void leak_density_deinit(struct leak_density *density)
{
	free(density->counts);
	density->counts = NULL;
}

static uint32_t cell_of(double position, uint32_t nr)
{
	double cell = position * nr;

	if (!(cell > 0))
		return 0;
	return cell < nr ? (uint32_t)cell : nr - 1;
}

static uint32_t *counts_of(const struct leak_density *density, uint32_t column, uint32_t row)
{
	return density->counts +
	       ((size_t)row * density->columns + column) * (size_t)density->nr_series;
}

void leak_density_add(struct leak_density *density, double x, double y, uint32_t series)
{
	uint32_t *count =
		counts_of(density, cell_of(x, density->columns), cell_of(y, density->rows)) +
		series;

	*count += *count != UINT32_MAX;
}

struct leak_density_cell leak_density_cell(const struct leak_density *density, uint32_t column,
					   uint32_t row)
{
	const uint32_t *counts = counts_of(density, column, row);
	struct leak_density_cell cell = {0};

	for (uint32_t i = 0; i < density->nr_series; i++) {
		cell.nr += counts[i];
		if (counts[i] > counts[cell.series])
			cell.series = i;
	}
	return cell;
}

uint64_t leak_density_max(const struct leak_density *density)
{
	uint64_t max = 0;

	for (uint32_t row = 0; row < density->rows; row++) {
		for (uint32_t column = 0; column < density->columns; column++) {
			uint64_t nr = leak_density_cell(density, column, row).nr;

			if (nr > max)
				max = nr;
		}
	}
	return max;
}

uint32_t leak_density_step(uint64_t nr, uint64_t max, uint32_t steps)
{
	if (nr >= max)
		return steps - 1;
	return (uint32_t)(log((double)nr) / log((double)max) * (steps - 1));
}
