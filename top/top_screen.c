/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top_screen.h"

#include "common/quantity.h"
#include "common/scope.h"
#include "report/text/stack_path.h"

#include <errno.h>
#include <inttypes.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define HEAD_LINES   4
#define STACK_COLUMN 45
#define NUMBER_BYTES (QUANTITY_TEXT_SIZE + 1) /* with a sign */

static SCREEN *terminal;

const char *top_order_name(enum top_order order)
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

static void draw_head(const struct top_screen *screen)
{
	char held[NUMBER_BYTES], growth[NUMBER_BYTES], pauses[48] = "";
	unsigned long seconds = (unsigned long)screen->seconds;

	if (screen->pauses)
		snprintf(pauses, sizeof(pauses), "  paused %" PRIu64 " times, %.2f s",
			 screen->pauses, (double)screen->paused_ns / 1e9);
	attron(A_BOLD);
	put_text(0, 0, COLS, screen->title);
	attroff(A_BOLD);
	put_format(1, 0, COLS,
		   "%lu:%02lu:%02lu  %.0f events/s, %" PRIu64 " in all, %" PRIu64 " lost%s%s%s",
		   seconds / 3600, seconds / 60 % 60, seconds % 60, screen->events_per_s,
		   screen->events, screen->lost, pauses, screen->is_frozen ? "  FROZEN" : "",
		   screen->is_ending ? "  ENDING" : "");
	put_format(2, 0, COLS, "held %s in %" PRIu64 " blocks, %s/s  %zu stack%s by %s",
		   bytes_text(held, (double)screen->rows->held_bytes, false),
		   screen->rows->held_blocks,
		   bytes_text(growth, (double)screen->rows->bytes_per_s, true), screen->nr_shown,
		   quantity_plural(screen->nr_shown), top_order_name(screen->order));
	if (screen->filter[0] || screen->is_editing)
		printw("  with \"%s\"", screen->filter);
	if (screen->marks)
		printw("  mark %" PRIu64, screen->marks);
	attron(A_REVERSE);
	put_format(3, 0, COLS, "%*s", COLS, "");
	put_text(3, 0, COLS, "      HELD    BLOCKS       PER S  SINCE MARK  STACK");
	attroff(A_REVERSE);
}

static void draw_row(const struct top_screen *screen, int y, uint32_t index, const char *stack)
{
	const struct top_row *row = &screen->rows->rows[index];
	char held[NUMBER_BYTES], growth[NUMBER_BYTES], since[NUMBER_BYTES] = "-";

	if (screen->rows->is_marked)
		bytes_text(since, (double)row->since_mark, true);
	if (index == screen->selected) {
		attron(A_BOLD);
		put_text(y, 0, 1, ">");
	}
	put_format(y, 1, COLS - 1, "%9s %9" PRIu64 " %11s %11s ",
		   bytes_text(held, (double)row->held_bytes, false), row->held_blocks,
		   bytes_text(growth, (double)row->bytes_per_s, true), since);
	put_text(y, STACK_COLUMN, COLS - STACK_COLUMN, stack);
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
	const struct stack_path_style style = {
		.columns = COLS > STACK_COLUMN ? (size_t)(COLS - STACK_COLUMN) : 0,
		.max_bytes = COLS > STACK_COLUMN ? (size_t)(COLS - STACK_COLUMN) : 0,
	};
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

static void draw_rows(struct top_screen *screen)
{
	int y = HEAD_LINES, end = LINES - 1;
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

static void draw_foot(const struct top_screen *screen)
{
	if (screen->is_editing)
		put_format(LINES - 1, 0, COLS, "filter: %s_  (Enter: done, Esc: clear)",
			   screen->filter);
	else if (screen->message[0])
		put_text(LINES - 1, 0, COLS, screen->message);
	else
		put_text(LINES - 1, 0, COLS,
			 "q quit  m mark  s sort  / filter  Enter expand  a all  p freeze");
}

void top_screen_draw(struct top_screen *screen)
{
	erase();
	draw_head(screen);
	draw_rows(screen);
	draw_foot(screen);
	refresh();
}
