/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakplot: plots leaks, or a process's memory, with gnuplot. */
#include "common/diag.h"
#include "common/options.h"
#include "common/broker/named_file.h"
#include "plot/gnuplot/gnuplot_services.h"
#include "tools/leakplot_options.h"
#include "tools/separation.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static int flush_stdout(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	diag_output_failed("to standard output", errno);
	return -EIO;
}

static int open_input(void *context, const struct broker_request *request, int *ret_fd)
{
	const char *input = context;

	if (strcmp(input, request->text) != 0)
		return -EPERM;
	*ret_fd = named_file_open(input);
	return *ret_fd < 0 ? *ret_fd : 0;
}

struct services {
	const char *input;
	struct gnuplot_services gnuplot;
};

static int add_services(const void *context, struct broker_service services[BROKER_NR_OPS])
{
	const struct services *named = context;

	services[BROKER_OPEN_INPUT] = (struct broker_service){open_input, (void *)named->input};
	gnuplot_services_add(services, &named->gnuplot);
	return 0;
}

/* Plots a file, which another user may have written. */
static int plot_file(const struct leakplot_options *options)
{
	bool is_history = options->action == LEAKPLOT_HISTORY;
	struct plot_output output;
	int err = plot_output_choose(options->output, options->term, &output);
	const struct services services = {
		.input = options->leaks.input,
		.gnuplot =
			{
				.has_window = !err && output.kind == PLOT_OUTPUT_WINDOW,
				.save = options->leaks.save,
				.name = is_history ? history_plot_name(options->history.kind)
						   : LEAK_PLOT_NAME,
			},
	};
	const struct separation separation = {
		.output = options->output,
		.add_services = add_services,
		.end_services = gnuplot_services_end,
		.context = &services,
	};

	if (!err)
		err = separation_begin(&separation);
	if (err)
		return err;
	err = is_history ? history_plot_run(&options->history, &output)
			 : leak_plot_run(&options->leaks, &output);
	separation_end();
	return err;
}

int main(int argc, char **argv)
{
	struct leakplot_options options;
	int err;

	diag_begin("leakplot");
	/* A gnuplot that ends early or a closed pipe is an error, which is reported. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	err = leakplot_options_parse(argc, argv, &options);
	if (err)
		return options_exit_status(err);
	switch (options.action) {
	case LEAKPLOT_LEAKS:
	case LEAKPLOT_HISTORY:
		err = plot_file(&options);
		break;
	case LEAKPLOT_MEMORY:
		err = memory_plot_run(&options.memory);
		break;
	}
	if (!err)
		err = flush_stdout();
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}
