/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top_screen.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "report/names/stack_path.h"
#include "top/top_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define HEAD_LINES   4
#define NUMBER_BYTES (QUANTITY_TEXT_SIZE + 1) /* with a sign */
/* With fewer lines, rows come before messages. */
#define MIN_LINES_MESSAGE (HEAD_LINES + 3)
/* With fewer lines, the head has only the sum and the titles. */
#define MIN_LINES_HEAD	 8
#define SHORT_HEAD_LINES 2

static SCREEN *terminal;

static const char *order_name(enum top_order order)
{
	static const char *const names[TOP_NR_ORDERS] = {
		[TOP_BY_HELD] = "held",
		[TOP_BY_GROWTH] = "growth",
		[TOP_BY_MARK] = "since mark",
		[TOP_BY_BLOCKS] = "blocks",
		[TOP_BY_ALLOCATIONS] = "allocations",
	};

	return names[order];
}

int top_screen_open(void)
{
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return -ENOTTY;
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	return 0;
}

void top_screen_close(void)
{
	if (!terminal)
		return;
	endwin();
	delscreen(terminal);
	terminal = NULL;
}

/* --- text --- */

/*
 * Writes at most @width columns of @text, which is escaped. Characters without a width of one or
 * two columns become '?'.
 */
static void put_text(int y, int x, int width, const char *text)
{
	mbstate_t state = {0};
	size_t left = strlen(text);

	if (y < 0 || y >= LINES || x >= COLS || move(y, x) == ERR)
		return;
	if (width > COLS - x)
		width = COLS - x;
	while (left > 0) {
		wchar_t wide[2] = {0};
		size_t len = mbrtowc(wide, text, left, &state);
		int columns;

		if (len == 0 || len > left) {
			memset(&state, 0, sizeof(state));
			wide[0] = L'?';
			len = 1;
		}
		columns = wcwidth(wide[0]);
		if (columns < 1) {
			wide[0] = L'?';
			columns = 1;
		}
		if (columns > width)
			return;
		addnwstr(wide, 1);
		width -= columns;
		text += len;
		left -= len;
	}
}

/* The same with a printf format. */
#define put_format(y, x, width, ...)                                                               \
	do {                                                                                       \
		char line_text[512];                                                               \
                                                                                                   \
		snprintf(line_text, sizeof(line_text), __VA_ARGS__);                               \
		put_text(y, x, width, line_text);                                                  \
	} while (0)

/* @name, which is escaped here, and a line unless it is 0. */
static void put_escaped(int y, int x, int width, const char *name, int line)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	diag_print_escaped(out, name, NULL);
	if (line)
		fprintf(out, ":%d", line);
	if (fclose(out) == 0)
		put_text(y, x, width, text);
}

/* "940 KiB"; with a sign, "+183 KiB". */
static const char *bytes_text(char text[NUMBER_BYTES], double bytes, bool has_sign)
{
	const char *sign = !has_sign || bytes == 0 ? "" : bytes < 0 ? "-" : "+";

	snprintf(text, NUMBER_BYTES, "%s%s", sign, quantity_bytes(bytes < 0 ? -bytes : bytes).text);
	/* "512 bytes" is wider than what it says. */
	if (strstr(text, " byte"))
		memcpy(strstr(text, " byte"), " B", sizeof(" B"));
	return text;
}

/* --- lines --- */

static struct top_layout choose_layout(const struct top_screen *screen)
{
	return top_layout_choose(COLS, screen->order, screen->rows->is_marked);
}

static int head_lines(void)
{
	return LINES >= MIN_LINES_HEAD ? HEAD_LINES : SHORT_HEAD_LINES;
}

/* The one that rows are sorted by stands out. */
static void draw_titles(const struct top_screen *screen, int y)
{
	struct top_layout layout = choose_layout(screen);

	attron(A_REVERSE);
	put_format(y, 0, COLS, "%*s", COLS, "");
	for (enum top_column i = 0; i < TOP_NR_COLUMNS; i++) {
		bool is_text = i == TOP_COLUMN_TREND || i == TOP_COLUMN_SOURCE;

		if (!layout.width[i])
			continue;
		if (i == top_column_of(screen->order))
			attron(A_BOLD | A_UNDERLINE);
		put_format(y, layout.x[i], layout.width[i], is_text ? "%-*s" : "%*s",
			   layout.width[i], top_column_title(i));
		attroff(A_BOLD | A_UNDERLINE);
	}
	put_text(y, layout.stack_x, COLS - layout.stack_x, "STACK");
	attroff(A_REVERSE);
}

static void draw_head(const struct top_screen *screen)
{
	char held[NUMBER_BYTES], growth[NUMBER_BYTES], pauses[48] = "", mark[32] = "";
	char filter[TOP_FILTER_BYTES + sizeof("  with \"\"")] = "";
	unsigned long seconds = (unsigned long)screen->seconds;
	int end = head_lines();

	if (screen->pauses)
		snprintf(pauses, sizeof(pauses), "  paused %" PRIu64 " time%s, %.2f s",
			 screen->pauses, quantity_plural(screen->pauses),
			 (double)screen->paused_ns / 1e9);
	if (screen->filter[0] || screen->is_editing)
		snprintf(filter, sizeof(filter), "  with \"%s\"", screen->filter);
	if (screen->marks)
		snprintf(mark, sizeof(mark), "  mark %" PRIu64, screen->marks);
	attron(A_BOLD);
	put_text(end - 4, 0, COLS, screen->title);
	attroff(A_BOLD);
	put_format(end - 3, 0, COLS,
		   "%lu:%02lu:%02lu  %.0f events/s, %" PRIu64 " in all, %" PRIu64
		   " %sevent%s lost%s%s%s",
		   seconds / 3600, seconds / 60 % 60, seconds % 60, screen->events_per_s,
		   screen->events, screen->lost, screen->may_miss ? "or more " : "",
		   quantity_plural(screen->may_miss ? 0 : screen->lost), pauses,
		   screen->is_frozen ? "  FROZEN" : "", screen->is_ending ? "  ENDING" : "");
	put_format(end - 2, 0, COLS, "held %s in %" PRIu64 " block%s, %s/s  %zu stack%s by %s%s%s",
		   bytes_text(held, (double)screen->rows->held_bytes, false),
		   screen->rows->held_blocks, quantity_plural(screen->rows->held_blocks),
		   bytes_text(growth, (double)screen->rows->bytes_per_s, true), screen->nr_shown,
		   quantity_plural(screen->nr_shown), order_name(screen->order), filter, mark);
	draw_titles(screen, end - 1);
}

static void draw_bars(const struct top_screen *screen, int y, int x, const struct top_row *row)
{
	for (int i = 0; i < TOP_BARS; i++)
		put_text(y, x + i, 1, held_bar_text(row->bars[i], screen->is_utf8));
}

/* "leaky_daemon.c:63", or the module; its end, if there is no room for all. */
static void draw_source(const struct top_screen *screen, int y, int x, int width, uint32_t index)
{
	const struct top_name *name = top_names_get(screen->names, index);
	const struct named_frame *frame =
		name && name->first < name->stack.nr ? &name->stack.frames[name->first] : NULL;

	if (frame && frame->file)
		put_escaped(y, x, width, named_stack_basename(frame->file), frame->line);
	else if (frame && frame->module)
		put_escaped(y, x, width, named_stack_basename(frame->module), 0);
}

static void draw_number(int y, const struct top_layout *layout, enum top_column column,
			const char *text)
{
	int width = layout->width[column];

	if (width)
		put_format(y, layout->x[column], width, "%*s", width, text);
}

static void draw_numbers(const struct top_screen *screen, int y, const struct top_layout *layout,
			 const struct top_row *row)
{
	char text[NUMBER_BYTES];

	draw_number(y, layout, TOP_COLUMN_HELD, bytes_text(text, (double)row->held_bytes, false));
	draw_number(y, layout, TOP_COLUMN_GROWTH, bytes_text(text, (double)row->bytes_per_s, true));
	draw_number(y, layout, TOP_COLUMN_MARK,
		    screen->rows->is_marked ? bytes_text(text, (double)row->since_mark, true)
					    : "-");
	snprintf(text, sizeof(text), "%" PRIu64, row->held_blocks);
	draw_number(y, layout, TOP_COLUMN_BLOCKS, text);
	snprintf(text, sizeof(text), "%" PRIu64, row->allocations);
	draw_number(y, layout, TOP_COLUMN_ALLOCATIONS, text);
}

static void draw_row(const struct top_screen *screen, int y, uint32_t index, const char *stack)
{
	struct top_layout layout = choose_layout(screen);
	const struct top_row *row = &screen->rows->rows[index];

	if (index == screen->selected) {
		attron(A_BOLD);
		put_text(y, 0, 1, ">");
	}
	draw_numbers(screen, y, &layout, row);
	if (layout.width[TOP_COLUMN_TREND])
		draw_bars(screen, y, layout.x[TOP_COLUMN_TREND], row);
	if (layout.width[TOP_COLUMN_SOURCE])
		draw_source(screen, y, layout.x[TOP_COLUMN_SOURCE], layout.width[TOP_COLUMN_SOURCE],
			    index);
	put_text(y, layout.stack_x, COLS - layout.stack_x, stack);
	attroff(A_BOLD);
}

static void draw_frames(const struct top_screen *screen, int *y, int end, uint32_t index)
{
	const struct top_name *name = top_names_get(screen->names, index);

	for (size_t i = 0; name && i < name->nr_frames && *y < end; i++)
		put_text((*y)++, 6, COLS - 6, name->frames[i]);
}

/* The number of lines of a row. */
static size_t nr_lines(const struct top_screen *screen, uint32_t index)
{
	const struct top_name *name = top_names_get(screen->names, index);

	return 1 + (screen->expanded[index] && name ? name->nr_frames : 0);
}

/* Expanded frames above the selected row may push it off the screen. */
static void scroll_to_selected(struct top_screen *screen)
{
	size_t position = 0, lines = 1;

	while (position < screen->nr_shown && screen->shown[position] != screen->selected)
		position++;
	if (position == screen->nr_shown || position < screen->first)
		return;
	for (size_t i = screen->first; i < position; i++)
		lines += nr_lines(screen, screen->shown[i]);
	while (lines > screen->page && screen->first < position)
		lines -= nr_lines(screen, screen->shown[screen->first++]);
}

/*
 * Makes the texts of the stacks on the screen, in which no two rows look the same. Returns how
 * many, 0 also without memory.
 */
static size_t stack_texts(const struct top_screen *screen, char ***ret)
{
	static const struct named_stack unnamed;
	int stack_x = choose_layout(screen).stack_x;
	size_t width = COLS > stack_x ? (size_t)(COLS - stack_x) : 0;
	const struct stack_path_style style = {.columns = width, .max_bytes = width};
	size_t nr = screen->nr_shown - screen->first;
	_cleanup_free_ struct stack_path *paths = NULL;

	if (nr > screen->page)
		nr = screen->page;
	paths = calloc(nr + 1, sizeof(*paths));
	for (size_t i = 0; paths && i < nr; i++) {
		const struct top_name *name =
			top_names_get(screen->names, screen->shown[screen->first + i]);

		paths[i] = name ? (struct stack_path){&name->stack, name->first}
				: (struct stack_path){&unnamed, 0};
	}
	*ret = NULL;
	return paths && stack_paths_texts(paths, nr, &style, ret) == 0 ? nr : 0;
}

/* A message has a line of its own above the keys. */
static bool has_message(const struct top_screen *screen)
{
	return screen->message[0] && LINES >= MIN_LINES_MESSAGE;
}

static void draw_rows(struct top_screen *screen)
{
	int y = head_lines(), end = LINES - 1 - has_message(screen);
	size_t nr_texts;
	char **texts = NULL;

	screen->page = end > y ? (size_t)(end - y) : 1;
	scroll_to_selected(screen);
	nr_texts = screen->first < screen->nr_shown ? stack_texts(screen, &texts) : 0;
	for (size_t i = screen->first; i < screen->nr_shown && y < end; i++) {
		bool has_text = i - screen->first < nr_texts &&
				top_names_has(screen->names, screen->shown[i]);

		draw_row(screen, y++, screen->shown[i],
			 has_text ? texts[i - screen->first] : "...");
		if (screen->expanded[screen->shown[i]])
			draw_frames(screen, &y, end, screen->shown[i]);
	}
	stack_paths_free(texts, nr_texts);
	if (screen->nr_shown == 0 && y < end)
		put_text(y, 2, COLS - 2,
			 !screen->is_recording ? "setting up: nothing is recorded yet"
			 : screen->filter[0]   ? "no stack matches the filter"
					       : "nothing allocated yet");
}

static void draw_help(void)
{
	/* At most 38 characters: a screen may have 40 columns. */
	static const char *const lines[] = {
		"q, Ctrl-C  end, print what leaked",
		"s          sort by the next column",
		"m          set mark; SINCE MARK: later",
		"/ text     stacks with it; Esc: all",
		"up, down   select; PgUp, Home, End too",
		"Enter      show or hide its frames",
		"a          the frames of all stacks",
		"p          freeze; recording goes on",
		"",
		"PER S      growth in the last 10 s",
		"TREND      blocks held over time",
		"SOURCE     line, on wide screens",
	};

	int y = head_lines();

	for (size_t i = 0; i < ARRAY_SIZE(lines) && y < LINES - 1; i++)
		put_text(y++, 2, COLS - 2, lines[i]);
}

/* The keys come first that matter where there is no room for all. */
static void draw_foot(const struct top_screen *screen)
{
	if (has_message(screen))
		put_text(LINES - 2, 0, COLS, screen->message);
	if (screen->is_editing)
		put_format(LINES - 1, 0, COLS, "filter: %s_  (Enter: done, Esc: clear)",
			   screen->filter);
	else if (screen->is_help)
		put_text(LINES - 1, 0, COLS, "any key: back");
	else
		put_text(LINES - 1, 0, COLS,
			 "? help  q quit  s sort  m mark  / filter  Enter expand  a all  p freeze");
}

void top_screen_draw(struct top_screen *screen)
{
	erase();
	draw_head(screen);
	if (screen->is_help)
		draw_help();
	else
		draw_rows(screen);
	draw_foot(screen);
	refresh();
}
