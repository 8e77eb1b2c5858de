/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a broker (common/broker/broker.h) does for a process that unwinds and names: it opens the
 * files that are named to it, with its own rights. Only programs, libraries and debug files are
 * passed on, no core file and nothing else that root alone may read: whoever took over the other
 * process could write what is in it to the report.
 */
#ifndef LEAKTOOLS_UNWIND_FILE_SERVICES_H
#define LEAKTOOLS_UNWIND_FILE_SERVICES_H

#include "common/broker/broker.h"

/* Stores the services in @services. @symfs: as in stack_store_options; it must live on. */
void file_services_add(struct broker_service services[BROKER_NR_OPS], const char *symfs);

#endif
