/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/live/live_state.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "report/text/wrapped_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SECONDS 1e12 /* since 1970, and of a period */

/* A state is late if it is so many periods old: judging may take a part of one. */
#define LATE_PERIODS 3

/* What its line "# live:" says. */
struct known_state {
	double written_s, every_s;
	int has_ended;
	unsigned long long left_out;
};

/* Returns a descriptor of a regular file, or a negative errno. */
static int open_state(const char *dir)
{
	_cleanup_close_ int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (dir_fd >= 0)
		fd = openat(dir_fd, LIVE_STATE_NAME,
			    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? steal_fd(fd) : -EINVAL;
}

int live_state_serve(void *context, const struct broker_request *request, int *ret_fd)
{
	(void)request;
	*ret_fd = open_state(context);
	return *ret_fd < 0 ? *ret_fd : 0;
}

/* Reads the whole file, which another user may own, into a string. */
static int read_state(const char *dir, char **ret)
{
	_cleanup_close_ int fd =
		broker_is_used() ? broker_open(BROKER_OPEN_INPUT, NULL, NULL) : open_state(dir);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	ssize_t len;

	if (fd < 0)
		return fd;
	text = malloc(LIVE_STATE_MAX_BYTES + 1);
	if (!text)
		return -ENOMEM;
	while ((len = read(fd, text + size, LIVE_STATE_MAX_BYTES - size)) > 0)
		size += (size_t)len;
	if (len < 0)
		return -errno;
	text[size] = '\0';
	*ret = steal_ptr(text);
	return 0;
}

/* Returns 0, or -EINVAL if the text is not that of a state. */
static int find_state(const char *text, struct known_state *ret)
{
	const char *line = strstr(text, "\n# live: ");

	if (strncmp(text, "# leaks 2\n", 10) != 0 || !line ||
	    sscanf(line, "\n# live: written=%lf every=%lf ended=%d left_out=%llu", &ret->written_s,
		   &ret->every_s, &ret->has_ended, &ret->left_out) != 4)
		return -EINVAL;
	return ret->written_s >= 0 && ret->written_s < MAX_SECONDS && ret->every_s > 0 &&
			       ret->every_s < MAX_SECONDS
		       ? 0
		       : -EINVAL;
}

static void write_age(FILE *out, const struct known_state *state)
{
	double age_s = (double)clock_ns(CLOCK_REALTIME) / 1e9 - state->written_s;
	struct quantity_text age = quantity_duration(age_s > 0 ? age_s : 0);

	if (state->has_ended)
		fprintf(out, "Recorded until %s ago\n", age.text);
	else
		fprintf(out, "Being recorded; as it was %s ago\n", age.text);
	if (!state->has_ended && age_s > LATE_PERIODS * state->every_s)
		fprintf(out,
			"! leakrec writes this every %s: it was killed, it cannot write, or "
			"nothing has happened since\n",
			quantity_duration(state->every_s).text);
	if (state->left_out)
		fprintf(out,
			"! %llu events are not in it: the live parser was too slow, so some of "
			"these leaks may be false; with -o FILE, the recording has them\n",
			state->left_out);
}

/* Where the locale is not UTF-8, bars are digits, and what else is not ASCII is escaped. */
static void write_ascii(FILE *out, const char *line)
{
	static const char before_bar[] = "\xe2\x96"; /* U+2581 to U+2588 */

	while (*line) {
		unsigned char c = (unsigned char)*line;
		bool is_bar = strncmp(line, before_bar, 2) == 0 && (unsigned char)line[2] >= 0x81 &&
			      (unsigned char)line[2] <= 0x88;

		if (is_bar)
			fputc('1' + (unsigned char)line[2] - 0x81, out);
		else if (c >= ' ' && c < 0x7f)
			fputc(c, out);
		else
			fprintf(out, "\\x%02x", c);
		line += is_bar ? 3 : 1;
	}
}

/* The lines of the screen, as one text. */
static void write_screen(FILE *out, char *text, bool utf8)
{
	char *line;

	while ((line = strsep(&text, "\n")) && text) {
		if (strncmp(line, "screen", 6) != 0 || (line[6] && line[6] != ' '))
			continue;
		line += line[6] ? 7 : 6;
		if (utf8)
			diag_print_relayed(out, line);
		else
			write_ascii(out, line);
		fputc('\n', out);
	}
}

static int print_summary(char *text, const struct known_state *state, bool utf8, size_t columns)
{
	_cleanup_free_ char *screen = NULL;
	size_t size;
	FILE *out = open_memstream(&screen, &size);

	if (!out)
		return -ENOMEM;
	write_age(out, state);
	write_screen(out, text, utf8);
	if (fclose(out))
		return -ENOMEM;
	wrapped_text_write(stdout, screen, columns);
	return 0;
}

int live_state_print(const char *dir, bool is_summary, bool utf8, size_t columns)
{
	_cleanup_free_ char *text = NULL;
	struct known_state state;
	int err = read_state(dir, &text);

	/* The analyser does not know that errno is set. */
	if (!err && !text)
		err = -EIO;

	if (err)
		diag_error("cannot read %s/" LIVE_STATE_NAME ": %s%s", dir, strerror(-err),
			   err == -ENOENT
				   ? "; leakrec --live writes it when the first period is over"
				   : "");
	else if ((err = find_state(text, &state)))
		diag_error("%s/" LIVE_STATE_NAME " is not the state of a recording: "
			   "leakrec --live did not write it",
			   dir);
	if (err)
		return err;
	err = is_summary ? print_summary(text, &state, utf8, columns)
			 : diag_print_relayed(stdout, text);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = -EIO;
	if (err)
		diag_output_failed("the state", -err);
	return err;
}
