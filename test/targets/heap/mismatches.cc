// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every wrong pair of an allocation and a release, each once, from functions named after them; with
 * --clean only correct pairs, in all forms of the operators.
 *
 * Prints what it did: "truth mismatch N", "truth allocations N", "truth frees N" and "truth
 * held_blocks N". The C++ standard leaves wrong pairs undefined, but glibc's operators end in
 * malloc and free.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unistd.h>

struct alignas(256) wide {
	char bytes[512];
};

static long nr_allocations, nr_frees;

/* Hides blocks from the compiler. */
static void *volatile passed;

static void *pass(void *block)
{
	passed = block;
	return passed;
}

#define MADE(block)    (nr_allocations++, pass(block))
#define TAKEN(release) (nr_frees++, (release))

extern "C" {

void *make_malloc()
{
	return MADE(std::malloc(100));
}

void *make_new()
{
	return MADE(::operator new(200));
}

void *make_new_array()
{
	return MADE(::operator new[](300));
}

void take_free(void *block)
{
	TAKEN(std::free(block));
}

void take_realloc(void *block)
{
	nr_allocations++;
	nr_frees += 2;
	std::free(pass(std::realloc(block, 5000)));
}

void take_delete(void *block)
{
	TAKEN(::operator delete(block));
}

void take_delete_sized(void *block)
{
	TAKEN(::operator delete(block, std::size_t{300}));
}

void take_delete_array(void *block)
{
	TAKEN(::operator delete[](block));
}
}

/* All wrong pairs. Returns how many. */
static int mismatches()
{
	take_delete(make_malloc());
	take_delete_array(make_malloc());
	take_free(make_new());
	take_delete_array(make_new());
	take_realloc(make_new());
	take_free(make_new_array());
	take_delete(make_new_array());
	take_delete_sized(make_new_array());
	return 8;
}

/* Each form of the operators, with the right counterpart. */
static void matches()
{
	const auto alignment = std::align_val_t{128};

	take_free(make_malloc());
	take_realloc(make_malloc());
	take_delete(make_new());
	take_delete_array(make_new_array());
	TAKEN(::operator delete(MADE(::operator new(10)), std::size_t{10}));
	TAKEN(::operator delete[](MADE(::operator new[](10)), std::size_t{10}));
	TAKEN(::operator delete(MADE(::operator new(10, std::nothrow)), std::nothrow));
	TAKEN(::operator delete[](MADE(::operator new[](10, std::nothrow)), std::nothrow));
	TAKEN(::operator delete(MADE(::operator new(10, alignment)), alignment));
	TAKEN(::operator delete[](MADE(::operator new[](10, alignment)), alignment));
	TAKEN(::operator delete(MADE(::operator new(10, alignment)), std::size_t{10}, alignment));
	TAKEN(::operator delete[](MADE(::operator new[](10, alignment)), std::size_t{10},
				  alignment));
	TAKEN(::operator delete(MADE(::operator new(10, alignment, std::nothrow)), alignment,
				std::nothrow));
	TAKEN(::operator delete[](MADE(::operator new[](10, alignment, std::nothrow)), alignment,
				  std::nothrow));
	TAKEN(delete static_cast<wide *>(MADE(new wide)));
	TAKEN(delete[] static_cast<wide *>(MADE(new wide[3])));
	TAKEN(delete[] static_cast<int *>(MADE(new int[30])));
	::operator delete(nullptr);
	::operator delete[](nullptr);
	/* This is held at the end. */
	make_new();
	make_new_array();
	MADE(new wide);
}

static void tell(const char *name, long value)
{
	char line[80];
	int len = std::snprintf(line, sizeof(line), "truth %s %ld\n", name, value);

	if (write(STDOUT_FILENO, line, static_cast<size_t>(len)) != len)
		_exit(99);
}

int main(int argc, char **argv)
{
	bool clean = false, wait = false;
	int nr_mismatches = 0;
	char byte, line[80];

	for (int i = 1; i < argc; i++) {
		clean |= std::strcmp(argv[i], "--clean") == 0;
		wait |= std::strcmp(argv[i], "--wait") == 0;
	}
	if (wait) {
		int len = std::snprintf(line, sizeof(line), "ready %d\n", getpid());

		if (write(STDOUT_FILENO, line, static_cast<size_t>(len)) != len ||
		    read(STDIN_FILENO, &byte, 1) != 1)
			_exit(99);
	}
	matches();
	if (!clean)
		nr_mismatches = mismatches();
	tell("mismatch", nr_mismatches);
	tell("allocations", nr_allocations);
	tell("frees", nr_frees);
	tell("held_blocks", nr_allocations - nr_frees);
	_exit(0);
}
