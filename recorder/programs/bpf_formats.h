/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The formats of the events that BPF programs write: what tracefs' format file would say if the
 * kernel had written the same event.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_FORMATS_H
#define LEAKTOOLS_RECORDER_BPF_FORMATS_H

#include "probes/plan/probe_set.h"

#include <stdint.h>

/*
 * Returns the format of the event named @event that programs write for @probe at @point, or NULL if
 * out of memory. The caller frees it.
 */
char *bpf_format_text(const struct probe *probe, enum probe_point point, const char *event,
		      uint64_t type);

#endif
