/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/loading/bpf_setup.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdint.h>

static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

void bpf_setup_silence_libbpf(void)
{
	libbpf_set_print(print_nothing);
}

int bpf_setup_set_cgroup(int map_fd, int cgroup_fd)
{
	const uint32_t key = 0;

	return bpf_map_update_elem(map_fd, &key, &cgroup_fd, BPF_ANY);
}
