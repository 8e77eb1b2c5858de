/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/windows/followed_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

void followed_blocks_deinit(struct followed_blocks *blocks)
{
	while (blocks->by_key)
		followed_blocks_remove(blocks, blocks->by_key);
}

static unsigned int hash_pid(const struct followed_blocks *blocks, int64_t pid)
{
	const uint64_t word = (uint64_t)pid;

	return (unsigned int)hash_words(&word, 1, blocks->seed);
}

static unsigned int hash_key(const struct followed_blocks *blocks, const struct follow_key *key)
{
	const uint64_t words[] = {key->address, (uint64_t)key->pid};

	return (unsigned int)hash_words(words, 2, blocks->seed);
}

static struct waiting_process *waiting_process(const struct followed_blocks *blocks, int64_t pid)
{
	struct waiting_process *found;

	HASH_FIND_BYHASHVALUE(hh, blocks->waiting_of, &pid, sizeof(pid), hash_pid(blocks, pid),
			      found);
	return found;
}

static int begin_to_wait(struct followed_blocks *blocks, struct followed_block *block)
{
	struct waiting_process *process = waiting_process(blocks, block->key.pid);

	if (!process) {
		process = calloc(1, sizeof(*process));
		if (!process)
			return -ENOMEM;
		process->pid = block->key.pid;
		HASH_ADD_BYHASHVALUE(hh, blocks->waiting_of, pid, sizeof(process->pid),
				     hash_pid(blocks, process->pid), process);
		if (!hash_added(process)) {
			free(process);
			return -ENOMEM;
		}
	}
	DL_APPEND2(process->blocks, block, prev_of_process, next_of_process);
	DL_APPEND(blocks->waiting, block);
	return 0;
}

static void end_to_wait(struct followed_blocks *blocks, struct followed_block *block)
{
	struct waiting_process *process = waiting_process(blocks, block->key.pid);

	DL_DELETE(blocks->waiting, block);
	DL_DELETE2(process->blocks, block, prev_of_process, next_of_process);
	if (process->blocks)
		return;
	HASH_DEL(blocks->waiting_of, process);
	free(process);
}

int followed_blocks_add(struct followed_blocks *blocks, const struct followed_block *block)
{
	struct followed_block *added = malloc(sizeof(*added));

	if (!added)
		return -ENOMEM;
	if (!blocks->by_key)
		blocks->seed = hash_seed();
	*added = *block;
	added->nr_looks = added->nr_untouched = 0;
	if (begin_to_wait(blocks, added)) {
		free(added);
		return -ENOMEM;
	}
	HASH_ADD_BYHASHVALUE(hh, blocks->by_key, key, sizeof(added->key),
			     hash_key(blocks, &added->key), added);
	if (!hash_added(added)) {
		end_to_wait(blocks, added);
		free(added);
		return -ENOMEM;
	}
	return 0;
}

struct followed_block *followed_blocks_find(const struct followed_blocks *blocks, pid_t pid,
					    uint64_t address)
{
	const struct follow_key key = {address, pid};
	struct followed_block *found;

	HASH_FIND_BYHASHVALUE(hh, blocks->by_key, &key, sizeof(key), hash_key(blocks, &key), found);
	return found;
}

bool followed_blocks_look(struct followed_blocks *blocks, struct followed_block *block,
			  enum look_state state, uint64_t time_ns)
{
	bool is_first = block->nr_looks == 0;

	if (is_first)
		end_to_wait(blocks, block);
	block->nr_looks++;
	block->nr_untouched = state == LOOK_UNTOUCHED ? block->nr_untouched + 1 : 0;
	if (time_ns > block->seen_ns)
		block->seen_ns = time_ns;
	return is_first;
}

void followed_blocks_remove(struct followed_blocks *blocks, struct followed_block *block)
{
	if (!block->nr_looks)
		end_to_wait(blocks, block);
	HASH_DEL(blocks->by_key, block);
	free(block);
}

struct followed_block *followed_blocks_waiting(const struct followed_blocks *blocks,
					       uint64_t closed_ns)
{
	return blocks->waiting && blocks->waiting->closed_ns < closed_ns ? blocks->waiting : NULL;
}

struct followed_block *followed_blocks_waiting_of(const struct followed_blocks *blocks, pid_t pid)
{
	const struct waiting_process *process = waiting_process(blocks, pid);

	return process ? process->blocks : NULL;
}
