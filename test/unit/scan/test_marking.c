/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which class each block of a made-up process is of, and who is named as its holder. */
#include "scan/analysis/scan.h"
#include "test/support/heap_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define CACHE_BLOCK 0x288u

static struct scan scan;

/* Analyses the image as if an earlier snapshot had said that every block is lost. */
static void analyse(struct heap_image *image)
{
	struct lost_before blocks[64];
	struct lost_list before = {.blocks = blocks};

	heap_image_end(image);
	assert_int_equal(scan_init(&scan, &image->snapshot, NULL, NULL), 0);
	for (; before.nr < scan.heap.map.nr_blocks; before.nr++) {
		struct heap_block_view view;

		heap_block_view(&scan.heap, (uint32_t)before.nr, &view);
		blocks[before.nr] = (struct lost_before){view.address, view.size_bytes};
	}
	scan_deinit(&scan);
	assert_int_equal(scan_init(&scan, &image->snapshot, NULL, &before), 0);
	assert_true(scan.may_say_lost);
}

static void end(struct heap_image *image)
{
	scan_deinit(&scan);
	heap_image_deinit(image);
}

static const char *class_of(uint64_t address)
{
	const struct lost_block *lost;
	uint64_t offset;
	uint32_t block = heap_find_block(&scan.heap, address, &offset);

	assert_int_not_equal(block, HEAP_NONE);
	return reach_class_words[scan_class_of(&scan, block, &lost)];
}

static void add_blocks(struct heap_image *image, uint64_t *blocks, size_t nr)
{
	heap_image_init(image);
	for (size_t i = 0; i < nr; i++)
		blocks[i] = heap_image_add(image, 56);
}

static void roots_hold_what_they_lead_to(void **state)
{
	struct heap_image image;
	uint64_t b[7];

	add_blocks(&image, b, 7);
	heap_image_set(&image, HEAP_IMAGE_DATA + 8, b[0]);
	heap_image_set(&image, b[0] + 48, b[1]);
	heap_image_set(&image, HEAP_IMAGE_SP + 16, b[2]);
	image.snapshot.threads[0].registers.general[1].value = b[3];
	heap_image_set(&image, HEAP_IMAGE_DATA + 16, b[4] + 21);
	heap_image_set(&image, b[4], b[5]);
	heap_image_set(&image, HEAP_IMAGE_SP - 8, b[6]);
	analyse(&image);
	for (int i = 0; i < 4; i++)
		assert_string_equal(class_of(b[i]), "held");
	assert_string_equal(class_of(b[4]), "possible");
	assert_string_equal(class_of(b[5]), "possible");
	assert_string_equal(class_of(b[6]), "weak");
	end(&image);
}

static void nothing_holds_lost_blocks(void **state)
{
	struct heap_image image;
	const struct lost_root *roots;
	uint64_t b[8];

	add_blocks(&image, b, 8);
	/* A list; a cycle with a tail; one that points to itself; two that lead to the same. */
	heap_image_set(&image, b[0], b[1]);
	heap_image_set(&image, b[2], b[3]);
	heap_image_set(&image, b[3], b[2]);
	heap_image_set(&image, b[3] + 8, b[4]);
	heap_image_set(&image, b[5], b[5]);
	heap_image_set(&image, b[6], b[1]);
	/* Below the red zone. */
	heap_image_set(&image, HEAP_IMAGE_SP - 512, b[7]);
	analyse(&image);
	assert_string_equal(class_of(b[0]), "lost");
	assert_string_equal(class_of(b[1]), "lost-through");
	assert_string_equal(class_of(b[2]), "cycle");
	assert_string_equal(class_of(b[3]), "cycle");
	assert_string_equal(class_of(b[4]), "lost-through");
	assert_string_equal(class_of(b[5]), "lost");
	assert_string_equal(class_of(b[6]), "lost");
	assert_string_equal(class_of(b[7]), "lost");
	/* The cycle is the largest: three blocks. */
	roots = scan.lost.roots;
	assert_int_equal(scan.lost.nr_roots, 5);
	assert_int_equal(lost_root_total(&roots[0]), 3 * 56);
	assert_int_equal(roots[0].cycle_blocks, 2);
	assert_int_equal(scan.lost.bytes, 8 * 56);
	end(&image);
}

#define MAX_NODES 12

/* What leads where, in several steps. */
static void close_graph(bool leads[MAX_NODES][MAX_NODES], int nr)
{
	for (int k = 0; k < nr; k++)
		for (int i = 0; i < nr; i++)
			for (int j = 0; j < nr; j++)
				leads[i][j] |= leads[i][k] && leads[k][j];
}

/* As the definitions say it. */
static const char *expected_class(bool leads[MAX_NODES][MAX_NODES], int nr, int node)
{
	bool is_in_cycle = false;

	for (int i = 0; i < nr; i++) {
		if (i == node || !leads[i][node])
			continue;
		if (!leads[node][i])
			return "lost-through";
		is_in_cycle = true;
	}
	return is_in_cycle ? "cycle" : "lost";
}

static void lost_blocks_of_any_shape_have_their_classes(void **state)
{
	srandom(20);
	for (int round = 0; round < 300; round++) {
		bool leads[MAX_NODES][MAX_NODES] = {0};
		int nr = 1 + (int)random() % MAX_NODES, nr_edges = (int)random() % (2 * nr);
		struct heap_image image;
		uint64_t b[MAX_NODES], bytes = 0;

		add_blocks(&image, b, (size_t)nr);
		for (int i = 0; i < nr_edges; i++) {
			int from = (int)random() % nr, to = (int)random() % nr;

			heap_image_set(&image, b[from] + (uint64_t)random() % 7 * 8, b[to]);
		}
		/* A word may have been overwritten. */
		for (int i = 0; i < nr; i++)
			for (uint64_t at = 0; at < 56; at += 8)
				for (int j = 0; j < nr; j++)
					leads[i][j] |= heap_image_get(&image, b[i] + at) == b[j];
		close_graph(leads, nr);
		analyse(&image);
		for (int i = 0; i < nr; i++)
			assert_string_equal(class_of(b[i]), expected_class(leads, nr, i));
		for (size_t i = 0; i < scan.lost.nr_roots; i++)
			bytes += lost_root_total(&scan.lost.roots[i]);
		assert_int_equal(bytes, nr * 56);
		end(&image);
	}
}

/* Addresses in other forms, which count only if nothing else leads to the block. */
static void hidden_addresses_hold_possibly(void **state)
{
	struct heap_image image;
	uint64_t b[12];

	add_blocks(&image, b, 12);
	heap_image_set(&image, HEAP_IMAGE_DATA + 8, b[0] + 56);
	heap_image_set(&image, HEAP_IMAGE_DATA + 32, b[3] - 8);
	heap_image_set(&image, HEAP_IMAGE_DATA + 56, b[2]);
	heap_image_set(&image, HEAP_IMAGE_DATA + 80, b[5] - 4);
	heap_image_set(&image, HEAP_IMAGE_DATA + 104, b[6] | 0x7ull << 48);
	heap_image_set(&image, HEAP_IMAGE_DATA + 128, b[7] << 24);
	heap_image_set(&image, HEAP_IMAGE_DATA + 136, b[7] >> 40);
	/* In a block that is found so, and in one that is lost. */
	heap_image_set(&image, b[6] + 8, b[8] | 0x9ull << 48);
	heap_image_set(&image, b[9], b[10] | 0x9ull << 48);
	analyse(&image);
	assert_string_equal(class_of(b[0]), "possible");
	assert_string_equal(class_of(b[1]), "possible");
	assert_string_equal(class_of(b[2]), "held");
	assert_string_equal(class_of(b[3]), "possible");
	assert_string_equal(class_of(b[4]), "lost");
	for (int i = 5; i < 9; i++)
		assert_string_equal(class_of(b[i]), "possible");
	for (int i = 9; i < 12; i++)
		assert_string_equal(class_of(b[i]), "lost");
	assert_int_equal(scan.nr_hidden, 7);
	end(&image);
}

static int note_block(void *context, uint64_t at, uint32_t block, enum hidden_kind kind)
{
	uint64_t *found = context;

	assert_int_equal(block, 0);
	found[kind] = found[kind] == UINT64_MAX ? at : UINT64_MAX - 1;
	return 0;
}

/* Where in @words a block at @address is found, by enum hidden_kind. */
static void find_hidden(uint64_t address, const uint64_t *words, size_t nr, uint64_t found[4])
{
	const struct hidden_place place = {
		.bytes = (const uint8_t *)words, .size_bytes = nr * 8, .end = nr * 8};
	static const uint8_t bytes[4096];
	uint64_t sizes[] = {24};
	struct heap heap = {.sizes = sizes};
	struct hidden_pointers hidden;

	assert_int_equal(
		heap_map_add_segment(&heap.map, &(struct heap_segment){.start = address - 16,
								       .end = address + 4080,
								       .bytes = bytes}),
		0);
	assert_int_equal(heap_map_allocate(&heap.map), 0);
	heap_map_set(&heap.map, 1);
	assert_int_equal(heap_map_number(&heap.map), 0);
	assert_int_equal(hidden_pointers_init(&hidden, &heap, 1), 0);
	hidden_pointers_add(&hidden, 0);
	memset(found, 0xff, 4 * sizeof(*found));
	assert_int_equal(hidden_pointers_find(&hidden, &place, note_block, found), 0);
	hidden_pointers_deinit(&hidden);
	heap_map_deinit(&heap.map);
}

/* Also those of AArch64, which have 48 bits or 52. */
static void hidden_addresses_may_have_any_size(void **state)
{
	static const struct {
		uint64_t address, tag;
	} cases[] = {
		{0x555500000010, 1ull << 47},  {0x7fff00000010, 1ull << 63},
		{0xaaaa00000010, 1ull << 48},  {0xffff00000010, 1ull << 56},
		{0xfaaaa00000010, 1ull << 52}, {0x10000010, 0x1fff9ull << 47},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t address = cases[i].address, found[4];
		const uint64_t words[] = {1,
					  address,
					  2,
					  address + 24,
					  3,
					  address | cases[i].tag,
					  address << 24,
					  address >> 40,
					  4};

		find_hidden(address, words, sizeof(words) / 8, found);
		assert_int_equal(found[HIDDEN_OUTSIDE], 24);
		assert_int_equal(found[HIDDEN_TAGGED], 40);
		assert_int_equal(found[HIDDEN_UNALIGNED], 51);
	}
}

/* The end of a container is not the start of the block behind it. */
static void the_end_of_a_container_holds_nothing(void **state)
{
	struct heap_image image;
	uint64_t b[2];

	add_blocks(&image, b, 2);
	heap_image_set(&image, HEAP_IMAGE_DATA + 8, b[0]);
	heap_image_set(&image, HEAP_IMAGE_DATA + 16, b[0] + 56);
	heap_image_set(&image, HEAP_IMAGE_DATA + 24, b[0] + 56);
	analyse(&image);
	assert_string_equal(class_of(b[0]), "held");
	assert_string_equal(class_of(b[1]), "lost");
	end(&image);
}

/* Chunks that a thread has in hand: in a consolidation, at its end, while merging. */
static void expect_in_flight(int64_t syscall, const char *expected)
{
	struct heap_image image;
	struct thread_registers *registers;
	uint64_t b[3], cache, cached[2], behind, before;

	add_blocks(&image, b, 3);
	registers = &image.snapshot.threads[0].registers;
	registers->syscall = syscall;
	cache = heap_image_add(&image, CACHE_BLOCK);
	for (int i = 0; i < 2; i++)
		cached[i] = heap_image_add(&image, 24);
	/* A chunk's address is also one in the block before. */
	heap_image_add(&image, 24);
	before = heap_image_add_free(&image, 56);
	behind = heap_image_add(&image, 24);
	heap_image_set(&image, b[0], heap_image_link(b[0], b[2], 16));
	heap_image_set(&image, b[2], heap_image_link(b[2], b[1], 16));
	heap_image_set(&image, b[1], heap_image_link(b[1], 0, 16));
	heap_image_set(&image, cache + 128, cached[0]);
	heap_image_set(&image, cached[0], heap_image_link(cached[0], cached[1], 0));
	registers->general[0].value = b[0] - 16;
	registers->general[1].value = before - 16;
	heap_image_set(&image, HEAP_IMAGE_SP + 64, cache);
	analyse(&image);
	assert_string_equal(class_of(cache), "held");
	assert_string_equal(class_of(cached[0]), "held");
	assert_string_equal(class_of(b[0]), expected);
	assert_string_equal(class_of(b[1]), expected);
	assert_string_equal(class_of(b[2]), expected);
	assert_string_equal(class_of(cached[1]), expected);
	assert_string_equal(class_of(behind), expected);
	end(&image);
}

static void chunks_in_flight_are_held(void **state)
{
	expect_in_flight(-1, "held");
}

static void a_thread_elsewhere_has_none_in_flight(void **state)
{
	/* read() */
	expect_in_flight(0, "lost");
}

/* A ring of links ends. */
static void a_ring_of_links_ends(void **state)
{
	struct heap_image image;
	uint64_t b[2];

	add_blocks(&image, b, 2);
	heap_image_set(&image, b[0], heap_image_link(b[0], b[1], 16));
	heap_image_set(&image, b[1], heap_image_link(b[1], b[0], 16));
	image.snapshot.threads[0].registers.general[0].value = b[0] - 16;
	analyse(&image);
	assert_string_equal(class_of(b[1]), "held");
	end(&image);
}

static void one_snapshot_does_not_say_lost(void **state)
{
	struct lost_list before = {0};
	struct heap_image image;
	uint64_t b[2];

	add_blocks(&image, b, 2);
	heap_image_set(&image, b[0], b[1]);
	heap_image_end(&image);
	assert_int_equal(scan_init(&scan, &image.snapshot, NULL, NULL), 0);
	assert_string_equal(class_of(b[0]), "unknown");
	scan_deinit(&scan);
	/* Then both had a holder, or were not there. */
	assert_int_equal(scan_init(&scan, &image.snapshot, NULL, &before), 0);
	assert_true(scan.may_say_lost);
	assert_string_equal(class_of(b[0]), "unknown");
	assert_string_equal(class_of(b[1]), "unknown");
	end(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roots_hold_what_they_lead_to),
		cmocka_unit_test(nothing_holds_lost_blocks),
		cmocka_unit_test(lost_blocks_of_any_shape_have_their_classes),
		cmocka_unit_test(hidden_addresses_hold_possibly),
		cmocka_unit_test(hidden_addresses_may_have_any_size),
		cmocka_unit_test(the_end_of_a_container_holds_nothing),
		cmocka_unit_test(chunks_in_flight_are_held),
		cmocka_unit_test(a_thread_elsewhere_has_none_in_flight),
		cmocka_unit_test(a_ring_of_links_ends),
		cmocka_unit_test(one_snapshot_does_not_say_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
