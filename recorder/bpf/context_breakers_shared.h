/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that the BPF programs at clone() (context_breakers.bpf.h) and the recorder share. */
#ifndef LEAKTOOLS_RECORDER_CONTEXT_BREAKERS_SHARED_H
#define LEAKTOOLS_RECORDER_CONTEXT_BREAKERS_SHARED_H

#define BREAKER_MAX_ANSWERS 4096 /* a power of two */

enum breaker_answer {
	BREAKER_OPEN,
	BREAKER_REFUSED, /* it could not be opened: do not ask again */
};

struct breaker_shared {
	/* CLOCK_MONOTONIC: older threads of recorded processes have breakers already. */
	unsigned long long attached_ns;
	unsigned long long nr_requests;
	unsigned long long nr_unguarded; /* tasks that were created without a breaker */
	/* At the request's number: (the number << 1) + enum breaker_answer. */
	unsigned long long answers[BREAKER_MAX_ANSWERS];
};

struct breaker_request {
	unsigned long long number;
	unsigned int tgid, tid;
};

#endif
