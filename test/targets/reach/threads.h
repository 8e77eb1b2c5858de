/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that hold blocks until the program ends. main() must initialise the semaphore. */
#ifndef LEAKTOOLS_TARGETS_REACH_THREADS_H
#define LEAKTOOLS_TARGETS_REACH_THREADS_H

#include "reach.h"

#include <pthread.h>
#include <semaphore.h>

static sem_t ready;

static inline void start(void *(*run)(void *), void *arg, const pthread_attr_t *attributes,
			 pthread_t *ret)
{
	pthread_t thread;

	if (pthread_create(ret ? ret : &thread, attributes, run, arg))
		abort();
}

static __attribute__((unused)) REACH_CASE void start_and_wait(void *(*run)(void *))
{
	start(run, NULL, NULL, NULL);
	sem_wait(&ready);
}

static __attribute__((unused)) REACH_CASE void sleep_for_ever(void)
{
	sem_post(&ready);
	for (;;)
		pause();
}

/*
 * Puts the address in rax by INSTRUCTION somewhere, clears every other register that C code uses,
 * and the variable at rdx, and sleeps.
 */
#define HOLD_IN(instruction, block)                                                                \
	__asm__ volatile(instruction                                                               \
			 "movq $0, (%%rdx)\n"                                                      \
			 "xor %%ebx, %%ebx\n xor %%ecx, %%ecx\n xor %%edx, %%edx\n"                \
			 "xor %%edi, %%edi\n xor %%esi, %%esi\n xor %%ebp, %%ebp\n"                \
			 "xor %%r8d, %%r8d\n xor %%r9d, %%r9d\n xor %%r10d, %%r10d\n"              \
			 "xor %%r13d, %%r13d\n xor %%r14d, %%r14d\n xor %%r15d, %%r15d\n"          \
			 "1: mov $34, %%eax\n syscall\n jmp 1b\n"                                  \
			 :                                                                         \
			 : "a"(block), "d"(&(block))                                               \
			 : "memory")

#endif
