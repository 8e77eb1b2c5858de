/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/diag.h"

#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

static const char *tool_name = "leaktools";

void diag_begin(const char *name)
{
	tool_name = name;
	/* Each open() gives the lowest number. Reading and writing fail as before. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* In the other mode, integrity, the kernel refuses nothing that these tools need. */
const char *diag_lockdown_hint(void)
{
	_cleanup_fclose_ FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	char modes[64];

	if (!file || !fgets(modes, sizeof(modes), file) || !strstr(modes, "[confidentiality]"))
		return "";
	return "; the kernel is locked down, in the mode confidentiality, which refuses tracing to "
	       "root, too (kernel_lockdown(7)): boot it without";
}

const char *diag_rights_hint(int err)
{
	if (abs(err) != EPERM && abs(err) != EACCES)
		return "";
	if (geteuid())
		return "; run it as root";
	/* The error of lockdown_is_locked_down(), security/lockdown/lockdown.c, 6.1. */
	if (abs(err) == EPERM && *diag_lockdown_hint())
		return diag_lockdown_hint();
	return "; root lacks a right here, as in containers: run it on the host";
}

/*
 * Invisible characters that change how those around them are shown: Unicode 16's general category
 * Cf, all of U+2060 to U+206F, and the separators of lines and paragraphs; and U+FFFE and U+FFFF,
 * which are no characters, and which no XML (SVG) may have.
 */
static const struct {
	uint32_t first, last;
} invisible[] = {
	{0xad, 0xad},	    {0x600, 0x605},	{0x61c, 0x61c},	    {0x6dd, 0x6dd},
	{0x70f, 0x70f},	    {0x890, 0x891},	{0x8e2, 0x8e2},	    {0x180e, 0x180e},
	{0x200b, 0x200f},   {0x2028, 0x202e},	{0x2060, 0x206f},   {0xfeff, 0xfeff},
	{0xfff9, 0xfffb},   {0xfffe, 0xffff},	{0x110bd, 0x110bd}, {0x110cd, 0x110cd},
	{0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001},
	{0xe0020, 0xe007f},
};

bool diag_is_invisible(uint32_t character)
{
	for (size_t i = 0; i < ARRAY_SIZE(invisible); i++)
		if (character <= invisible[i].last)
			return character >= invisible[i].first;
	return false;
}

/* The length of the UTF-8 sequence at @s; 0 if it is not valid or not printable. */
static size_t utf8_sequence(const unsigned char *s)
{
	if (s[0] < 0x20 || s[0] == 0x7f)
		return 0;
	if (s[0] < 0x80)
		return 1;

	size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, beyond U+10FFFF, and the C1 control characters. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90) ||
	    (s[0] == 0xc2 && s[1] < 0xa0))
		return 0;

	uint32_t character = s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++)
		character = character << 6 | (s[i] & 0x3f);
	return diag_is_invisible(character) ? 0 : len;
}

int diag_print_escaped(FILE *out, const char *text, const char *also)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		size_t len = utf8_sequence(s);

		if (len == 1 && (*s == '\\' || (also && strchr(also, *s))))
			len = 0;
		if (len)
			fwrite(s, 1, len, out);
		else
			fprintf(out, "\\x%02x", *s);
		s += len ? len : 1;
	}
	return ferror(out) ? -EIO : 0;
}

int diag_print_relayed(FILE *out, const char *lines)
{
	const unsigned char *s = (const unsigned char *)lines;

	/* Its backslashes are those of diag_print_escaped(). */
	while (*s) {
		size_t len = *s == '\n' || *s == '\t' ? 1 : utf8_sequence(s);

		if (len)
			fwrite(s, 1, len, out);
		else
			fprintf(out, "\\x%02x", *s);
		s += len ? len : 1;
	}
	return ferror(out) ? -EIO : 0;
}

/*
 * systemd tells the device and the inode of the socket to its journal (systemd.exec(5)). stderr may
 * lead elsewhere by now.
 */
static bool journal_reads_stderr(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[48];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(stream, own) == 0;
}

/* The journal reads the priority of a line at its beginning, as in "<4>" (sd-daemon(3)). */
static void print_priority(FILE *out, int priority)
{
	if (journal_reads_stderr())
		fprintf(out, "<%d>", priority);
}

/* A forged line must not choose its priority: the journal shows an emergency on all terminals. */
void diag_relay(const char *lines)
{
	_cleanup_free_ char *copy = strdup(lines);
	char *rest = copy, *line;

	while (rest && *rest && (line = strsep(&rest, "\n"))) {
		print_priority(stderr, LOG_WARNING);
		diag_print_relayed(stderr, line);
		fputc('\n', stderr);
	}
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

void diag_unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] == 'x' && isxdigit((unsigned char)from[2]) &&
		    isxdigit((unsigned char)from[3]) && strncmp(from + 2, "00", 2) != 0) {
			*to = (char)(hex_digit(from[2]) << 4 | hex_digit(from[3]));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static void __attribute__((format(printf, 3, 0)))
print_message(int priority, const char *kind, const char *format, va_list args)
{
	_cleanup_free_ char *text = NULL, *line = NULL;
	size_t size_bytes = 0;
	FILE *out;

	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	/* One write for the whole line: other output to the same terminal or log does not split it.
	 */
	out = open_memstream(&line, &size_bytes);
	if (out) {
		print_priority(out, priority);
		fprintf(out, "%s: %s", tool_name, kind);
		diag_print_escaped(out, text ? text : "out of memory", NULL);
		fputc('\n', out);
	}
	if (out && fclose(out) == 0 && line)
		fwrite(line, 1, size_bytes, stderr);
	else
		fprintf(stderr, "%s: %sout of memory\n", tool_name, kind);
}

#define DEFINE_DIAG(name, priority, kind)                                                          \
	void name(const char *format, ...)                                                         \
	{                                                                                          \
		va_list args;                                                                      \
                                                                                                   \
		va_start(args, format);                                                            \
		print_message(priority, kind, format, args);                                       \
		va_end(args);                                                                      \
	}

DEFINE_DIAG(diag_error, LOG_ERR, "")
DEFINE_DIAG(diag_warn, LOG_WARNING, "warning: ")
DEFINE_DIAG(diag_note, LOG_INFO, "")

void diag_output_failed(const char *what, int err)
{
	if (err != EPIPE)
		diag_error("cannot write %s: %s", what, strerror(err));
}

void diag_keep_output_error(FILE *out, int *first)
{
	if (ferror(out) && !*first)
		*first = errno ? errno : EIO;
}

bool diag_output_is_left(FILE *out)
{
	struct pollfd output = {.fd = fileno(out)};

	return poll(&output, 1, 0) == 1 && (output.revents & POLLERR);
}
