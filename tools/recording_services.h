/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What leak-broker (tools/separation.h) does for a tool that reads recordings. */
#ifndef LEAKTOOLS_TOOLS_RECORDING_SERVICES_H
#define LEAKTOOLS_TOOLS_RECORDING_SERVICES_H

#include "common/broker/broker.h"

/* What root has named; it must live on. */
struct recording_services {
	const char *const *inputs;
	size_t nr_inputs;
	const char *symfs, *on_leak; /* or NULL */
};

/* For separation.add_services. @context: a struct recording_services. */
int recording_services_add(const void *context, struct broker_service services[BROKER_NR_OPS]);

#endif
