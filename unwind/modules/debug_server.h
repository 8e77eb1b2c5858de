/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fetches debug files from the debuginfod servers in DEBUGINFOD_URLS. If that is unset or empty, no
 * library is loaded and no server is asked. libdebuginfod caches the files. All times are bounded:
 * after a timeout no server is asked again.
 */
#ifndef LEAKTOOLS_UNWIND_DEBUG_SERVER_H
#define LEAKTOOLS_UNWIND_DEBUG_SERVER_H

#include "common/broker/broker.h"

#include <stddef.h>
#include <stdint.h>

#define DEBUG_SERVER_STALL_S 10	 /* without a byte */
#define DEBUG_SERVER_FILE_S  120 /* for one file; a large library's takes less */
#define DEBUG_SERVER_ALL_S   300 /* for all files of a run */

struct debug_server;

/* *@ret is NULL if no servers are named. Returns 0 or -ENOMEM. */
int debug_server_create(struct debug_server **ret);
void debug_server_destroy(struct debug_server *server);

/*
 * Fetches the debug file for a build-id; messages call it @name. Returns a descriptor that the
 * caller closes, with its path in *@ret_path, which the caller frees; or -ENOENT.
 */
int debug_server_fetch(struct debug_server *server, const char *name, const uint8_t *build_id,
		       size_t build_id_size, char **ret_path);

/* The broker's part of that (BROKER_FETCH_DEBUG). It has a server of its own, without @context. */
int debug_server_serve(void *context, const struct broker_request *request, int *ret_fd);

#endif
