// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Resources other than memory, each kind with a known number that is never given back: FILEs; slots
 * of a pool, through a pointer, by functions that may fail; objects with reference counts; and
 * nested calls, the outer one passing on what the inner one gives or takes.
 *
 * Prints: KIND_given, KIND_taken, KIND_held of file, slot, widget and nested.
 */
#include "truth.h"

#define NR_SLOTS 256

struct slot {
	size_t size_bytes;
};

struct widget {
	int refs;
};

static struct slot slots[NR_SLOTS];
static size_t nr_slots;

/* --- FILEs --- */

static FILE *open_log(void)
{
	return fopen("/dev/null", "w");
}

static void use_files(void)
{
	for (int i = 0; i < 50; i++) {
		FILE *f = open_log();

		if (i % 10 != 3)
			fclose(f);
		if (fopen("/nonexistent/file", "r"))
			truth_die("resources: a file that should not exist\n");
	}
	truth_tell("file_given", 50);
	truth_tell("file_taken", 45);
	truth_tell("file_held", 5);
}

/* --- A pool. Functions return 0 or a negative error, and the slot through @ret --- */

static __attribute__((noinline)) int slot_get(size_t size_bytes, struct slot **ret)
{
	if (size_bytes > 1000)
		return -12;
	*ret = &slots[nr_slots++];
	(*ret)->size_bytes = size_bytes;
	return 0;
}

static __attribute__((noinline)) void slot_put(struct slot **slot)
{
	(*slot)->size_bytes = 0;
	*slot = NULL;
}

static void use_slots(void)
{
	struct slot *slot;

	for (int i = 0; i < 40; i++) {
		slot_get(100, &slot);
		if (i % 4 != 0)
			slot_put(&slot);
		slot_get(2000, &slot);
	}
	truth_tell("slot_given", 40);
	truth_tell("slot_taken", 30);
	truth_tell("slot_held", 10);
}

/* --- Objects with reference counts --- */

static __attribute__((noinline)) struct widget *widget_new(void)
{
	static struct widget widgets[NR_SLOTS];
	static size_t nr;

	widgets[nr].refs = 1;
	return &widgets[nr++];
}

static __attribute__((noinline)) void widget_ref(struct widget *widget)
{
	widget->refs++;
}

static __attribute__((noinline)) void widget_unref(struct widget *widget)
{
	widget->refs--;
}

static void forget_a_reference(struct widget *widget)
{
	widget_ref(widget);
}

static void use_widgets(void)
{
	for (int i = 0; i < 30; i++) {
		struct widget *widget = widget_new();

		widget_ref(widget);
		if (i % 10 == 0)
			forget_a_reference(widget);
		widget_unref(widget);
		widget_unref(widget);
	}
	truth_tell("widget_given", 30);
	truth_tell("widget_taken", 27);
	truth_tell("widget_held", 3);
}

/* --- Calls within calls --- */

static __attribute__((noinline)) void *inner_make(void)
{
	return &slots[nr_slots++];
}

static __attribute__((noinline)) void *outer_make(void)
{
	return inner_make();
}

static __attribute__((noinline)) void inner_drop(void *slot)
{
	((struct slot *)slot)->size_bytes = 0;
}

static __attribute__((noinline)) void outer_drop(void *slot)
{
	inner_drop(slot);
}

static void use_nested(void)
{
	for (int i = 0; i < 20; i++) {
		void *slot = i % 2 ? outer_make() : inner_make();

		if (i < 12)
			outer_drop(slot);
		else if (i < 16)
			inner_drop(slot);
	}
	truth_tell("nested_given", 20);
	truth_tell("nested_taken", 16);
	truth_tell("nested_held", 4);
}

int main(int argc, char **argv)
{
	truth_init(argc, argv);
	truth_begin();
	use_files();
	use_slots();
	use_widgets();
	use_nested();
	truth_print();
	return 0;
}
