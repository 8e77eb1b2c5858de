/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/leakrec_service.h"

#include "common/diag.h"
#include "common/scope.h"
#include "recorder/processes/followed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COMMON_FILE "leakrec.conf"

/* Of the command line `leakrec --service NAME` or --service=NAME; NULL: it is another one. */
static const char *service_of(int argc, char **argv, int *ret_nr_words)
{
	static const char option[] = "--service";
	size_t len = sizeof(option) - 1;

	*ret_nr_words = 1;
	if (argc < 2 || strncmp(argv[1], option, len) != 0)
		return NULL;
	*ret_nr_words = argv[1][len] == '=' ? 2 : 3;
	if (argv[1][len] == '=')
		return argv[1] + len + 1;
	return argv[1][len] || argc < 3 ? NULL : argv[2];
}

/* Adds the options of the common file and of the service's own. */
static int read_files(const char *dir, const char *name, struct option_words *words)
{
	_cleanup_close_ int fd = options_file_open_dir(dir);
	_cleanup_free_ char *own = NULL;
	int err;

	if (fd < 0)
		return fd;
	err = options_file_read(fd, dir, COMMON_FILE, name, words);
	if (err == -ENOENT)
		diag_error("cannot take options from %s/%s: there is no such file", dir,
			   COMMON_FILE);
	if (err)
		return err;
	if (asprintf(&own, "%s.conf", name) < 0) {
		own = NULL;
		return -ENOMEM;
	}
	err = options_file_read(fd, dir, own, name, words);
	return err == -ENOENT ? 0 : err;
}

/* True if the words have one of these options, which end with NULL. */
static bool has_any(const struct option_words *words, const char *const options[])
{
	for (size_t i = 0; i < words->nr; i++)
		for (size_t k = 0; options[k]; k++)
			if (strncmp(words->words[i], options[k], strlen(options[k])) == 0)
				return true;
	return false;
}

/* Adds what the files need not say: the unit is the service's, and segments have a directory. */
static int add_defaults(const char *name, struct option_words *words)
{
	static const char *const targets[] = {
		"--unit=", "--program=", "--cgroup=", "--pid=", "--all", NULL};
	static const char *const in_segments[] = {"--keep=", "--ring=", NULL};
	static const char *const outputs[] = {"--output=", NULL};
	_cleanup_free_ char *unit = NULL;
	int err = 0;

	if (has_any(words, in_segments) && !has_any(words, outputs))
		err = option_words_add(words, "--output=" LEAKREC_SERVICE_OUTPUT);
	if (err || has_any(words, targets))
		return err;
	if (asprintf(&unit, "--unit=%s", name) < 0) {
		unit = NULL;
		return -ENOMEM;
	}
	return option_words_add(words, unit);
}

static int add_service(const char *service, struct option_words *words)
{
	const char *slash = strrchr(service, '/'), *name = slash ? slash + 1 : service;
	_cleanup_free_ char *dir =
		slash ? strndup(service, (size_t)(slash - service)) : strdup(LEAKREC_SERVICE_DIR);
	int err;

	if (!followed_is_unit_name(name)) {
		diag_error("--service takes the name of a unit, not \"%s\"", name);
		return -EINVAL;
	}
	if (!dir)
		return -ENOMEM;
	err = read_files(*dir ? dir : "/", name, words);
	return err ? err : add_defaults(name, words);
}

int leakrec_service_words(int argc, char **argv, struct option_words *ret, bool *ret_is_service)
{
	int next, err = argc ? option_words_add(ret, argv[0]) : 0;
	const char *service = service_of(argc, argv, &next);

	*ret_is_service = service;
	if (!service)
		next = 1;
	else if (!err)
		err = add_service(service, ret);
	for (int i = next; i < argc && !err; i++)
		err = option_words_add(ret, argv[i]);
	/* It does not help to start leakrec again with the same files. */
	return err && err != -ENOMEM ? -EINVAL : err;
}
