// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prints process ids that all begin in the target table's first slots, a line each: more than the
 * table takes of them. It records nothing and is not recorded (full_table.py).
 */
#include "recorder/target_table/target_search.h"

#include <stdio.h>

#define NR_SLOTS 16
#define MIN_ID	 300   /* RESERVED_PIDS, kernel/pid.c: where ids begin again */
#define MAX_ID	 32768 /* ids that every system has */

int main(void)
{
	for (unsigned int id = MIN_ID; id < MAX_ID; id++)
		if (target_slot(id) < NR_SLOTS)
			printf("%u\n", id);
	return 0;
}
