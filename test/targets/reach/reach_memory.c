/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks held by data, other blocks, mappings and the kernel; lost ones, cycles, interior pointers.
 */
#include "reach.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>

struct node {
	struct node *next, *other;
	char bytes[32];
};

void *in_data = (void *)1;
void *in_bss;
void *in_array[100];
struct {
	int number;
	void *pointer;
} in_struct;
static struct node *list, *tree, *table[64];
static char *volatile inside, *volatile behind, *volatile both[2];
static double *volatile from_one;
static int *volatile ints_from_one;
static struct {
	char *start, *end;
} volatile container;
static uintptr_t hidden;
static volatile uint64_t tagged[2];
char packed[24];
static uint32_t halves[4];
static void *kept[64];
static size_t nr_kept;

static REACH_CASE void keep(void *p)
{
	kept[nr_kept++] = p;
}

static REACH_CASE void *node(void *next)
{
	struct node *new = block_of(sizeof(*new));

	new->next = next;
	return new;
}

static REACH_CASE void data(void)
{
	static void *in_local;

	expect("data", "held", in_data = block_of(24));
	expect("bss", "held", in_bss = block_of(24));
	expect("static-local", "held", in_local = block_of(24));
	expect("array", "held", in_array[99] = block_of(24));
	expect("struct", "held", in_struct.pointer = block_of(24));
	expect("overwritten", "lost", in_array[0] = block_of(24));
	in_array[0] = NULL;
	(void)*(void *volatile *)&in_local;
}

static REACH_CASE void chains(void)
{
	struct node *last = node(NULL);

	expect("list-last", "held", last);
	list = last;
	for (int i = 0; i < 10000; i++)
		list = node(list);
	expect("list-first", "held", list);
	tree = node(node(NULL));
	tree->other = node(node(NULL));
	expect("tree-left", "held", tree->next->next = node(NULL));
	expect("tree-right", "held", tree->other->next);
	expect("table", "held", table[17] = node(NULL));
	expect("table-chain", "held", table[17]->next = node(NULL));
}

static REACH_CASE void lost(void)
{
	struct node *root = node(node(node(NULL))), *left, *right;

	expect("lost", "lost", root);
	expect("lost-child", "lost-through", root->next);
	expect("lost-grandchild", "lost-through", root->next->next);
	root = node(NULL);
	left = root->next = node(NULL);
	right = root->other = node(NULL);
	left->next = right->next = node(NULL);
	expect("diamond", "lost", root);
	expect("diamond-left", "lost-through", left);
	expect("diamond-right", "lost-through", right);
	expect("diamond-end", "lost-through", left->next);
	root = node(in_bss);
	expect("lost-points-to-held", "lost", root);
}

static REACH_CASE void cycles(void)
{
	struct node *a = node(NULL), *b = node(a), *c, *d, *e;

	a->next = b;
	expect("cycle-of-two", "cycle", a);
	expect("cycle-of-two-second", "cycle", b);
	a = node(NULL);
	a->next = a;
	expect("cycle-of-one", "lost", a);
	a = node(NULL);
	c = node(a);
	b = node(c);
	a->next = b;
	b->other = node(NULL);
	expect("cycle-of-three", "cycle", a);
	expect("cycle-of-three-third", "cycle", c);
	expect("cycle-child", "lost-through", b->other);
	a = node(NULL);
	b = node(a);
	a->next = b;
	c = node(a);
	expect("cycle-led-to", "lost-through", a);
	expect("cycle-led-to-second", "lost-through", b);
	expect("leads-to-cycle", "lost", c);
	a = node(NULL);
	b = node(a);
	a->next = b;
	d = node(NULL);
	e = node(d);
	d->next = e;
	b->other = d;
	expect("first-cycle", "cycle", a);
	expect("second-cycle", "lost-through", d);
	a = node(NULL);
	b = node(NULL);
	c = node(NULL);
	a->next = b, b->next = c;
	c->other = b, b->other = a;
	expect("doubly-linked", "cycle", a);
	expect("doubly-linked-last", "cycle", c);
	a = node(NULL);
	b = node(a);
	a->next = b;
	keep(a);
	expect("held-cycle", "held", b);
}

/* A block for @size bytes that has 16 more: malloc does not split off so little. */
static REACH_CASE void *unsplit(size_t size)
{
	void *larger = block_of(size + 16), *block;

	keep(block_of(24)); /* or it would become the top */
	free(larger);
	block = block_of(size);
	if (block != larger || malloc_usable_size(block) < size + 16)
		abort();
	return block;
}

static REACH_CASE char *aligned_in(char *block)
{
	return block + 64 - (uintptr_t)block % 32;
}

static REACH_CASE void interior(void)
{
	char *block = block_of(100);
	struct node *chain;

	memset(block, 'x', 100);
	inside = block + 20;
	expect("inside", "possible", block);
	block = block_of(24);
	behind = block + 24;
	expect("behind", "possible", block);
	keep(block_of(24)); /* what ends there is another block */
	expect("from-one", "possible", from_one = block_of(88));
	from_one--;
	keep(block_of(24));
	expect("ints-from-one", "possible", ints_from_one = block_of(88));
	ints_from_one--;
	container.start = block_of(72);
	container.end = container.start + 72;
	expect("behind-container", "lost", block_of(72));
	both[0] = block_of(100);
	both[1] = both[0] + 50;
	expect("start-and-inside", "held", both[0]);
	chain = node(node(NULL));
	memset(chain->bytes, 'x', sizeof(chain->bytes));
	keep(&chain->bytes[3]);
	expect("chain-inside", "possible", chain);
	expect("chain-through-inside", "possible", chain->next);
	block = block_of(100);
	memset(block, 'x', 100);
	*(void **)block = node(NULL);
	keep(block_of(48));
	((char **)kept[nr_kept - 1])[2] = block + 16;
	expect("block-inside", "possible", block);
	block = block_of(108);
	*(uint64_t *)block = 100;
	keep(block + 8);
	expect("length-in-front", "held", block);
	block = unsplit(1056);
	*(uint64_t *)(void *)block = 1048;
	keep(block + 8);
	expect("length-unsplit", "held", block);
	expect("aligned-by-hand", "held", block = block_of(200));
	keep(aligned_in(block));
	((char **)kept[nr_kept - 1])[-1] = block;
	expect("aligned-second-word", "held", block = block_of(200));
	keep(aligned_in(block));
	((char **)kept[nr_kept - 1])[1] = block;
	expect("aligned-unknown", "possible", block = block_of(200));
	keep(aligned_in(block));
}

static REACH_CASE void kinds(void)
{
	char *p;

	expect("malloc-0", "held", (keep(need(malloc(0))), kept[nr_kept - 1]));
	expect("malloc-0-lost", "lost", need(malloc(0)));
	keep(need(realloc(need(malloc(40)), 4000)));
	expect("realloc", "held", kept[nr_kept - 1]);
	keep(need(aligned_alloc(64, 128)));
	expect("aligned", "held", kept[nr_kept - 1]);
	expect("aligned-lost", "lost", need(aligned_alloc(256, 512)));
	keep(need(malloc(1 << 20)));
	expect("mapped", "held", kept[nr_kept - 1]);
	expect("mapped-lost", "lost", need(malloc(1 << 20)));
	expect("mapped-aligned-lost", "lost", need(aligned_alloc(4096, 1 << 20)));
	keep(need(aligned_alloc(2 << 20, 4 << 20)));
	expect("mapped-aligned-2m", "held", kept[nr_kept - 1]);
	keep(need(malloc(1 << 20)));
	((void **)kept[nr_kept - 1])[100000] = block_of(24);
	expect("in-mapped", "held", ((void **)kept[nr_kept - 1])[100000]);
	/* The last word of a block is the first of the next chunk's header. */
	p = block_of(24);
	keep(p);
	((void **)(void *)p)[2] = block_of(24);
	expect("last-word", "held", ((void **)(void *)p)[2]);
}

/* What a free block still has does not hold anything. */
static REACH_CASE void freed(void)
{
	void **small[12], **large = block_of(4000), *unaligned;

	for (int i = 0; i < 12; i++) {
		small[i] = block_of(80);
		small[i][5] = block_of(24);
	}
	large[100] = block_of(24);
	unaligned = block_of(24);
	memcpy((char *)large + 1001, &unaligned, sizeof(unaligned));
	expect("unaligned-in-bin", "lost", unaligned);
	keep(block_of(24)); /* or the large one would become the top */
	expect("in-cached", "lost", small[0][5]);
	expect("in-fastbin", "lost", small[11][5]);
	expect("in-bin", "lost", large[100]);
	for (int i = 0; i < 12; i++)
		free(small[i]);
	free(large);
}

/* Some forms are looked for; of others the block is called lost: docs/reachability.md names them.
 */
static REACH_CASE void hidden_pointers(void)
{
	char *p = block_of(24);
	struct node *chain;
	uint64_t number;

	hidden = (uintptr_t)p ^ 0x5555555555555555;
	expect("hidden-by-xor", "lost", p);
	p = block_of(24);
	memcpy(packed + 3, &p, sizeof(p));
	expect("hidden-unaligned", "possible", p);
	chain = node(node(NULL));
	expect("hidden-by-tag", "possible", chain);
	tagged[0] = (uintptr_t)chain | 7ull << 48;
	/* The next one is found when this one is. */
	expect("hidden-by-two-tags", "possible", chain->next->next = node(NULL));
	expect("hidden-through-tag", "possible", chain->next);
	chain->next->next = (struct node *)((uintptr_t)chain->next->next | 9ull << 48);
	expect("hidden-by-nan", "possible", p = block_of(24));
	tagged[1] = (uintptr_t)p | 0x1fff9ull << 47;
	p = block_of(24);
	number = (uintptr_t)p;
	halves[0] = (uint32_t)number;
	halves[2] = (uint32_t)(number >> 32);
	expect("hidden-in-halves", "lost", p);
}

static REACH_CASE void *map(int protection, int flags, int fd)
{
	void *p = mmap(NULL, 8192, protection, flags, fd, 0);

	return p == MAP_FAILED ? need(NULL) : p;
}

static REACH_CASE void mappings(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	int fd = memfd_create("reach", 0), file = open("/proc/self/exe", O_RDONLY);
	void **p = map(rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	expect("mapping", "held", p[700] = block_of(24));
	p = map(rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	expect("unmapped", "lost", p[700] = block_of(24));
	munmap(p, 8192);
	p = map(rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	expect("remapped", "held", p[700] = block_of(24));
	p = mremap(p, 8192, 1 << 20, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		abort();
	p = map(rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	expect("protected", "held", p[700] = block_of(24));
	mprotect(p, 8192, PROT_NONE);
	/* It begins like a chunk of malloc with a mapping of its own. */
	p = map(rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	((uint64_t *)p)[1] = 8192 | 2;
	expect("like-a-chunk", "held", p[700] = block_of(24));
	p = map(rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	expect("discarded", "lost", p[700] = block_of(24));
	madvise(p, 8192, MADV_DONTNEED);
	p = map(rw, MAP_SHARED | MAP_ANONYMOUS, -1);
	expect("shared", "held", p[700] = block_of(24));
	if (fd < 0 || file < 0 || ftruncate(fd, 8192))
		abort();
	p = map(rw, MAP_SHARED, fd);
	expect("memfd", "held", p[700] = block_of(24));
	p = map(rw, MAP_PRIVATE, file);
	expect("private-file", "held", p[700] = block_of(24));
	/* As a runtime that generates code has it: at any byte. */
	p = map(rw | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	{
		char *block = block_of(24);

		memcpy((char *)p + 1001, &block, sizeof(block));
		expect("generated-code", "held", block);
	}
}

static REACH_CASE void kernel(void)
{
	int epoll = epoll_create1(0), fds[2];
	struct epoll_event event = {.events = EPOLLIN};
	struct sigevent notify = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t timer;

	if (epoll < 0 || pipe(fds))
		abort();
	expect("epoll", "held", event.data.ptr = block_of(24));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event))
		abort();
	expect("epoll-removed", "lost", event.data.ptr = block_of(24));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[1], &event) ||
	    epoll_ctl(epoll, EPOLL_CTL_DEL, fds[1], NULL))
		abort();
	expect("timer", "held", notify.sigev_value.sival_ptr = block_of(24));
	if (timer_create(CLOCK_MONOTONIC, &notify, &timer))
		abort();
}

static REACH_CASE void libc_keeps(void)
{
	char *setting = block_of(32);

	strcpy(setting, "REACH_A=1");
	expect("putenv", "held", setting);
	putenv(setting);
	setenv("REACH_B", "2", 1);
	expect("on-exit", "held", setting = block_of(24));
	on_exit((void (*)(int, void *))clear_stack, setting);
}

/* Somebody else moves the program break: the arena has a gap. */
static REACH_CASE void foreign_break(void)
{
	void **foreign = sbrk(40960);

	keep(block_of(100));
	foreign[100] = block_of(24);
	expect("foreign-break", "held", foreign[100]);
	for (int i = 0; i < 3000; i++)
		free(need(malloc(100000)));
	for (int i = 0; i < 10; i++) {
		void *p = block_of(100000);

		if (i == 9)
			expect("behind-foreign-break", "lost", p);
		else
			list->other = node(list->other);
	}
}

int main(void)
{
	data();
	chains();
	lost();
	cycles();
	interior();
	kinds();
	hidden_pointers();
	mappings();
	kernel();
	libc_keeps();
	foreign_break();
	freed();
	wait_for_line();
	return 0;
}
