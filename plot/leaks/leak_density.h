/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many leaks as a map: the plot's area is cut into cells, and each cell says how many leaks are in
 * it and which series has most of them. Its size does not grow with the number of leaks.
 */
#ifndef LEAKTOOLS_PLOT_LEAK_DENSITY_H
#define LEAKTOOLS_PLOT_LEAK_DENSITY_H

#include <stdint.h>

struct leak_density {
	uint32_t columns, rows, nr_series;
	uint32_t *counts; /* [row][column][series]; they stay at UINT32_MAX */
};

struct leak_density_cell {
	uint64_t nr;	 /* 0: it is empty */
	uint32_t series; /* that most are of */
};

/* Returns 0, or -ENOMEM after reporting it. */
int leak_density_init(struct leak_density *density, uint32_t columns, uint32_t rows,
		      uint32_t nr_series);
void leak_density_deinit(struct leak_density *density);

/* A leak at @x and @y, 0 to 1 of the area; what is outside goes to its edge. */
void leak_density_add(struct leak_density *density, double x, double y, uint32_t series);

struct leak_density_cell leak_density_cell(const struct leak_density *density, uint32_t column,
					   uint32_t row);

/* The most leaks in one cell. */
uint64_t leak_density_max(const struct leak_density *density);

/* Which of @steps shades a cell of @nr leaks gets, where the fullest one has @max: by logarithm. */
uint32_t leak_density_step(uint64_t nr, uint64_t max, uint32_t steps);

#endif
