/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/memory/memory_plot.h"

#include "common/diag.h"
#include "common/output_file.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "plot/gnuplot/end_signals.h"
#include "plot/gnuplot/gnuplot.h"
#include "plot/gnuplot/plot_draw.h"
#include "plot/memory/memory_chart.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/timerfd.h>

#define NS_PER_MS UINT64_C(1000000)
/* Reading a sample may take 1/READ_SHARE of the interval. */
#define READ_SHARE 20
/* The minimum time between two drawings. */
#define REDRAW_NS_MIN (500 * NS_PER_MS)
/* The share of the time between two drawings during which gnuplot handles the mouse. */
#define MOUSE_SHARE  0.8
#define CLEAR_SCREEN "\033[H\033[J"

/* Why the watch has ended. */
enum watch_end {
	WATCH_RUNNING,
	WATCH_EXITED, /* the process has exited */
	WATCH_SIGNAL, /* a signal of end_signals_open() has arrived */
	WATCH_CLOSED, /* the window was closed */
};

struct watch {
	const struct memory_plot_options *options;
	struct plot_output output;
	struct process_memory process;
	struct memory_history *history;
	uint64_t last_drawn_ns;
	int signal_fd;
	int timer_fd;
	int file_fd; /* of the picture */
	bool has_window;
	struct gnuplot window;
};

static int write_chart(struct plot_script *script, const void *context)
{
	const struct watch *watch = context;

	memory_chart_begin(script->output, script->program);
	memory_chart_draw(script, watch->history, watch->process.name, watch->options->pid);
	return 0;
}

/* Draws once, with a new gnuplot, to @output_fd. */
static int draw_once(const struct watch *watch, int output_fd)
{
	struct gnuplot gnuplot;

	/* In its own process group, so that a second Ctrl-C does not lose the picture. */
	int err = gnuplot_start(&gnuplot, GNUPLOT_OWN);
	if (err)
		return err;
	write_chart(&(struct plot_script){.program = gnuplot.program, .output = &watch->output},
		    watch);
	return gnuplot_finish(&gnuplot, output_fd);
}

/* Saves the plot if --save was given. */
static int save(const struct watch *watch)
{
	const struct plot_drawing drawing = {
		.name = "memory",
		.save = watch->options->save,
		.output = &watch->output,
		.write = write_chart,
		.context = watch,
	};

	return watch->options->save && watch->history->nr ? plot_draw_save(&drawing) : 0;
}

static int open_window(struct watch *watch)
{
	int err = gnuplot_start(&watch->window, GNUPLOT_WINDOW);
	if (err)
		return err;
	watch->has_window = true;
	memory_chart_begin(&watch->output, watch->window.program);
	return 0;
}

static int draw_in_window(struct watch *watch)
{
	uint64_t pause_ns = watch->options->interval_ms * NS_PER_MS;

	if (pause_ns < REDRAW_NS_MIN)
		pause_ns = REDRAW_NS_MIN;
	memory_chart_draw(
		&(struct plot_script){.program = watch->window.program, .output = &watch->output},
		watch->history, watch->process.name, watch->options->pid);
	fprintf(watch->window.program, "pause %.3f\n", (double)pause_ns / 1e9 * MOUSE_SHARE);
	/* The pidfd shows whether gnuplot has exited. */
	fflush(watch->window.program);
	return gnuplot_check_display(&watch->window);
}

static int draw_in_terminal(const struct watch *watch)
{
	if (!isatty(STDOUT_FILENO))
		return 0;
	fputs(CLEAR_SCREEN, stdout);
	fflush(stdout);
	return draw_once(watch, STDOUT_FILENO);
}

static int print_numbers(const struct watch *watch, const struct memory_sample *sample)
{
	uint64_t since_ns = sample->time_ns - watch->history->first.time_ns;

	if (watch->history->nr == 1)
		puts("# time_s rss_bytes heap_bytes");
	printf("%" PRIu64 ".%03" PRIu64 " %" PRIu64 " %" PRIu64 "\n", since_ns / 1000000000,
	       since_ns / NS_PER_MS % 1000, sample->rss_bytes, sample->heap_bytes);
	/* main() reports errors of standard output. */
	return fflush(stdout) == 0 ? 0 : -errno;
}

/* Shows the current values while a picture is pending. */
static void print_progress(const struct memory_sample *sample)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\rRSS %s, heap %s; Ctrl-C ends and draws the picture\033[K",
		quantity_size(sample->rss_bytes).text, quantity_size(sample->heap_bytes).text);
}

static int show(struct watch *watch, const struct memory_sample *sample)
{
	bool is_due = sample->time_ns - watch->last_drawn_ns >= REDRAW_NS_MIN;

	if (watch->output.kind == PLOT_OUTPUT_NONE)
		return print_numbers(watch, sample);
	if (!is_due && watch->history->nr > 1)
		return 0;
	watch->last_drawn_ns = sample->time_ns;
	if (watch->output.kind == PLOT_OUTPUT_WINDOW)
		return draw_in_window(watch);
	if (watch->output.kind == PLOT_OUTPUT_DUMB)
		return draw_in_terminal(watch);
	print_progress(sample);
	return 0;
}

/* Reads and shows a sample. Sets *@ret_end if the process has exited. */
static int read_sample(struct watch *watch, enum watch_end *ret_end)
{
	struct memory_sample sample;

	int err = process_memory_read(&watch->process, &sample);
	if (err == -ESRCH) {
		*ret_end = WATCH_EXITED;
		return 0;
	}
	if (err)
		return err;
	memory_history_add(watch->history, &sample);
	return show(watch, &sample);
}

/* Waits for the next event. Sets *@ret_end if it ends the watch. */
static int wait_for_event(const struct watch *watch, enum watch_end *ret_end)
{
	/* poll() ignores negative descriptors. */
	struct pollfd fds[] = {
		{.fd = watch->signal_fd, .events = POLLIN},
		{.fd = watch->has_window ? watch->window.process.pidfd : -1, .events = POLLIN},
		{.fd = watch->process.pidfd, .events = POLLIN},
		{.fd = watch->timer_fd, .events = POLLIN},
	};
	uint64_t expirations;

	if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		*ret_end = WATCH_SIGNAL;
	else if (fds[1].revents)
		*ret_end = WATCH_CLOSED;
	else if (fds[2].revents)
		*ret_end = WATCH_EXITED;
	else if (fds[3].revents && read(watch->timer_fd, &expirations, sizeof(expirations)) < 0)
		return -errno;
	return 0;
}

static int watch_loop(struct watch *watch, enum watch_end *ret_end)
{
	int err = 0;

	*ret_end = WATCH_RUNNING;
	while (!err && *ret_end == WATCH_RUNNING) {
		err = read_sample(watch, ret_end);
		if (!err && *ret_end == WATCH_RUNNING)
			err = wait_for_event(watch, ret_end);
	}
	return err;
}

/* After the process has exited, the window stays open for the user. */
static int finish_window(struct watch *watch, enum watch_end end)
{
	watch->has_window = false;
	if (end == WATCH_CLOSED)
		return gnuplot_finish(&watch->window, -1);
	if (end == WATCH_EXITED) {
		diag_note("process %d has exited; close the window to end", watch->options->pid);
		return gnuplot_finish_window(&watch->window, watch->signal_fd);
	}
	gnuplot_stop(&watch->window);
	return 0;
}

static int finish(struct watch *watch, enum watch_end end)
{
	int err;

	switch (watch->output.kind) {
	case PLOT_OUTPUT_NONE:
		return 0;
	case PLOT_OUTPUT_WINDOW:
		return finish_window(watch, end);
	case PLOT_OUTPUT_DUMB:
		if (isatty(STDOUT_FILENO))
			fputs(CLEAR_SCREEN, stdout);
		fflush(stdout);
		return draw_once(watch, STDOUT_FILENO);
	default:
		if (isatty(STDERR_FILENO))
			fputs("\r\033[K", stderr);
		err = draw_once(watch, watch->file_fd);
		if (!err)
			plot_output_tell(&watch->output);
		return err;
	}
}

/* Opens the descriptors for signals and for the timer. */
static int open_events(struct watch *watch)
{
	uint64_t interval_ns = watch->options->interval_ms * NS_PER_MS;
	struct timespec interval = {(time_t)(interval_ns / 1000000000),
				    (long)(interval_ns % 1000000000)};
	struct itimerspec timer = {interval, interval};

	watch->signal_fd = end_signals_open();
	if (watch->signal_fd < 0)
		return watch->signal_fd;
	watch->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (watch->timer_fd < 0 || timerfd_settime(watch->timer_fd, 0, &timer, NULL) < 0) {
		int err = errno;

		diag_error("cannot set a timer: %s", strerror(err));
		return -err;
	}
	return 0;
}

static int start(struct watch *watch)
{
	const struct memory_plot_options *options = watch->options;

	watch->history = calloc(1, sizeof(*watch->history));
	if (!watch->history) {
		diag_error("cannot keep the samples: out of memory");
		return -ENOMEM;
	}
	int err = process_memory_open(options->pid, options->interval_ms * NS_PER_MS / READ_SHARE,
				      &watch->process);
	if (!err)
		err = plot_output_choose(options->output, options->term, &watch->output);
	/* Open the file now, so that an error shows before hours of watching. */
	if (!err && plot_output_is_file(&watch->output)) {
		watch->file_fd = output_file_open(watch->output.path);
		err = watch->file_fd < 0 ? watch->file_fd : 0;
	}
	if (!err)
		err = open_events(watch);
	if (!err && watch->output.kind == PLOT_OUTPUT_WINDOW)
		err = open_window(watch);
	return err;
}

static void stop(struct watch *watch)
{
	const int fds[] = {watch->signal_fd, watch->timer_fd, watch->file_fd};

	if (watch->has_window)
		gnuplot_stop(&watch->window);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	process_memory_close(&watch->process);
	free(watch->history);
}

int memory_plot_run(const struct memory_plot_options *options)
{
	struct watch watch = {
		.options = options,
		.process = {.pidfd = -1, .proc_fd = -1},
		.signal_fd = -1,
		.timer_fd = -1,
		.file_fd = -1,
	};
	enum watch_end end;

	int err = start(&watch);
	if (!err)
		err = watch_loop(&watch, &end);
	if (!err) {
		/* Save first: the window may stay open for hours. */
		int save_err = save(&watch);

		err = finish(&watch, end);
		err = err ? err : save_err;
	}
	stop(&watch);
	return err;
}
