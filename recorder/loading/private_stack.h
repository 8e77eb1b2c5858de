/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks loaded BPF programs for a private stack. A kernel that preempts programs at uprobes
 * crashes if they have one (task_stack.bpf.h has the reason).
 */
#ifndef LEAKTOOLS_RECORDER_PRIVATE_STACK_H
#define LEAKTOOLS_RECORDER_PRIVATE_STACK_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * True if no loaded program of @object that a uprobe runs has a private stack. The machine code
 * proves it. Where that cannot be read (kernel.kptr_restrict is 2, or not x86-64), the kernel's
 * release decides: the rules of kernels up to Linux 7.3 are known.
 */
bool uprobe_programs_are_safe(const struct bpf_object *object);

/* True if the x86-64 machine code sets up a private stack. */
bool code_has_private_stack(const uint8_t *code, size_t size_bytes);

/* True if the rules of the kernel @release, such as "6.18.4-amd64", are known. */
bool private_stack_rules_are_known(const char *release);

#endif
