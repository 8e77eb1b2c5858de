/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/thread_registers.h"

#include "scan/snapshot/sleeping_threads_shared.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

/* More than the state components of any processor (AMX: 11 KiB). */
#define MAX_VECTOR_BYTES 65536

#ifdef __x86_64__

const uint16_t thread_registers_machine = EM_X86_64;
#define NT_VECTOR      NT_X86_XSTATE
#define VECTOR_SKIPPED 32 /* control words and addresses of the last instruction (FXSAVE) */

int thread_registers_set_general(struct thread_registers *registers, const void *image, size_t size)
{
	struct user_regs_struct r;

	if (size < sizeof(r))
		return -EINVAL;
	memcpy(&r, image, sizeof(r));
	const struct register_value values[] = {
		{"rax", r.rax},		{"rbx", r.rbx}, {"rcx", r.rcx}, {"rdx", r.rdx},
		{"rsi", r.rsi},		{"rdi", r.rdi}, {"rbp", r.rbp}, {"r8", r.r8},
		{"r9", r.r9},		{"r10", r.r10}, {"r11", r.r11}, {"r12", r.r12},
		{"r13", r.r13},		{"r14", r.r14}, {"r15", r.r15}, {"fs_base", r.fs_base},
		{"gs_base", r.gs_base},
	};
	memcpy(registers->general, values, sizeof(values));
	registers->nr_general = sizeof(values) / sizeof(values[0]);
	registers->pc = r.rip;
	registers->sp = r.rsp;
	registers->thread_pointer = r.fs_base;
	registers->syscall = (int64_t)r.orig_rax;
	return 0;
}

#elif defined(__aarch64__)

const uint16_t thread_registers_machine = EM_AARCH64;
#define NT_VECTOR      NT_PRFPREG
#define VECTOR_SKIPPED 0

int thread_registers_set_general(struct thread_registers *registers, const void *image, size_t size)
{
	static const char *const names[] = {
		"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",  "x10",
		"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
		"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30",
	};
	struct user_regs_struct r;

	if (size < sizeof(r))
		return -EINVAL;
	memcpy(&r, image, sizeof(r));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		registers->general[i] = (struct register_value){names[i], r.regs[i]};
	registers->nr_general = sizeof(names) / sizeof(names[0]);
	registers->pc = r.pc;
	registers->sp = r.sp;
	registers->syscall = -1; /* NT_ARM_SYSTEM_CALL has it, PTRACE_GETREGSET only */
	return 0;
}

#else
#error "scan/snapshot/thread_registers.c does not know this machine's registers"
#endif

int thread_registers_set_vector(struct thread_registers *registers, const void *image, size_t size)
{
	if (size <= VECTOR_SKIPPED || size > MAX_VECTOR_BYTES)
		return -EINVAL;
	free(registers->vector);
	registers->vector_bytes = 0;
	registers->vector = malloc(size - VECTOR_SKIPPED);
	if (!registers->vector)
		return -ENOMEM;
	registers->vector_bytes = size - VECTOR_SKIPPED;
	memcpy(registers->vector, (const uint8_t *)image + VECTOR_SKIPPED, registers->vector_bytes);
	return 0;
}

#ifdef __x86_64__

/* Of XSAVE's image: Intel SDM, volume 1, 13.4. */
#define LEGACY_BYTES  512
#define HEADER_BYTES  64
#define XMM_AT	      160
#define XMM_BYTES     256
#define COMPONENT_SSE 2u

/*
 * The instruction leaves a component of the image as it was if all of its registers are zero, and
 * says in the header which ones it wrote. Of those behind the header, old words may remain.
 */
static void clear_unwritten(uint8_t *image, size_t size)
{
	uint64_t written;

	if (size < LEGACY_BYTES + HEADER_BYTES)
		return;
	memcpy(&written, image + LEGACY_BYTES, sizeof(written));
	if (!(written & COMPONENT_SSE))
		memset(image + XMM_AT, 0, XMM_BYTES);
	if (!(written >> 2))
		memset(image + LEGACY_BYTES + HEADER_BYTES, 0, size - LEGACY_BYTES - HEADER_BYTES);
}

int thread_registers_set_sleeping(struct thread_registers *ret,
				  const struct sleeping_thread *sleeping)
{
	struct sleeping_thread copy = *sleeping;
	struct user_regs_struct r = {.fs_base = copy.fs_base, .gs_base = copy.gs_base};
	int err;

	*ret = (struct thread_registers){0};
	memcpy(&r, copy.general, sizeof(copy.general));
	err = thread_registers_set_general(ret, &r, sizeof(r));
	clear_unwritten(copy.vector, copy.vector_bytes);
	return err ? err : thread_registers_set_vector(ret, copy.vector, copy.vector_bytes);
}

#else

/* The program reads the registers of x86-64 only. */
int thread_registers_set_sleeping(struct thread_registers *ret,
				  const struct sleeping_thread *sleeping)
{
	return -ENOTSUP;
}

#endif

static int read_set(pid_t tid, unsigned long type, uint8_t *image, size_t *size)
{
	struct iovec set = {image, MAX_VECTOR_BYTES};

	if (ptrace(PTRACE_GETREGSET, tid, type, &set) < 0)
		return -errno;
	*size = set.iov_len;
	return 0;
}

int thread_registers_read(pid_t tid, struct thread_registers *ret)
{
	uint8_t *image = malloc(MAX_VECTOR_BYTES);
	size_t size = 0;
	int err;

	*ret = (struct thread_registers){0};
	if (!image)
		return -ENOMEM;
	err = read_set(tid, NT_PRSTATUS, image, &size);
	if (!err)
		err = thread_registers_set_general(ret, image, size);
	if (!err && (read_set(tid, NT_VECTOR, image, &size) == 0 ||
		     read_set(tid, NT_PRFPREG, image, &size) == 0))
		err = thread_registers_set_vector(ret, image, size);
#ifdef __aarch64__
	if (!err && read_set(tid, NT_ARM_TLS, image, &size) == 0 && size >= sizeof(uint64_t))
		memcpy(&ret->thread_pointer, image, sizeof(uint64_t));
#endif
	free(image);
	return err;
}

void thread_registers_deinit(struct thread_registers *registers)
{
	free(registers->vector);
	registers->vector = NULL;
	registers->vector_bytes = 0;
}
