/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakplot: plots leaks, or a process's memory, with gnuplot. */
#include "common/diag.h"
#include "common/options.h"
#include "tools/leakplot_options.h"

#include <errno.h>
#include <signal.h>

static int flush_stdout(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	diag_output_failed("to standard output", errno);
	return -EIO;
}

int main(int argc, char **argv)
{
	struct leakplot_options options;
	int err;

	diag_set_tool("leakplot");
	/* A gnuplot that ends early or a closed pipe is an error, which is reported. */
	signal(SIGPIPE, SIG_IGN);
	err = leakplot_options_parse(argc, argv, &options);
	if (err)
		return options_exit_status(err);
	switch (options.action) {
	case LEAKPLOT_LEAKS:
		err = leak_plot_run(&options.leaks);
		break;
	case LEAKPLOT_HISTORY:
		err = history_plot_run(&options.history);
		break;
	case LEAKPLOT_MEMORY:
		err = memory_plot_run(&options.memory);
		break;
	}
	if (!err)
		err = flush_stdout();
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}
