/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds any stack dump through the call frame information of any ELF file, by rules and by
 * libdwfl. The input is struct unwind_input, then the file.
 */
#include "test/fuzz/unwind_input.h"
#include "unwind/stacks/stack_store.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOAD_BYTES 0x10000 /* may be more than the file has */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
	if (!is_true)
		abort();
}

/* The stack is as long as the dump says, so that ASan sees what is read behind it. */
static struct stack_dump make_dump(const struct unwind_input *input)
{
	const size_t nr = input->stack_bytes % (sizeof(input->stack) + 1);
	uint8_t *stack = malloc(nr + 1);

	require(stack);
	memcpy(stack, input->stack, nr);
	return (struct stack_dump){
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs_mask = input->is_arm64 & 1 ? UNWIND_ARM64_MASK : UNWIND_X86_MASK,
		.regs = input->registers,
		.bytes = stack,
		.nr_bytes = nr,
		.returned_from = input->returned_from,
		.is_returning = input->is_returning & 1,
		.pending_returns = input->has_pending_returns & 1 ? input->pending_returns : NULL,
		.nr_pending_returns = input->has_pending_returns & 1 ? 2 : 0,
	};
}

/* Twice: the second time, the rules are known. */
static void unwind(struct stack_store *store, const struct stack_dump *dump)
{
	const uint64_t *addresses;
	struct stack_end end;
	uint32_t id, again;
	uint64_t sum = 0;
	size_t nr;

	require(stack_store_add_dump(store, 1, dump, &id) == 0);
	require(stack_store_add_dump(store, 1, dump, &again) == 0);
	require(id == again && stack_store_nr_frames(store, id) <= STACK_MAX_FRAMES);
	require(stack_store_unwind_dump(store, 1, dump, &addresses, &nr, &end) == 0);
	require(nr <= STACK_MAX_FRAMES && end.nr_interrupted <= nr);
	require(!end.is_whole || !end.is_truncated);
	for (size_t i = 0; i < nr; i++)
		sum += addresses[i];
	stack_store_is_code(store, 1, sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_input input;
	struct stack_store *store;
	struct stack_dump dump;
	char path[64];
	int fd;

	if (size < sizeof(input))
		return -1;
	memcpy(&input, data, sizeof(input));
	data += sizeof(input);
	size -= sizeof(input);
	fd = memfd_create("file", MFD_CLOEXEC);
	require(fd >= 0 && (!size || write(fd, data, size) == (ssize_t)size));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	const struct stack_mapping mapping = {
		.pid = 1,
		.start = UNWIND_LOAD_ADDRESS,
		.len = LOAD_BYTES,
		.path = path,
	};
	require(stack_store_create(NULL, &store) == 0 && stack_store_map(store, &mapping) == 0);
	dump = make_dump(&input);
	unwind(store, &dump);
	free((void *)dump.bytes);
	stack_store_destroy(store);
	close(fd);
	return 0;
}
