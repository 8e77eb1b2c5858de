/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Density map of many leaks: the area of the plot is divided into cells, and each cell counts its
 * leaks by series. Its size does not depend on the number of leaks.
 */
#ifndef LEAKTOOLS_PLOT_LEAK_DENSITY_H
#define LEAKTOOLS_PLOT_LEAK_DENSITY_H

#include <stdint.h>

struct leak_density {
	uint32_t columns, rows, nr_series;
	uint32_t *counts; /* [row][column][series]; saturate */
};

struct leak_density_cell {
	uint64_t nr;	 /* number of leaks */
	uint32_t series; /* with most leaks */
};

/* Returns 0, or -ENOMEM after reporting it. */
int leak_density_init(struct leak_density *density, uint32_t columns, uint32_t rows,
		      uint32_t nr_series);
void leak_density_deinit(struct leak_density *density);

/* Adds a leak at @x and @y, 0 to 1 within the area. Outside values count at the edge. */
void leak_density_add(struct leak_density *density, double x, double y, uint32_t series);

struct leak_density_cell leak_density_cell(const struct leak_density *density, uint32_t column,
					   uint32_t row);

/* The maximum number of leaks in a cell. */
uint64_t leak_density_max(const struct leak_density *density);

/* The shade, 0 to @steps - 1, of a cell with @nr of at most @max leaks. The scale is logarithmic.
 */
uint32_t leak_density_step(uint64_t nr, uint64_t max, uint32_t steps);

#endif
