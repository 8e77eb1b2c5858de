/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread's registers, as ptrace and core files give them. All that depends on the machine is
 * here.
 */
#ifndef LEAKTOOLS_SCAN_THREAD_REGISTERS_H
#define LEAKTOOLS_SCAN_THREAD_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

/* The memory below the stack pointer that a function may use without moving it (AMD64 ABI, 3.2.2).
 */
#ifdef __x86_64__
#define THREAD_RED_ZONE 128
#else
#define THREAD_RED_ZONE 0
#endif

/*
 * From the thread pointer to the pointer to the table of thread-local variables; and whether those
 * of the program and its first libraries are below the thread pointer, or above it (glibc's
 * sysdeps/x86_64/nptl/tls.h, sysdeps/aarch64/nptl/tls.h, 2.36).
 */
#ifdef __x86_64__
#define THREAD_DTV_AT	 8
#define THREAD_TLS_BELOW true
#else
#define THREAD_DTV_AT	 0
#define THREAD_TLS_BELOW false
#endif

struct register_value {
	const char *name;
	uint64_t value;
};

#define THREAD_MAX_GENERAL 34

struct thread_registers {
	uint64_t pc, sp;
	uint64_t thread_pointer; /* 0: not known */
	int64_t syscall;	 /* the number of the system call that it is in; -1: none */
	struct register_value general[THREAD_MAX_GENERAL];
	size_t nr_general;
	uint8_t *vector; /* the image of the floating-point and vector registers; may be NULL */
	size_t vector_bytes;
};

/* Takes the general registers from the note NT_PRSTATUS's @image. Returns 0 or -EINVAL. */
int thread_registers_set_general(struct thread_registers *registers, const void *image,
				 size_t size);

/* Takes the vector registers from a copy of NT_X86_XSTATE's or NT_FPREGSET's image. */
int thread_registers_set_vector(struct thread_registers *registers, const void *image, size_t size);

struct sleeping_thread;

/* Takes all of a thread's that sleeping_threads.h read. Returns 0 or a negative errno. */
int thread_registers_set_sleeping(struct thread_registers *ret,
				  const struct sleeping_thread *sleeping);

/* Reads all of a stopped thread's. Returns 0 or a negative errno. */
int thread_registers_read(pid_t tid, struct thread_registers *ret);
void thread_registers_deinit(struct thread_registers *registers);

/* The machine (EM_*) whose registers this build knows. */
extern const uint16_t thread_registers_machine;

#endif
