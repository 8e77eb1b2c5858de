/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/uprobe_link.h"

#include "common/interrupted.h"
#include "probes/plan/probe_file.h"
#include "recorder/processes/apart.h"
#include "recorder/programs/bpf_programs.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MULTI_AT_RETURN 1 /* BPF_F_UPROBE_MULTI_RETURN, uapi/linux/bpf.h */

/* The attributes of BPF_LINK_CREATE for uprobe_multi. */
struct link_create_attr {
	uint32_t program_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_counter_offsets, cookies;
	uint32_t nr, multi_flags, pid, reserved;
};

int uprobe_link_create(const struct uprobe_link *link)
{
	char path[PROBE_FD_PATH_MAX];
	struct link_create_attr attr = {
		.program_fd = (uint32_t)link->program_fd,
		.attach_type = link->is_session ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)link->offsets,
		.cookies = (uintptr_t)link->cookies,
		.nr = link->nr,
		.multi_flags = link->at_return ? MULTI_AT_RETURN : 0,
		.pid = (uint32_t)link->pid,
	};
	int fd;

	probe_fd_path(link->file_fd, path);
	fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

static int create(void *link)
{
	return uprobe_link_create(link);
}

int uprobe_link_create_apart(struct uprobe_link *link)
{
	return is_interrupted() ? -EINTR : apart_run(create, link);
}
