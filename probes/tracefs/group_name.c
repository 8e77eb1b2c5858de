/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/tracefs/group_name.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/sysmacros.h>

#define LEAKPROBE_PREFIX "leakprobe_"
#define LEAKREC_PREFIX	 "leakrec"
#define HASHES_LENGTH	 18 /* "_iiiiiiii_bbbbbbbb" */

uint32_t group_name_inode_hash(dev_t device, ino_t inode)
{
	uint64_t words[3] = {major(device), minor(device), inode};
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < 3 * sizeof(words[0]); i++) {
		hash ^= (words[i / 8] >> (i % 8 * 8)) & 0xff;
		hash *= 16777619u;
	}
	return hash;
}

void group_name_set_file(struct group_name *name, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t len = 0;

	for (; len < sizeof(name->file) - 1 && base[len]; len++) {
		unsigned char c = base[len];

		/* Not isalnum() alone: the kernel accepts only ASCII, whatever the locale. */
		name->file[len] = c < 0x80 && isalnum(c) ? c : '_';
	}
	if (len == 0)
		name->file[len++] = '_';
	name->file[len] = '\0';
}

void group_name_format(const struct group_name *name, char buffer[static PROBE_NAME_MAX])
{
	char hashes[HASHES_LENGTH + 1], suffix[10] = "";
	int len, room;

	snprintf(hashes, sizeof(hashes), "_%08" PRIx32 "_%08" PRIx32, name->inode_hash,
		 name->build_hash);
	if (name->pid_namespace)
		snprintf(suffix, sizeof(suffix), "n%" PRIx32, name->pid_namespace);
	if (name->owner == GROUP_OF_LEAKPROBE)
		len = snprintf(buffer, PROBE_NAME_MAX, LEAKPROBE_PREFIX);
	else
		len = snprintf(buffer, PROBE_NAME_MAX, LEAKREC_PREFIX "%d%s_%" PRIx64 "_",
			       (int)name->pid, suffix, name->start_time_ticks);
	/*
	 * The prefix has at most 7 + 10 + 9 + 1 + 16 + 1 characters, so some of the file's part
	 * fits.
	 */
	room = PROBE_NAME_MAX - 1 - HASHES_LENGTH - len;
	snprintf(buffer + len, PROBE_NAME_MAX - len, "%.*s%s", room, name->file, hashes);
}

/* Parses '_' and eight lower-case hexadecimal digits. */
static int parse_hash(const char *text, uint32_t *ret)
{
	if (text[0] != '_')
		return -EINVAL;
	*ret = 0;
	for (int i = 1; i <= 8; i++) {
		const char *digits = "0123456789abcdef";
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit)
			return -EINVAL;
		*ret = *ret << 4 | (uint32_t)(digit - digits);
	}
	return 0;
}

/* Parses "<pid>_<starttime>_", "<pid>n<namespace>_<starttime>_". Returns what follows, or NULL. */
static const char *parse_recorder(const char *text, struct group_name *ret)
{
	unsigned long pid, inode = 0;
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	pid = strtoul(text, &end, 10);
	if (*end == 'n' && isxdigit((unsigned char)end[1]))
		inode = strtoul(end + 1, &end, 16);
	if (*end != '_' || pid == 0 || pid > INT32_MAX || !isxdigit((unsigned char)end[1]))
		return NULL;
	if (inode > UINT32_MAX)
		return NULL;
	ret->pid = (pid_t)pid;
	ret->pid_namespace = (uint32_t)inode;
	ret->start_time_ticks = strtoull(end + 1, &end, 16);
	return *end == '_' ? end + 1 : NULL;
}

int group_name_parse(const char *text, struct group_name *ret)
{
	size_t len = strlen(text), file_len;
	const char *file;

	*ret = (struct group_name){0};
	if (len >= PROBE_NAME_MAX || len <= HASHES_LENGTH)
		return -EINVAL;
	if (strncmp(text, LEAKPROBE_PREFIX, strlen(LEAKPROBE_PREFIX)) == 0) {
		ret->owner = GROUP_OF_LEAKPROBE;
		file = text + strlen(LEAKPROBE_PREFIX);
	} else if (strncmp(text, LEAKREC_PREFIX, strlen(LEAKREC_PREFIX)) == 0) {
		ret->owner = GROUP_OF_LEAKREC;
		file = parse_recorder(text + strlen(LEAKREC_PREFIX), ret);
	} else {
		return -EINVAL;
	}
	if (!file || file >= text + len - HASHES_LENGTH)
		return -EINVAL;
	file_len = text + len - HASHES_LENGTH - file;
	memcpy(ret->file, file, file_len);
	ret->file[file_len] = '\0';
	if (parse_hash(text + len - HASHES_LENGTH, &ret->inode_hash) ||
	    parse_hash(text + len - HASHES_LENGTH / 2, &ret->build_hash))
		return -EINVAL;
	return 0;
}
