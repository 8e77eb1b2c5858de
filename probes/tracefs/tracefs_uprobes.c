/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/tracefs/tracefs_uprobes.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include <tracefs.h>

#define PROFILE_TRIES	  20
#define EVENTS_TRIES	  20
#define COMMAND_PREFIX	  "\n  Command: "
#define MAX_COMMAND_BYTES 4094 /* WRITE_BUFSIZE - 2 in the kernel's kernel/trace/trace.c (6.1) */

const char *probe_tracefs_dir(void)
{
	const char *dir;

	/*
	 * Silences libtracefs, since the message below says more. libtracefs mounts tracefs if it
	 * is not mounted.
	 */
	tracefs_set_loglevel(TEP_LOG_NONE);
	dir = tracefs_tracing_dir();
	if (dir)
		return dir;
	diag_error("tracefs is not mounted, and mounting it failed: %s%s; mount it: "
		   "mount -t tracefs nodev /sys/kernel/tracing",
		   strerror(errno), diag_rights_hint(errno));
	return NULL;
}

/* Returns the text of the file @name, or NULL with errno set. The caller frees it. */
static char *read_file(const char *dir, const char *name)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	_cleanup_close_ int fd = -1;
	size_t size = 0, len = 0;

	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		path = NULL;
		return NULL;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	for (;;) {
		ssize_t got;

		if (size - len < 4096) {
			char *grown = realloc(text, size + 65536);

			if (!grown)
				return NULL;
			text = grown;
			size += 65536;
		}
		got = read(fd, text + len, size - len - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return NULL;
		len += got;
		text[len] = '\0';
		if (got == 0)
			return steal_ptr(text);
	}
}

/*
 * Reads the events as read_file() does. The kernel returns a page at a time, and skips an event if
 * an earlier one is removed meanwhile. Two equal readings are complete.
 */
static char *read_events(const char *dir)
{
	char *text = read_file(dir, "uprobe_events");

	for (int try = 0; text && try < EVENTS_TRIES; try++) {
		_cleanup_free_ char *before = text;

		text = read_file(dir, "uprobe_events");
		if (text && strcmp(text, before) == 0)
			break;
	}
	return text;
}

static int report_unreadable(const char *dir, const char *name)
{
	int err = errno ? -errno : -EIO;
	const char *hint = diag_lockdown_hint();

	/* A kernel that is locked down makes no such file: tracefs_create_file(), 6.1. */
	if (err == -ENOENT)
		diag_error("%s has no %s%s", dir, name,
			   *hint ? hint : ": this kernel was built without CONFIG_UPROBE_EVENTS");
	else
		diag_error("cannot read %s/%s: %s%s", dir, name, strerror(-err),
			   diag_rights_hint(err));
	return err;
}

int tracefs_uprobes_read(struct uprobe_list *ret, bool with_hits)
{
	const char *dir = probe_tracefs_dir();

	*ret = (struct uprobe_list){0};
	if (!dir)
		return -ENODEV;
	for (int try = 0; try < PROFILE_TRIES; try++) {
		_cleanup_free_ char *events = read_events(dir);
		_cleanup_free_ char *profile = NULL;
		int err;

		if (!events)
			return report_unreadable(dir, "uprobe_events");
		err = uprobe_list_parse(ret, events);
		if (err)
			diag_error("cannot list the probes: %s", strerror(-err));
		if (err || !with_hits)
			return err;
		profile = read_file(dir, "uprobe_profile");
		if (!profile) {
			err = report_unreadable(dir, "uprobe_profile");
			uprobe_list_deinit(ret);
			return err;
		}
		if (uprobe_list_add_profile(ret, profile) == 0)
			return 0;
		uprobe_list_deinit(ret);
	}
	diag_error("cannot list the probes with their hits: they come and go too fast; try again");
	return -EAGAIN;
}

/* Returns 0 or a negative errno, not reported. */
static int register_event(const struct uprobe_spec *spec, const char *path)
{
	struct tracefs_dynevent *event =
		spec->is_return ? tracefs_uretprobe_alloc(spec->group, spec->event, path,
							  spec->offset, spec->fetch_args)
				: tracefs_uprobe_alloc(spec->group, spec->event, path, spec->offset,
						       spec->fetch_args);
	int err;

	if (!event)
		return -ENOMEM;
	errno = 0;
	err = tracefs_dynevent_create(event) ? -(errno ? errno : EIO) : 0;
	tracefs_dynevent_free(event);
	return err;
}

char *tracefs_uprobe_definition(const struct uprobe_spec *spec)
{
	char *line;

	/* The offset has the format of libtracefs, so that the line equals the one in error_log. */
	if (asprintf(&line, "%c:%s/%s %s:0x%0*" PRIx64 " %s", spec->is_return ? 'r' : 'p',
		     spec->group, spec->event, spec->path, (int)(2 * sizeof(void *)), spec->offset,
		     spec->fetch_args) < 0)
		return NULL;
	return line;
}

char *tracefs_error_reason(const char *before, const char *after, const char *command)
{
	_cleanup_free_ char *last = NULL;
	const char *entry = after;

	/* "[  12.345678] trace_uprobe: error: REASON\n  Command: COMMAND\n             ^\n" */
	while (entry && *entry) {
		const char *command_at = strstr(entry, COMMAND_PREFIX), *reason, *next;
		_cleanup_free_ char *text = NULL;
		size_t command_len;

		if (!command_at)
			break;
		text = strndup(entry, command_at - entry);
		command_at += strlen(COMMAND_PREFIX);
		command_len = strcspn(command_at, "\n");
		next = strchr(command_at, '\n');
		next = next ? strchr(next + 1, '\n') : NULL; /* the line with the caret */
		entry = next ? next + 1 : NULL;
		reason = text ? strstr(text, "error: ") : NULL;
		if (!reason || command_len != strlen(command) ||
		    memcmp(command_at, command, command_len) != 0 ||
		    (before && strstr(before, text)))
			continue;
		free(last);
		last = strdup(reason + strlen("error: "));
	}
	return steal_ptr(last);
}

/* Removes the place of an event that was added through @link. Returns 0 or a negative errno. */
static int remove_place(const struct uprobe_spec *spec, const char *link)
{
	_cleanup_free_ char *command = NULL;

	if (asprintf(&command, "-:%s/%s %s:0x%0*" PRIx64 "\n", spec->group, spec->event, link,
		     (int)(2 * sizeof(void *)), spec->offset) < 0) {
		command = NULL;
		return -ENOMEM;
	}
	errno = 0;
	return tracefs_instance_file_append(NULL, "uprobe_events", command) < 0
		       ? -(errno ? errno : EIO)
		       : 0;
}

/*
 * An event can have several places (file and offset). The kernel keeps the file that it found at a
 * path, and shows the text of the path. No interface shows which file it is. But the same place can
 * be added to the event through our descriptor. The kernel refuses that with EEXIST if the event is
 * on our inode (trace_uprobe_has_same_uprobe(), kernel/trace/trace_uprobe.c, 5.15 to 6.18), or if
 * its kind or its arguments differ, which the caller has compared. If it adds the place, the event
 * is on another file, would record that, and both have to go: first the new place alone, because an
 * event with two places must not be removed (see tracefs_uprobe_destroy()). The kernel finds the
 * new place by the text of its path (trace_uprobe_match_command_head()), which no other place has:
 * others have the path of a file, or probe_fd_path(). The new place is not in use, whoever uses the
 * event: the kernel enables the places that an event has when its first user comes.
 */
int tracefs_uprobe_remove_if_elsewhere(const struct uprobe_spec *spec)
{
	char link[PROBE_FD_PATH_MAX];
	int err;

	/* Not probe_fd_path(): no other place may have this text. */
	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", spec->fd);
	err = register_event(spec, link);
	if (err == -EEXIST)
		return 1;
	if (!err) {
		err = remove_place(spec, link);
		if (!err)
			return tracefs_uprobe_destroy(spec->group, spec->event);
	}
	diag_error("cannot tell which file %s/%s is on: %s", spec->group, spec->event,
		   strerror(-err));
	return err;
}

/*
 * Registers by the path, so that people who read tracefs see which file it is; by the descriptor if
 * the path leads nowhere, or to another file by now. Returns 0 or a negative errno.
 */
static int register_on_file(const struct uprobe_spec *spec)
{
	char link[PROBE_FD_PATH_MAX];
	int err, is_here;

	probe_fd_path(spec->fd, link);
	err = register_event(spec, spec->path);
	if (err == -ENOENT || err == -EACCES || err == -ELOOP || err == -ENOTDIR)
		return register_event(spec, link);
	if (err || strcmp(spec->path, link) == 0)
		return err;
	is_here = tracefs_uprobe_remove_if_elsewhere(spec);
	if (is_here)
		return is_here < 0 ? is_here : 0;
	return register_event(spec, link);
}

int tracefs_uprobe_create(const struct uprobe_spec *spec, const char *errors_before)
{
	_cleanup_free_ char *definition = tracefs_uprobe_definition(spec);
	_cleanup_free_ char *errors = NULL, *reason = NULL;
	int err = -ENOMEM;

	if (definition && strlen(definition) > MAX_COMMAND_BYTES)
		err = -ENAMETOOLONG;
	else if (definition)
		err = register_on_file(spec);
	if (!err)
		return 0;
	errors = tracefs_error_all(NULL);
	if (errors && definition)
		reason = tracefs_error_reason(errors_before, errors, definition);
	diag_error("cannot probe %s at 0x%" PRIx64 " of %s: %s%s%s%s", spec->event, spec->offset,
		   spec->path, reason ? reason : "", reason ? ": " : "", strerror(-err),
		   diag_rights_hint(err));
	return err;
}

int64_t tracefs_uprobe_id(const char *group, const char *event)
{
	_cleanup_free_ char *name = NULL, *text = NULL;
	const char *dir = probe_tracefs_dir();
	char *end;
	long id;

	if (!dir)
		return -ENODEV;
	if (asprintf(&name, "events/%s/%s/id", group, event) < 0) {
		name = NULL;
		diag_error("cannot read the id of %s/%s: %s", group, event, strerror(ENOMEM));
		return -ENOMEM;
	}
	text = read_file(dir, name);
	if (!text) {
		int err = errno ? -errno : -EIO;

		diag_error("cannot read %s/%s: %s", dir, name, strerror(-err));
		return err;
	}
	id = strtol(text, &end, 10);
	if (end == text || id <= 0) {
		diag_error("%s/%s holds no id", dir, name);
		return -EINVAL;
	}
	return id;
}

int tracefs_uprobe_destroy(const char *group, const char *event)
{
	/* The event is found by its name. libtracefs wants a path, but does not use it here. */
	struct tracefs_dynevent *handle = tracefs_uprobe_alloc(group, event, "/", 0, NULL);
	int err = -ENOMEM;

	if (handle) {
		errno = 0;
		err = tracefs_dynevent_destroy(handle, false) ? -(errno ? errno : EIO) : 0;
		tracefs_dynevent_free(handle);
	}
	if (err == -ENOENT)
		return 0;
	if (err && err != -EBUSY)
		diag_error("cannot remove %s/%s: %s%s", group, event, strerror(-err),
			   diag_rights_hint(err));
	return err;
}
