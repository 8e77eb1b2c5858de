/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/loading/private_stack.h"

#include "common/scope.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define MAX_CODE_BYTES (1U << 20)
/* The newest kernel whose kernel/bpf/verifier.c was read. */
#define KNOWN_MAJOR 7
#define KNOWN_MINOR 3

#if defined(__x86_64__)
#define KNOWS_CODE true /* code_has_private_stack() */
#else
#define KNOWS_CODE false
#endif

bool code_has_private_stack(const uint8_t *code, size_t size_bytes)
{
	/*
	 * add %gs:this_cpu_off,%r9: emit_priv_frame_ptr(), arch/x86/net/bpf_jit_comp.c (Linux 6.13
	 * to 7.3). The JIT has no other use for r9 with a segment prefix.
	 */
	static const uint8_t add_cpu_offset[] = {0x65, 0x4c, 0x03, 0x0c, 0x25};

	return memmem(code, size_bytes, add_cpu_offset, sizeof(add_cpu_offset));
}

bool private_stack_rules_are_known(const char *release)
{
	int major, minor;

	return sscanf(release, "%d.%d", &major, &minor) == 2 &&
	       (major < KNOWN_MAJOR || (major == KNOWN_MAJOR && minor <= KNOWN_MINOR));
}

/* The machine code of a program, which the caller frees, or NULL: it cannot be read. */
static uint8_t *read_code(int program_fd, uint32_t *ret_size_bytes)
{
	_cleanup_free_ uint8_t *code = malloc(MAX_CODE_BYTES);
	struct bpf_prog_info info = {
		.jited_prog_insns = (uintptr_t)code,
		.jited_prog_len = MAX_CODE_BYTES,
	};
	uint32_t info_size = sizeof(info);

	/* The kernel clears the pointer where we may not see addresses. */
	if (!code || bpf_obj_get_info_by_fd(program_fd, &info, &info_size) ||
	    !info.jited_prog_insns || info.jited_prog_len == 0 ||
	    info.jited_prog_len > MAX_CODE_BYTES)
		return NULL;
	*ret_size_bytes = info.jited_prog_len;
	return steal_ptr(code);
}

static bool is_safe(const struct bpf_program *program)
{
	uint32_t size_bytes;
	_cleanup_free_ uint8_t *code =
		KNOWS_CODE ? read_code(bpf_program__fd(program), &size_bytes) : NULL;
	struct utsname name;

	if (code)
		return !code_has_private_stack(code, size_bytes);
	return uname(&name) == 0 && private_stack_rules_are_known(name.release);
}

bool uprobe_programs_are_safe(const struct bpf_object *object)
{
	struct bpf_program *program = NULL;

	while ((program = bpf_object__next_program(object, program)))
		if (bpf_program__type(program) == BPF_PROG_TYPE_KPROBE &&
		    bpf_program__fd(program) >= 0 && !is_safe(program))
			return false;
	return true;
}
