/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a broker (common/broker/broker.h) does for a process without rights that draws: it starts
 * and ends one gnuplot at a time, which has no rights either, and creates the files of --save.
 */
#ifndef LEAKTOOLS_PLOT_GNUPLOT_SERVICES_H
#define LEAKTOOLS_PLOT_GNUPLOT_SERVICES_H

#include "common/broker/broker.h"

#include <stdbool.h>

struct gnuplot_services {
	bool has_window;  /* the user wants one; otherwise gnuplot gets no display */
	const char *save; /* --save, or NULL; it must live on */
	const char *name; /* of the plot, with which saved files begin; it must live on */
};

/* There is one broker: the services' state is the process's. */
void gnuplot_services_add(struct broker_service services[BROKER_NR_OPS],
			  const struct gnuplot_services *options);

/* Ends the gnuplot that the other process has left. */
void gnuplot_services_end(void);

#endif
