// SPDX-License-Identifier: GPL-2.0-or-later
// The blocks of valgrind's tests memcheck/tests/leak-* and similar ones, in a program of its own.
// "case TEST/BLOCK VERDICT 0xADDRESS" has memcheck's verdict in leakscan's words. A cycle is one
// definitely lost block and others indirectly lost to memcheck. reach_memcheck LIBRARY; a line on
// stdin changes a pointer, and a second one again.
#define _GLIBCXX_USE_CXX11_ABI 0 // strings that point into their blocks
#include "reach.h"
#include "threads.h"

#include <dlfcn.h>
#include <string>
#include <sys/mman.h>

struct node {
	node *next, *other;
};

static REACH_CASE node *node_of(node *next, node *other = nullptr)
{
	node *created = (node *)block_of(sizeof(node));

	created->next = next;
	created->other = other;
	return created;
}

// A pointer into the node.
static REACH_CASE node *into(node *p)
{
	return (node *)&p->other;
}

// Not static: then the compiler would leave out what nothing reads.
node *p1, *p2, *p5, *p6, *p7, *p8, *root;
char *b10, *b21, *b32_33[2], *b42_43[2];

static REACH_CASE void leak_cases()
{
	expect("leak-cases/1", "held", p1 = node_of(nullptr));
	p2 = node_of(node_of(nullptr));
	expect("leak-cases/2", "held", p2);
	expect("leak-cases/2-second", "held", p2->next);
	expect("leak-cases/3", "lost", node_of(nullptr));
	node *p = node_of(node_of(nullptr));
	expect("leak-cases/4", "lost", p);
	expect("leak-cases/4-second", "lost-through", p->next);
	expect("leak-cases/5", "possible", p = node_of(nullptr));
	p5 = into(p);
	p6 = node_of(p = node_of(nullptr));
	p6->next = into(p);
	expect("leak-cases/6", "held", p6);
	expect("leak-cases/6-second", "possible", p);
	p = node_of(node_of(nullptr));
	expect("leak-cases/7", "possible", p);
	expect("leak-cases/7-second", "possible", p->next);
	p7 = into(p);
	p = node_of(node_of(nullptr));
	expect("leak-cases/8", "possible", p);
	expect("leak-cases/8-second", "possible", p->next);
	p->next = into(p->next);
	p8 = into(p);
	p = node_of(node_of(nullptr));
	expect("leak-cases/9", "lost", p);
	expect("leak-cases/9-second", "lost-through", p->next);
	p->next = into(p->next);
}

static REACH_CASE node *cycle(const char *verdict)
{
	node *a = node_of(nullptr), *b = node_of(a), *c = node_of(b);

	a->next = c;
	expect("leak-cycle/block", verdict, a);
	expect("leak-cycle/block", verdict, b);
	expect("leak-cycle/block", verdict, c);
	return a;
}

static REACH_CASE void leak_cycle()
{
	cycle("cycle");
	cycle("cycle");
	node *first = cycle("lost-through"), *second = cycle("cycle");
	second->other = first;
	first = cycle("cycle");
	second = cycle("cycle");
	first->other = second;
	second->other = first;
}

static REACH_CASE void leak_tree()
{
	node *b = node_of(node_of(nullptr), node_of(nullptr)),
	     *c = node_of(node_of(nullptr), node_of(nullptr));

	root = node_of(b, c);
	expect("leak-tree/A", "held", root);
	expect("leak-tree/B", "held", b);
	expect("leak-tree/C", "lost", c);
	expect("leak-tree/D", "lost", b->next);
	expect("leak-tree/E", "held", b->other);
	expect("leak-tree/F", "lost-through", c->next);
	expect("leak-tree/G", "lost-through", c->other);
	b->next = nullptr;
	root->other = nullptr;
}

// The pointers to what is lost are one byte less than the address.
static REACH_CASE void leak_delta()
{
	expect("leak-delta/10", "held", b10 = (char *)block_of(10));
	expect("leak-delta/21", "held", b21 = (char *)block_of(21));
	expect("leak-delta/32", "lost", b32_33[0] = (char *)block_of(32));
	expect("leak-delta/33", "held", b32_33[1] = (char *)block_of(33));
	expect("leak-delta/42", "lost", b42_43[0] = (char *)block_of(42));
	expect("leak-delta/43", "lost", b42_43[1] = (char *)block_of(43));
	b32_33[0]--;
	b42_43[0]--;
	b42_43[1]--;
}

struct pool {
	char *buffer;
};
struct pool *pool;
char *pool_cells[100], *pool_byte;

// Of blocks that a program cuts out of its own, only valgrind's client requests tell.
static REACH_CASE void leak_pool()
{
	pool = (struct pool *)block_of(24);
	pool->buffer = (char *)block_of(4096);
	for (int i = 0; i < 100; i++)
		pool_cells[i] = pool->buffer + 16 * i;
	expect("leak-pool/pool", "held", pool);
	expect("leak-pool/buffer", "held", pool->buffer);
	char *buffer = (char *)block_of(4096);
	expect("leak-autofreepool/buffer", "possible", buffer);
	pool_byte = buffer + 1;
}

static void forbid(void *p, size_t bytes)
{
	uintptr_t page = (uintptr_t)p & ~(uintptr_t)4095;

	if (mprotect((void *)page, bytes & ~(size_t)4095, PROT_NONE))
		abort();
}

char **pointers, *interior_pointers[3];

// memcheck does not read pages that the program may not read.
static REACH_CASE void leak_segv_jmp()
{
	const size_t nr = 25000, bytes = nr * sizeof(char *);

	pointers = (char **)block_of(bytes);
	for (size_t i = 0; i < nr; i++)
		pointers[i] = (char *)pointers;
	expect("leak-segv-jmp/pointers", "held", pointers);
	expect("leak-segv-jmp/1000", "lost", pointers[4000] = (char *)block_of(1000));
	forbid(&pointers[4000], 8192);
	forbid(pointers, bytes);
	char *p = (char *)block_of(bytes);
	expect("leak-segv-jmp/heuristics", "possible", p);
	interior_pointers[0] = p + sizeof(size_t);
	interior_pointers[1] = p + sizeof(uint64_t);
	interior_pointers[2] = p + 3 * sizeof(size_t);
	forbid(p, bytes);
}

struct with_destructor {
	~with_destructor()
	{
		m1 = 0;
	}
	char m1 = 0;
	int m2 = 0;
};
template <char tag> struct empty_base {
	virtual ~empty_base() = default;
};
template <char tag> struct full_base {
	virtual ~full_base() = default;
	char member = tag;
};
struct empty_object : empty_base<'a'>, empty_base<'b'> {
};
struct full_object : full_base<'a'>, full_base<'b'> {
	char last = 'c';
};

std::string text, more_text;
with_destructor *array, *empty_array;
empty_base<'a'> *empty_first;
empty_base<'b'> *empty_second;
full_base<'a'> *full_first;
full_base<'b'> *full_second;
uint64_t *with_length;

static REACH_CASE void leak_cpp_interior(size_t none)
{
	const size_t string_bytes = 24;

	text = "leakscan";
	more_text = text;
	more_text += " finds this one, too";
	expect("leak_cpp_interior/string", "held", text.data() - string_bytes);
	expect("leak_cpp_interior/second-string", "held", more_text.data() - string_bytes);
	array = new with_destructor[3];
	expect("leak_cpp_interior/array", "held", (char *)array - 8);
	empty_array = new with_destructor[none];
	expect("leak_cpp_interior/empty-array", "lost", (char *)empty_array - 8);
	with_length = (uint64_t *)block_of(31);
	*with_length++ = 23;
	expect("leak_cpp_interior/length", "held", with_length - 1);
	empty_object *object = new empty_object;
	expect("leak_cpp_interior/empty-second-base", "held", object);
	empty_second = object;
	expect("leak_cpp_interior/empty-first-base", "held", object = new empty_object);
	empty_first = object;
	full_object *full = new full_object;
	expect("leak_cpp_interior/second-base", "held", full);
	full_second = full;
	expect("leak_cpp_interior/first-base", "held", full = new full_object);
	full_first = full;
}

void *simple, *nano;

static REACH_CASE void small_tests(const char *path)
{
	for (int i = 0; i < 1000; i++)
		expect("trivialleak/block", "lost", block_of(1));
	expect("simple_leak/block", "lost", block_of(1024));
	expect("simple_reachable/block", "held", simple = block_of(1024));
	expect("nanoleak2/block", "held", nano = block_of(1000));
	expect("nanoleak_supp/block", "suppressed", block_of(1000));
	for (int i = 0; i < 2; i++) {
		void *library = need(dlopen(path, RTLD_NOW)), *block = block_of(1);
		void (*set)(int, void *) = (void (*)(int, void *))need(dlsym(library, "reach_set"));

		set(0, block);
		expect("dlclose_leak/block", "lost", block);
		dlclose(library);
	}
}

static REACH_CASE void *reach_thread_register(void *unused)
{
	void *block = block_of(4);

	expect("reach_thread_register/block", "held", block);
	clear_stack();
	sem_post(&ready);
	HOLD_IN("mov %%rax, %%r12\n", block);
	return unused;
}

int main(int argc, char **argv)
{
	char *in_register = (char *)need(malloc(0));

	sem_init(&ready, 0, 0);
	expect("leak-0/block", "held", in_register);
	leak_cases();
	leak_cycle();
	leak_tree();
	leak_delta();
	leak_pool();
	leak_segv_jmp();
	leak_cpp_interior(argc - 2);
	small_tests(argv[1]);
	start_and_wait(reach_thread_register);
	wait_for_line();
	b10--;
	wait_for_line();
	b10++;
	wait_for_line();
	free(in_register);
	return 0;
}
