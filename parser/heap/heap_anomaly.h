/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unexpected operations. */
#ifndef LEAKTOOLS_PARSER_HEAP_ANOMALY_H
#define LEAKTOOLS_PARSER_HEAP_ANOMALY_H

#include "parser/heap/heap_block.h"

enum heap_anomaly_kind {
	ANOMALY_FREE_UNKNOWN, /* free of a block from before the recording, or of no block */
	ANOMALY_DOUBLE_FREE,
	ANOMALY_STILL_HELD,	 /* an allocation returned a held block: a free was missed */
	ANOMALY_REALLOC_UNKNOWN, /* realloc of an unknown block */
	ANOMALY_ALLOC_FAILED,	 /* NULL, or posix_memalign's error */
	ANOMALY_MISMATCH,	 /* released by a function of another family: new[], then delete */
	ANOMALY_NR_KINDS,
};

struct heap_anomaly {
	enum heap_anomaly_kind kind;
	uint64_t address;
	struct heap_op op; /* the unexpected operation */
	/*
	 * DOUBLE_FREE, STILL_HELD, MISMATCH: the known allocation of the address. ALLOC_FAILED: the
	 * size asked for.
	 */
	struct heap_block block;
	struct heap_op released; /* DOUBLE_FREE: the first free */
};

#endif
