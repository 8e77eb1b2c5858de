/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A first input of fuzz_elf: a malloc with a fast path, in a file that looks like glibc, and
 * operators with a jump table, landing pads and calls that do not return.
 */
const char *gnu_get_libc_version(void);
void *malloc(unsigned long bytes);
void free(void *block);
void *_Znwm(unsigned long bytes);
void *_ZnwmSt11align_val_t(unsigned long bytes, unsigned long alignment);
void *_Znam(unsigned long bytes);
void _ZdlPv(void *block);

/* Of another file. */
void abort(void) __attribute__((noreturn));
void _ZSt17__throw_bad_allocv(void) __attribute__((noreturn));
void call_handler(void);

static void *bins[64];
static char heap[65536];
static unsigned long used, nr_called;

const char *gnu_get_libc_version(void)
{
	return "2.36";
}

__attribute__((noinline)) static void *malloc_slowly(unsigned long bytes)
{
	if (bytes > sizeof(heap) - used)
		return 0;
	used += bytes;
	return heap + used - bytes;
}

/* The size stays in a register, and a jump sees the block. */
#define KEEP(bytes) __asm__ volatile("" ::"r"(bytes))

void *malloc(unsigned long bytes)
{
	unsigned long bin = (bytes + 15) / 16;
	void *block;

	if (bin < 64 && bins[bin]) {
		block = bins[bin];
		if (*(void **)block == bins)
			nr_called = 1;
		bins[bin] = *(void **)block;
		KEEP(bytes);
		return block;
	}
	block = malloc_slowly(bytes);
	if (!block)
		nr_called = 12;
	KEEP(bytes);
	return block;
}

void free(void *block)
{
	*(void **)block = bins[1];
	bins[1] = block;
}

void *_Znwm(unsigned long bytes)
{
	void *block;

	while (!(block = malloc(bytes)))
		call_handler();
	return block;
}

/* It jumps there, through a slot that the loader fills. */
void *_Znam(unsigned long bytes)
{
	return _Znwm(bytes);
}

static void count(const int *called)
{
	nr_called += (unsigned long)*called;
}

void *_ZnwmSt11align_val_t(unsigned long bytes, unsigned long alignment)
{
	/* Its cleanup is a landing pad. */
	int called __attribute__((cleanup(count), unused)) = 1;

	switch (alignment) {
	case 1:
		call_handler();
		return malloc(bytes);
	case 2:
		return malloc(bytes + 2);
	case 3:
		call_handler();
		return heap;
	case 4:
		return malloc(bytes * 4);
	case 5:
		_ZSt17__throw_bad_allocv();
	case 6:
		call_handler();
		call_handler();
		return 0;
	case 7:
		abort();
	default:
		return malloc(bytes + alignment);
	}
}

void _ZdlPv(void *block)
{
	free(block);
}
