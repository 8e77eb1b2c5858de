/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A library whose data, and whose thread-local variable, hold a block. */
static void *volatile in_data[100];
static __thread void *volatile in_thread[100];

void reach_set(int thread_local, void *block);
void reach_set(int thread_local, void *block)
{
	if (thread_local)
		in_thread[70] = block;
	else
		in_data[70] = block;
}
