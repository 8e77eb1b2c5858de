/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top_viewer.h"

#include "common/broker/broker.h"
#include "common/clock.h"
#include "common/colour.h"
#include "common/diag.h"
#include "common/elf/own_mounts.h"
#include "common/sandbox/unprivileged.h"
#include "common/scope.h"
#include "report/text/summary_report.h"
#include "top/locked_consumer.h"
#include "top/top_messages.h"
#include "top/top_screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#define DRAW_MS	     250
#define NAMING_NS    20000000 /* per update, to symbolise rows that are not on the screen */
#define KEY_ESCAPE   27
#define RATE_SECONDS 1.0

struct top_viewer {
	const struct top_viewer_options *options;
	struct analysis analysis;
	struct locked_consumer locked;
	struct perf_consumer consumer;
	struct top_rows rows;
	struct top_names names;
	struct top_screen screen;
	struct top_messages messages;
	uint32_t *shown;
	bool *expanded;
	size_t nr_known; /* entries of @shown and @expanded */
	uint64_t drawn_ns, rate_ns, rate_events;
	bool is_parsed; /* set by the parsing thread at the end of the recording */
	int parse_error;
};

static volatile sig_atomic_t end_signal;

static void on_end_signal(int number)
{
	end_signal = number;
}

/* --- The parsing thread --- */

static void *parse(void *context)
{
	struct top_viewer *viewer = context;
	int err = perf_input_read(viewer->options->stream_fd, "the recording", &viewer->consumer,
				  &viewer->analysis.input);

	pthread_mutex_lock(&viewer->locked.mutex);
	viewer->parse_error = analysis_finish(&viewer->analysis, err);
	pthread_mutex_unlock(&viewer->locked.mutex);
	__atomic_store_n(&viewer->is_parsed, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The thread blocks all signals: they must interrupt the thread that waits for keys. */
static int start_parsing(struct top_viewer *viewer, pthread_t *ret)
{
	struct perf_consumer inner = analysis_consumer(&viewer->analysis);
	sigset_t all, before;
	int err;

	viewer->consumer = locked_consumer_init(&viewer->locked, &inner);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(ret, NULL, parse, viewer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

/* --- Updating the view --- */

static bool is_wanted(void *context, size_t row)
{
	const struct top_viewer *viewer = context;

	return !viewer->screen.filter[0] ||
	       top_names_match(&viewer->names, row, viewer->screen.filter);
}

static int reserve_rows(struct top_viewer *viewer)
{
	size_t nr = viewer->rows.nr;
	uint32_t *shown;
	bool *expanded;

	if (nr < viewer->nr_known)
		return 0;
	nr += 256;
	shown = reallocarray(viewer->shown, nr, sizeof(*shown));
	if (shown)
		viewer->shown = shown;
	expanded = reallocarray(viewer->expanded, nr, sizeof(*expanded));
	if (expanded)
		viewer->expanded = expanded;
	if (!shown || !expanded)
		return -ENOMEM;
	memset(expanded + viewer->nr_known, 0, nr - viewer->nr_known);
	viewer->nr_known = nr;
	return 0;
}

/* Copies the parsing thread's results. */
static int update_rows(struct top_viewer *viewer, uint64_t now_ns)
{
	struct top_screen *screen = &viewer->screen;
	size_t nr;
	const struct site *sites = site_stats_list(heap_tracker_sites(viewer->analysis.heaps), &nr);
	uint64_t events = heap_tracker_stats(viewer->analysis.heaps)->events;
	uint64_t start_ns = live_status_get(&viewer->options->status->start_ns);
	double seconds = (double)(now_ns - viewer->rate_ns) / 1e9;

	if (seconds >= RATE_SECONDS) {
		screen->events_per_s = (double)(events - viewer->rate_events) / seconds;
		viewer->rate_ns = now_ns;
		viewer->rate_events = events;
	}
	screen->events = events;
	screen->is_recording = start_ns > 0 && start_ns <= now_ns;
	screen->seconds = screen->is_recording ? (double)(now_ns - start_ns) / 1e9 : 0;
	screen->lost = live_status_get(&viewer->options->status->lost);
	screen->may_miss = live_status_get(&viewer->options->status->may_miss);
	screen->pauses = live_status_get(&viewer->options->status->pauses);
	screen->paused_ns = live_status_get(&viewer->options->status->paused_ns);
	return top_rows_update(&viewer->rows, sites, nr, now_ns);
}

static void load_bars(struct top_viewer *viewer, size_t row, uint64_t now_ns)
{
	const struct site_stats *stats = heap_tracker_sites(viewer->analysis.heaps);
	size_t nr;
	const struct site *sites = site_stats_list(stats, &nr);
	struct top_row *to = &viewer->rows.rows[row];

	if (!held_bars(&sites[row], site_stats_origin(stats), now_ns, to->bars, TOP_BARS))
		memset(to->bars, 0, sizeof(to->bars));
}

static int find_wrappers(struct top_viewer *viewer)
{
	size_t nr;
	const struct site *sites = site_stats_list(heap_tracker_sites(viewer->analysis.heaps), &nr);

	return top_names_find_wrappers(&viewer->names, sites, nr, clock_now_ns());
}

/* Loads the names on the screen and, for a filter, more of the others with each update. */
static int load_names(struct top_viewer *viewer, uint64_t now_ns)
{
	const struct top_screen *screen = &viewer->screen;
	uint64_t until_ns = clock_now_ns() + NAMING_NS;
	int err = find_wrappers(viewer);

	for (size_t i = screen->first;
	     i < screen->nr_shown && i < screen->first + screen->page && !err; i++) {
		uint32_t row = viewer->shown[i];

		err = top_names_load(&viewer->names, row, viewer->rows.rows[row].stack_id);
		if (!screen->is_frozen)
			load_bars(viewer, row, now_ns);
	}
	if (!screen->filter[0] && !screen->is_editing)
		return err;
	for (size_t i = 0; i < viewer->rows.nr && !err && clock_now_ns() < until_ns; i++)
		if (!top_names_has(&viewer->names, i))
			err = top_names_load(&viewer->names, i, viewer->rows.rows[i].stack_id);
	return err;
}

static void sort_rows(struct top_viewer *viewer)
{
	struct top_screen *screen = &viewer->screen;

	screen->nr_shown =
		top_rows_sort(&viewer->rows, screen->order, is_wanted, viewer, viewer->shown);
	screen->rows = &viewer->rows;
	screen->names = &viewer->names;
	screen->shown = viewer->shown;
	screen->expanded = viewer->expanded;
}

/* The position of the selected row among the shown ones. */
static size_t selected_position(const struct top_screen *screen)
{
	for (size_t i = 0; i < screen->nr_shown; i++)
		if (screen->shown[i] == screen->selected)
			return i;
	return 0;
}

/* Selects the row at a position and scrolls to it. */
static void select_position(struct top_screen *screen, size_t position)
{
	if (screen->nr_shown == 0) {
		screen->selected = TOP_NO_ROW;
		screen->first = 0;
		return;
	}
	if (position >= screen->nr_shown)
		position = screen->nr_shown - 1;
	screen->selected = screen->shown[position];
	if (position < screen->first)
		screen->first = position;
	else if (position >= screen->first + screen->page)
		screen->first = position - screen->page + 1;
}

static int update(struct top_viewer *viewer)
{
	uint64_t now_ns = clock_now_ns();
	int err;

	locked_consumer_acquire(&viewer->locked);
	err = viewer->screen.is_frozen ? 0 : update_rows(viewer, now_ns);
	if (!err)
		err = reserve_rows(viewer);
	if (!err) {
		sort_rows(viewer);
		select_position(&viewer->screen,
				viewer->screen.is_chosen ? selected_position(&viewer->screen) : 0);
		err = load_names(viewer, now_ns);
	}
	locked_consumer_release(&viewer->locked);
	if (!err)
		top_screen_draw(&viewer->screen);
	viewer->drawn_ns = now_ns;
	return err;
}

/* --- Keys --- */

static int signal_recorder(int number)
{
	const struct broker_request request = {BROKER_SIGNAL_RECORDER, .number = number, .fd = -1};
	int no_fd;

	return broker_ask(&request, &no_fd);
}

static void end_recording(struct top_viewer *viewer)
{
	viewer->screen.is_ending = true;
	signal_recorder(SIGINT);
}

static void set_mark(struct top_viewer *viewer)
{
	if (signal_recorder(SIGUSR1))
		return;
	top_rows_mark(&viewer->rows);
	viewer->screen.marks++;
}

static void edit_filter(struct top_screen *screen, int key)
{
	size_t len = strlen(screen->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		screen->is_editing = false;
	} else if (key == KEY_ESCAPE) {
		screen->is_editing = false;
		screen->filter[0] = '\0';
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		screen->filter[len > 0 ? len - 1 : 0] = '\0';
	} else if (key >= ' ' && key < 127 && len < sizeof(screen->filter) - 1) {
		screen->filter[len] = (char)key;
		screen->filter[len + 1] = '\0';
	}
}

/* Moves the selection. Returns false if @key does not move it. */
static bool move_selection(struct top_screen *screen, int key)
{
	size_t position = selected_position(screen);

	switch (key) {
	case KEY_UP:
	case 'k':
		select_position(screen, position > 0 ? position - 1 : 0);
		return true;
	case KEY_DOWN:
	case 'j':
		select_position(screen, position + 1);
		return true;
	case KEY_PPAGE:
		select_position(screen, position > screen->page ? position - screen->page : 0);
		return true;
	case KEY_NPAGE:
		select_position(screen, position + screen->page);
		return true;
	case KEY_HOME:
		select_position(screen, 0);
		return true;
	case KEY_END:
		select_position(screen, screen->nr_shown);
		return true;
	default:
		return false;
	}
}

/* Shows or hides the frames of the selected row or of all rows. */
static void expand(struct top_viewer *viewer, bool all)
{
	uint32_t selected = viewer->screen.selected;
	bool is_expanded = selected < viewer->rows.nr && viewer->expanded[selected];

	for (size_t i = 0; all && i < viewer->rows.nr; i++)
		viewer->expanded[i] = !is_expanded;
	if (!all && selected < viewer->rows.nr)
		viewer->expanded[selected] = !is_expanded;
}

static void handle_key(struct top_viewer *viewer, int key)
{
	struct top_screen *screen = &viewer->screen;

	if (screen->is_editing) {
		edit_filter(screen, key);
		return;
	}
	/* Any key ends the help. A resize is one for curses. */
	if (screen->is_help && key != KEY_RESIZE) {
		screen->is_help = false;
		return;
	}
	if (move_selection(screen, key)) {
		screen->is_chosen = true;
		return;
	}
	switch (key) {
	case 'q':
		end_recording(viewer);
		break;
	case '?':
	case 'h':
		screen->is_help = true;
		break;
	case 'm':
		set_mark(viewer);
		break;
	case 's':
		screen->order = top_rows_next_order(&viewer->rows, screen->order);
		screen->is_chosen = false;
		break;
	case '/':
		screen->is_editing = true;
		break;
	case KEY_ESCAPE:
		screen->filter[0] = '\0';
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
	case ' ':
		screen->is_chosen = true;
		expand(viewer, false);
		break;
	case 'a':
		expand(viewer, true);
		break;
	case 'p':
		screen->is_frozen = !screen->is_frozen;
		break;
	default:
		break;
	}
}

/* --- Start and end --- */

/* Runs until the whole recording is parsed. */
static int show(struct top_viewer *viewer)
{
	int err = 0;

	while (!err && !__atomic_load_n(&viewer->is_parsed, __ATOMIC_ACQUIRE)) {
		uint64_t age_ms = (clock_now_ns() - viewer->drawn_ns) / 1000000;
		int key;

		timeout(age_ms < DRAW_MS ? (int)(DRAW_MS - age_ms) : 0);
		key = getch();
		if (end_signal && !viewer->screen.is_ending)
			end_recording(viewer);
		if (top_messages_read(&viewer->messages, viewer->options->messages_fd) == 1)
			top_messages_last(&viewer->messages, viewer->screen.message,
					  sizeof(viewer->screen.message));
		else if (key != ERR)
			viewer->screen.message[0] = '\0';
		if (key != ERR)
			handle_key(viewer, key);
		err = update(viewer);
	}
	return err;
}

/* Waits for the first bytes of the recording. Returns false if it is empty. */
static bool wait_for_recording(struct top_viewer *viewer)
{
	struct pollfd fd = {.fd = viewer->options->stream_fd, .events = POLLIN};

	while (poll(&fd, 1, -1) < 0 && errno == EINTR)
		;
	return fd.revents & POLLIN;
}

/* Prints the recorder's messages, reading them until it exits. */
static void print_messages(struct top_viewer *viewer)
{
	struct pollfd fd = {.fd = viewer->options->messages_fd, .events = POLLIN};

	while (top_messages_read(&viewer->messages, fd.fd) >= 0)
		if (poll(&fd, 1, -1) < 0 && errno != EINTR)
			break;
	fputs(viewer->messages.text, stderr);
}

/* Prints what leakparse --summary prints. */
static int print_summary(struct top_viewer *viewer)
{
	const struct leaks_options options = {0};
	const struct summary_report_style style = {
		.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
		.colour = colour_is_wanted(STDOUT_FILENO),
		.columns = terminal_columns(STDOUT_FILENO),
	};
	struct leak_report report;
	int err = leak_report_init(&report, &viewer->analysis, &options);

	if (!err)
		err = summary_report_write(stdout, &report, &style);
	leak_report_deinit(&report);
	return err;
}

/* AddressSanitizer looks for leaks by a thread that traces the others, which none may. */
static int give_up_rights(void)
{
#ifdef __SANITIZE_ADDRESS__
	return 0;
#else
	own_mounts_note();
	return unprivileged_confine(true);
#endif
}

static int run(struct top_viewer *viewer)
{
	const struct stack_store_options stacks = {.own_vdso = true};
	pthread_t thread;
	/* It reads a description of the terminal. Nothing of the recording has been read yet. */
	int screen_err = top_screen_open();
	int err = give_up_rights();

	if (!err)
		err = analysis_init(&viewer->analysis, &stacks, NULL);
	if (!err)
		err = top_names_init(&viewer->names, viewer->analysis.stacks);
	if (!err)
		err = start_parsing(viewer, &thread);
	if (err) {
		top_screen_close();
		return err;
	}
	viewer->rate_ns = clock_now_ns();
	/* Without a view, the recording ends. */
	err = screen_err ? screen_err : show(viewer);
	if (err)
		signal_recorder(SIGINT);
	top_screen_close();
	pthread_join(thread, NULL);
	return err ? err : viewer->parse_error;
}

static void catch_signals(void)
{
	const struct sigaction on_end = {.sa_handler = on_end_signal};
	const struct sigaction ignored = {.sa_handler = SIG_IGN};

	/* The recorder handles signals from the keyboard; the viewer ends when the recording does.
	 */
	sigaction(SIGINT, &ignored, NULL);
	sigaction(SIGQUIT, &ignored, NULL);
	sigaction(SIGTSTP, &ignored, NULL);
	sigaction(SIGPIPE, &ignored, NULL);
	sigaction(SIGTERM, &on_end, NULL);
	sigaction(SIGHUP, &on_end, NULL);
}

int top_viewer_run(const struct top_viewer_options *options)
{
	struct top_viewer *viewer = calloc(1, sizeof(*viewer));
	int err = viewer ? 0 : -ENOMEM;
	bool any = false;

	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");
	tzset();
	catch_signals();
	if (viewer) {
		viewer->options = options;
		viewer->screen = (struct top_screen){
			.title = options->title,
			.order = TOP_BY_HELD,
			.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
			.selected = TOP_NO_ROW,
			.page = 1,
		};
		any = wait_for_recording(viewer);
		err = any ? run(viewer) : 0;
		print_messages(viewer);
	}
	if (!err && any)
		err = print_summary(viewer);
	if (err)
		diag_error("cannot show the recording: %s", strerror(-err));
	/* The process exits now: nothing is freed. */
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}
