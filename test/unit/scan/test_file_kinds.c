/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which files may be opened to read the memory of their mappings. */
#include "scan/snapshot/file_kinds.h"

#include "common/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char mountinfo[] = "26 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
			  "24 23 0:22 / /dev/shm rw,relatime shared:4 master:1 - tmpfs tmpfs rw\n"
			  "23 26 0:6 / /dev rw,relatime - devtmpfs devtmpfs rw\n"
			  "31 23 0:31 / /dev/hugepages rw - hugetlbfs hugetlbfs rw,pagesize=2M\n"
			  "40 26 0:40 / /srv rw - nfs4 server:/srv rw\n"
			  "41 26 0:41 / /home/a\\040b rw - fuse.sshfs server:/home rw\n"
			  "42 26 8:1 / /media/stick rw - fuseblk /dev/sda1 rw\n"
			  "43 26 0:43 / /var/lib/x rw - overlay overlay rw\n"
			  "44 26 0:44 / /new rw - surelynew none rw\n"
			  "not a line of this file\n";

static void kinds_follow_from_the_mounts_and_names(void **state)
{
	static const struct {
		unsigned major, minor;
		const char *path;
		enum file_kind kind;
	} cases[] = {
		{254, 0, "/var/cache/x", FILE_DISK},
		{254, 0, "/memfd:x", FILE_DISK},
		{0, 22, "/dev/shm/x", FILE_MEMORY},
		{0, 31, "/dev/hugepages/rtemap_0", FILE_MEMORY},
		{0, 6, "/dev/dri/renderD128", FILE_DEVICE},
		{0, 40, "/srv/x", FILE_NETWORK},
		{0, 41, "/home/a b/x", FILE_OTHER},
		{8, 1, "/media/stick/x", FILE_OTHER},
		{0, 43, "/var/lib/x/x", FILE_DISK},
		{0, 44, "/new/x", FILE_NETWORK},
		{0, 1, "/memfd:x (deleted)", FILE_MEMORY},
		{0, 1, "/SYSV00000000 (deleted)", FILE_MEMORY},
		{0, 1, "/dev/zero (deleted)", FILE_MEMORY},
		{0, 15, "/anon_hugepage (deleted)", FILE_MEMORY},
		{0, 14, "anon_inode:[perf_event]", FILE_DEVICE},
		{0, 8, "socket:[1234]", FILE_DEVICE},
		{0, 17, "/[aio] (deleted)", FILE_DEVICE},
		{0, 18, "/secretmem (deleted)", FILE_OTHER},
		{0, 99, "/of/another/namespace", FILE_OTHER},
	};
	_cleanup_fclose_ FILE *file = fmemopen(mountinfo, sizeof(mountinfo) - 1, "r");
	struct file_kinds kinds = {0};

	(void)state;
	assert_non_null(file);
	assert_int_equal(file_kinds_add(&kinds, file), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[64];
		struct scan_region region = {
			.device = (uint64_t)cases[i].major << 32 | cases[i].minor,
			.path = path,
		};

		snprintf(path, sizeof(path), "%s", cases[i].path);
		if (file_kinds_of(&kinds, &region) != cases[i].kind)
			fail_msg("%s: %d, not %d", path, file_kinds_of(&kinds, &region),
				 cases[i].kind);
	}
	file_kinds_deinit(&kinds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_follow_from_the_mounts_and_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
