/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/gnuplot/plot_draw.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/output_file.h"
#include "common/scope.h"
#include "plot/gnuplot/end_signals.h"
#include "plot/gnuplot/gnuplot.h"

#include <errno.h>
#include <string.h>

static int write_program(const struct plot_drawing *drawing, FILE *program)
{
	struct plot_script script = {
		.program = program,
		.output = drawing->output,
		.name = drawing->name,
		.dir_fd = -1,
	};

	return drawing->write(&script, drawing->context);
}

/* Starts a gnuplot with the drawing. The caller finishes it. After a failure, none runs. */
static int start_gnuplot(const struct plot_drawing *drawing, enum gnuplot_group group,
			 struct gnuplot *ret)
{
	int err = gnuplot_start(ret, group);

	if (err)
		return err;
	err = write_program(drawing, ret->program);
	if (err)
		gnuplot_stop(ret);
	return err;
}

/* Draws in a window until it is closed or a signal arrives. */
static int draw_in_window(const struct plot_drawing *drawing)
{
	_cleanup_close_ int signal_fd = end_signals_open();
	struct gnuplot gnuplot = {0};

	if (signal_fd < 0)
		return signal_fd;
	int err = start_gnuplot(drawing, GNUPLOT_WINDOW, &gnuplot);
	return err ? err : gnuplot_finish_window(&gnuplot, signal_fd);
}

/* Draws and copies gnuplot's output to standard output. */
static int draw_to_terminal(const struct plot_drawing *drawing)
{
	struct gnuplot gnuplot = {0};
	int err = start_gnuplot(drawing, GNUPLOT_OURS, &gnuplot);

	return err ? err : gnuplot_finish(&gnuplot, STDOUT_FILENO);
}

/* The broker reports why it cannot, and its own end is reported, too. */
static int open_picture(const char *path)
{
	return broker_is_used() ? broker_open(BROKER_OPEN_OUTPUT, NULL, NULL)
				: output_file_open(path);
}

/* Opens the file when there is a picture for it: if gnuplot fails, the old one stays. */
static int draw_picture(const struct plot_drawing *drawing)
{
	_cleanup_close_ int fd = -1;
	struct gnuplot gnuplot = {0};
	int err = start_gnuplot(drawing, GNUPLOT_OURS, &gnuplot);

	if (!err)
		err = gnuplot_wait(&gnuplot);
	if (err)
		return err;
	fd = open_picture(drawing->output->path);
	err = gnuplot_take_output(&gnuplot, fd);
	if (fd < 0)
		return fd;
	if (!err)
		plot_output_tell(drawing->output);
	return err;
}

int plot_draw(const struct plot_drawing *drawing)
{
	const struct plot_output *output = drawing->output;
	int err = drawing->save ? plot_draw_save(drawing) : 0;

	if (err)
		return err;
	switch (output->kind) {
	case PLOT_OUTPUT_NONE:
		if (drawing->save)
			return 0;
		diag_error("there is no display and standard output is no terminal; write a "
			   "picture with -o FILE.png, or use --term dumb");
		return -ENODEV;
	case PLOT_OUTPUT_WINDOW:
		return draw_in_window(drawing);
	case PLOT_OUTPUT_DUMB:
		return draw_to_terminal(drawing);
	default:
		return draw_picture(drawing);
	}
}

/* A saved script draws what the user asked for; without a request, a picture. */
static struct plot_output saved_output(const struct plot_output *output)
{
	if (output->kind == PLOT_OUTPUT_NONE)
		return (struct plot_output){.kind = PLOT_OUTPUT_PNG, .terminal = "pngcairo"};
	return *output;
}

static int write_saved(const struct plot_drawing *drawing, int dir_fd, FILE *program)
{
	const struct plot_output output = saved_output(drawing->output);
	const char *suffix = plot_output_suffix(&output);
	struct plot_script script = {
		.program = program,
		.output = &output,
		.name = drawing->name,
		.dir = drawing->save,
		.dir_fd = dir_fd,
	};

	fprintf(program, "# By leakplot. In this directory, \"gnuplot -d %s.gnuplot\" draws it",
		drawing->name);
	fputs(suffix ? " as a picture:\n" : ".\n", program);
	if (suffix)
		fprintf(program, "set output '%s%s'\n", drawing->name, suffix);
	int err = drawing->write(&script, drawing->context);

	if (output.kind == PLOT_OUTPUT_WINDOW)
		fputs("pause mouse close\n", program);
	return err ? err : script.err;
}

int plot_draw_save(const struct plot_drawing *drawing)
{
	_cleanup_close_ int dir_fd = broker_is_used() ? -1 : output_dir_open(drawing->save);
	const struct plot_script files = {.dir = drawing->save, .dir_fd = dir_fd};
	_cleanup_close_ int fd = -1;
	char name[64];
	FILE *program;

	if (dir_fd < 0 && !broker_is_used())
		return dir_fd;
	snprintf(name, sizeof(name), "%s.gnuplot", drawing->name);
	fd = plot_script_open_file(&files, name);
	if (fd < 0)
		return fd;
	program = fdopen(fd, "w");
	if (!program)
		return -errno;
	steal_fd(fd);
	int err = write_saved(drawing, dir_fd, program);
	if (fclose(program) != 0 && !err) {
		err = errno ? -errno : -EIO;
		diag_error("cannot save the plot in %s: %s", drawing->save, strerror(-err));
	}
	if (!err)
		diag_note("wrote %s in %s, and its data", name, drawing->save);
	return err;
}
