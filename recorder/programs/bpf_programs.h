/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loads the recording BPF programs as a recording's options and the kernel want them.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_PROGRAMS_H
#define LEAKTOOLS_RECORDER_BPF_PROGRAMS_H

#include "recorder/events/record_config.h"

/* uapi/linux/bpf.h of Linux 6.13; the build's may be older. */
#define ATTACH_UPROBE_MULTI   48 /* BPF_TRACE_UPROBE_MULTI */
#define ATTACH_UPROBE_SESSION 57 /* BPF_TRACE_UPROBE_SESSION */

struct bpf_recorder_bpf;

/*
 * Loads the programs that @config->by names, or the best. Returns 0; -EOPNOTSUPP if the kernel
 * lacks what they need or does not permit them; -EPROTONOSUPPORT if the kernel could crash when it
 * preempts them (private_stack.h). Reports nothing. The caller destroys *@ret. @ret_objections: why
 * each way that comes before *@ret_by, or all of them, cannot be taken; static text.
 */
int bpf_programs_load(const struct record_config *config, enum record_by *ret_by,
		      const char *ret_objections[RECORD_NR_WAYS], struct bpf_recorder_bpf **ret);

#endif
