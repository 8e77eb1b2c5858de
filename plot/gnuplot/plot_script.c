/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/gnuplot/plot_script.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/output_file.h"
#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static void print_file_name(const struct plot_script *script, const char *name, FILE *out)
{
	fprintf(out, "%s-%s.dat", script->name, name);
}

bool plot_script_owns(const char *plot, const char *file)
{
	size_t len = strlen(plot);
	const char *suffix = strrchr(file, '.');

	if (!suffix || strncmp(file, plot, len) != 0 || (file[len] != '-' && file[len] != '.') ||
	    strlen(file) >= PLOT_SCRIPT_FILE_NAME)
		return false;
	for (const char *c = file + len; c < suffix; c++)
		if (!isalnum((unsigned char)*c) && *c != '-')
			return false;
	return strcmp(suffix, ".dat") == 0 || strcmp(suffix, ".gnuplot") == 0;
}

int plot_script_open_file(const struct plot_script *script, const char *name)
{
	return broker_is_used() ? broker_open(BROKER_OPEN_SAVED, name, NULL)
				: output_file_open_at(script->dir_fd, script->dir, name);
}

static FILE *open_data(const struct plot_script *script, const char *name)
{
	_cleanup_close_ int fd = -1;
	char file_name[PLOT_SCRIPT_FILE_NAME];
	FILE *memory = fmemopen(file_name, sizeof(file_name), "w"), *file;

	if (!memory)
		return NULL;
	print_file_name(script, name, memory);
	fclose(memory);
	fd = plot_script_open_file(script, file_name);
	if (fd < 0)
		return NULL;
	file = fdopen(fd, "w");
	if (file)
		steal_fd(fd);
	return file;
}

FILE *plot_script_begin_data(struct plot_script *script, const char *name, const char *columns)
{
	if (!script->dir) {
		fprintf(script->program, "$%s << END\n", name);
		return script->program;
	}
	script->data = script->err ? NULL : open_data(script, name);
	if (!script->data) {
		script->err = script->err ? script->err : -EIO;
		return NULL;
	}
	fprintf(script->data, "# %s\n", columns);
	return script->data;
}

void plot_script_end_data(struct plot_script *script)
{
	if (!script->dir) {
		fputs("END\n", script->program);
		return;
	}
	if (script->data && fclose(script->data) != 0 && !script->err) {
		script->err = errno ? -errno : -EIO;
		diag_error("cannot save the plot in %s: %s", script->dir, strerror(-script->err));
	}
	script->data = NULL;
}

void plot_script_print_data(const struct plot_script *script, const char *name)
{
	if (script->dir) {
		fputc('\'', script->program);
		print_file_name(script, name, script->program);
		fputc('\'', script->program);
	} else {
		fprintf(script->program, "$%s", name);
	}
}
