/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maps memory without an allocator, in every possible way, and leaves some of it mapped. What each
 * function leaves is known by construction, and printed at the end as "left FUNCTION REGIONS
 * BYTES", one line for each function. The mappings of the allocator and of the C library come
 * between: large blocks, more of the heap, a thread's stack.
 *
 * With --jump, a signal's handler jumps out of an allocator's function first.
 * With --wait it prints "ready PID" and reads a line from stdin before it begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	   ((size_t)4096)
#define MAX_PLACES 32
#define LARGE	   ((size_t)3 << 20) /* above glibc's threshold for mmap, so the block is mapped */

static struct {
	const char *function;
	long regions;
	size_t bytes;
} places[MAX_PLACES];

static void left(const char *function, long regions, size_t bytes)
{
	int i = 0;

	while (places[i].function && strcmp(places[i].function, function) != 0)
		i++;
	places[i].function = function;
	places[i].regions += regions;
	places[i].bytes += bytes;
}

static void check(int ok, const char *what)
{
	if (ok)
		return;
	dprintf(STDERR_FILENO, "mappings: %s: %s\n", what, strerror(errno));
	_exit(1);
}

#define MAP(address, pages, more)                                                                  \
	({                                                                                         \
		char *mapped = mmap(address, (pages)*PAGE, PROT_READ | PROT_WRITE,                 \
				    MAP_PRIVATE | MAP_ANONYMOUS | (more), -1, 0);                  \
		check(mapped != MAP_FAILED, "mmap");                                               \
		mapped;                                                                            \
	})

/* Reserves address space to work in. It is released again. */
static char *reserve(size_t pages)
{
	char *area = MAP(NULL, pages, 0);

	check(munmap(area, pages * PAGE) == 0, "munmap");
	return area;
}

static void keep_plain(void)
{
	for (int i = 1; i <= 5; i++)
		MAP(NULL, i, 0);
	/* The size is not a multiple of a page, but whole pages are mapped. */
	check(mmap(NULL, 100, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED, "mmap");
	left(__func__, 6, 16 * PAGE);
}

static void drop_all(void)
{
	for (int i = 1; i <= 100; i++)
		check(munmap(MAP(NULL, i, 0), i * PAGE) == 0, "munmap");
}

/* Maps ten pages, of which 0-1, 4-6 and 9 stay. */
static void keep_parts(void)
{
	char *area = MAP(NULL, 10, 0);

	check(munmap(area + 2 * PAGE, 2 * PAGE) == 0, "munmap");
	check(munmap(area + 7 * PAGE, 2 * PAGE) == 0, "munmap");
	left(__func__, 3, 6 * PAGE);
}

/* Two mappings, neighbours or not. One munmap removes a part of both. */
static void keep_ends(void)
{
	char *area = reserve(20);

	MAP(area, 10, MAP_FIXED);
	MAP(area + 10 * PAGE, 10, MAP_FIXED);
	check(munmap(area + 5 * PAGE, 11 * PAGE) == 0, "munmap");
	left(__func__, 2, 9 * PAGE);
}

static char *made_to_be_covered(void)
{
	char *area = MAP(NULL, 8, 0);

	left(__func__, 2, 5 * PAGE);
	return area;
}

static void keep_over_another(void)
{
	char *area = made_to_be_covered();

	MAP(area + 2 * PAGE, 3, MAP_FIXED);
	left(__func__, 1, 3 * PAGE);
}

static char *made_to_grow(void)
{
	return MAP(NULL, 4, 0);
}

static void keep_grown(void)
{
	char *area = made_to_grow();

	area = mremap(area, 4 * PAGE, 400 * PAGE, MREMAP_MAYMOVE);
	check(area != MAP_FAILED, "mremap");
	left(__func__, 1, 400 * PAGE);
}

static void keep_grown_in_place(void)
{
	char *area = reserve(64);

	MAP(area, 8, MAP_FIXED);
	check(mremap(area, 8 * PAGE, 24 * PAGE, 0) == area, "mremap");
	left(__func__, 1, 24 * PAGE);
}

static void keep_shrunk(void)
{
	char *area = MAP(NULL, 50, 0);

	check(mremap(area, 50 * PAGE, 20 * PAGE, 0) == area, "mremap");
	left(__func__, 1, 20 * PAGE);
}

static char *made_to_move(void)
{
	char *area = MAP(NULL, 12, 0);

	left(__func__, 2, 8 * PAGE);
	return area;
}

/* Moves the middle of a mapping to where another one was. */
static void keep_moved(void)
{
	char *area = made_to_move(), *to = MAP(NULL, 4, 0);

	check(mremap(area + 4 * PAGE, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to,
	      "mremap");
	left(__func__, 1, 4 * PAGE);
}

static void fail(void)
{
	char *area = MAP(NULL, 4, 0), *next = area + 4 * PAGE, *wall;

	check(munmap(area + 1, PAGE) < 0 && munmap(area, 0) < 0, "munmap did not fail");
	check(mmap(area + 1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		      MAP_FAILED,
	      "mmap did not fail");
	/* There is no room to grow if another mapping follows. */
	wall = mmap(next, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		    0);
	check(mremap(area, 4 * PAGE, 9 * PAGE, 0) == MAP_FAILED, "mremap did not fail");
	check(mremap(area, 4 * PAGE, SIZE_MAX / 4 / PAGE * PAGE, MREMAP_MAYMOVE) == MAP_FAILED,
	      "mremap did not fail");
	if (wall != MAP_FAILED)
		munmap(wall, PAGE);
	left(__func__, 1, 4 * PAGE);
}

static void keep_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	check(fd >= 0, "open");
	check(mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED, "mmap");
	close(fd);
	left(__func__, 1, 2 * PAGE);
}

static void keep_by_syscall(void)
{
	check(syscall(SYS_mmap, NULL, 7 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) > 0,
	      "mmap");
	left(__func__, 1, 7 * PAGE);
}

#if defined(__x86_64__)
/*
 * A wrapper that holds the flags in the frame pointer, as glibc 2.41's does
 * (MMAP_PREPARE, sysdeps/unix/sysv/linux/x86_64/64/mmap_internal.h).
 */
char *saving_mmap(void *address, size_t len, int prot, int flags, int fd,
		  off_t offset) __asm__("__mmap");
__asm__(".text\n"
	".type __mmap, @function\n"
	"__mmap:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset rbp, 0\n"
	"mov %ecx, %ebp\n"
	"push %r12\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset r12, 0\n"
	"mov $9, %eax\n"
	"mov %ebp, %r10d\n"
	"syscall\n"
	"cmp $-4096, %rax\n"
	"ja 1f\n"
	"pop %r12\n"
	".cfi_adjust_cfa_offset -8\n"
	".cfi_restore r12\n"
	"pop %rbp\n"
	".cfi_adjust_cfa_offset -8\n"
	".cfi_restore rbp\n"
	"ret\n"
	"1: ud2\n"
	".cfi_endproc\n"
	".size __mmap, .-__mmap\n");
#else
#define saving_mmap mmap
#endif

static void keep_by_wrapper(void)
{
	check(saving_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED,
	      "mmap");
	left(__func__, 1, PAGE);
}

/* The allocator uses the break, too. It does not move it in between here. */
static void keep_break(void)
{
	check(sbrk(3 * PAGE) != (void *)-1 && sbrk(10 * PAGE) != (void *)-1, "sbrk");
	check(sbrk(-4 * (intptr_t)PAGE) != (void *)-1, "sbrk");
	left(__func__, 2, 9 * PAGE);
}

static void *keep_in_thread(void *argument)
{
	char **parts = argument;

	MAP(NULL, 3, 0);
	check(munmap(*parts, 6 * PAGE) == 0, "munmap");
	return NULL;
}

static char *made_for_a_thread(void)
{
	return MAP(NULL, 6, 0);
}

static void use_threads(void)
{
	pthread_t threads[4];
	char *parts[4];

	for (int i = 0; i < 4; i++) {
		parts[i] = made_for_a_thread();
		check(pthread_create(&threads[i], NULL, keep_in_thread, &parts[i]) == 0,
		      "pthread_create");
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	left("keep_in_thread", 4, 12 * PAGE);
}

/* What a child unmaps is still mapped in its parent. What a child maps is its own. */
static char *made_before_fork(void)
{
	left(__func__, 1, 11 * PAGE);
	return MAP(NULL, 11, 0);
}

static void keep_in_child(void)
{
	MAP(NULL, 13, 0);
}

static void use_children(void)
{
	char *area = made_before_fork();
	pid_t child = fork();

	if (child == 0) {
		munmap(area + PAGE, 3 * PAGE);
		keep_in_child();
		_exit(0);
	}
	check(child > 0 && waitpid(child, NULL, 0) == child, "fork");
	left("keep_in_child", 1, 13 * PAGE);
}

/* All of it is held or freed as blocks, and none as mappings. */
static void *volatile block;

static void use_allocator(void)
{
	block = malloc(LARGE);
	free(block);
	block = malloc(LARGE);
	block = realloc(block, 2 * LARGE);
	block = calloc(1, LARGE);
	block = aligned_alloc(1 << 16, LARGE);
	for (int i = 0; i < 1000; i++)
		block = malloc(1000);
}

static sigjmp_buf before_fault;

static void leave(int number)
{
	siglongjmp(before_fault, 1);
}

/* The allocator stores the block where nothing is mapped. */
static void jump_out(void)
{
	void **volatile nowhere = (void **)16;

	check(signal(SIGSEGV, leave) != SIG_ERR, "signal");
	if (sigsetjmp(before_fault, 1) == 0)
		check(posix_memalign(nowhere, 64, 1000) != 0, "posix_memalign");
}

int main(int argc, char **argv)
{
	char line[16];

	if (argc > 1 && strcmp(argv[1], "--wait") == 0) {
		/* glibc asks the kernel for the break only once. 2.36 does it in dprintf(). */
		check(sbrk(0) != (void *)-1, "sbrk");
		dprintf(STDOUT_FILENO, "ready %d\n", (int)getpid());
		check(read(STDIN_FILENO, line, sizeof(line)) >= 0, "read");
	}
	keep_break();
	use_allocator();
	if (strcmp(argv[argc - 1], "--jump") == 0)
		jump_out();
	keep_plain();
	drop_all();
	keep_parts();
	keep_ends();
	keep_over_another();
	keep_grown();
	keep_grown_in_place();
	keep_shrunk();
	keep_moved();
	fail();
	keep_file();
	keep_by_syscall();
	keep_by_wrapper();
	use_threads();
	use_children();
	use_allocator();
	for (int i = 0; places[i].function; i++)
		dprintf(STDOUT_FILENO, "left %s %ld %zu\n", places[i].function, places[i].regions,
			places[i].bytes);
	return 0;
}
