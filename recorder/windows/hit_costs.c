/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/windows/hit_costs.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/scope.h"
#include "recorder/processes/helper_name.h"
#include "recorder/programs/uprobe_link.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLAIN_CALLS   8192
#define STEPPED_CALLS 1024
#define REPEATS	      3 /* the fastest counts: others may have disturbed the rest */

/*
 * What a program that records adds to one that does not, from 150 to 450 (docs/benchmarks.md). It
 * is no part of what a trap costs, which differs from machine to machine by ten times.
 */
#define RECORDED_NS 250

/* 6.18 on x86-64, in a virtual machine, and some more. */
static const struct hit_costs usual = {1000, 20000};

/* On each architecture, the kernel emulates the nop; on x86-64 it steps the ret. */
void leak_calibrate_nop(void);
extern const char leak_calibrate_ret[];
__asm__(".pushsection .text\n"
	".globl leak_calibrate_nop, leak_calibrate_ret\n"
	".type leak_calibrate_nop, %function\n"
	"leak_calibrate_nop:\n"
	"	nop\n"
	"leak_calibrate_ret:\n"
	"	ret\n"
	".size leak_calibrate_nop, . - leak_calibrate_nop\n"
	".popsection");

struct place {
	uintptr_t address;
	uint64_t offset; /* in this program's file */
};

static int find_offset(struct dl_phdr_info *info, size_t size, void *context)
{
	struct place *place = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && place->address >= begin &&
		    place->address - begin < segment->p_filesz)
			place->offset = place->address - begin + segment->p_offset;
	}
	/* The first one is this program. */
	return 1;
}

/* The CPU time of a call with a probe at @address. Returns 0, or a negative errno. */
static int measure(int program_fd, int exe_fd, uintptr_t address, unsigned int nr, double *ret_ns)
{
	struct place place = {.address = address};
	const uint64_t cookie = 0;
	const struct uprobe_link link = {
		.program_fd = program_fd,
		.file_fd = exe_fd,
		.pid = getpid(),
		.offsets = &place.offset,
		.cookies = &cookie,
		.nr = 1,
	};
	_cleanup_close_ int fd = -1;

	dl_iterate_phdr(find_offset, &place);
	fd = place.offset ? uprobe_link_create(&link) : -ENOENT;
	if (fd < 0)
		return fd;
	*ret_ns = 0;
	for (int i = 0; i < REPEATS; i++) {
		uint64_t start_ns = clock_thread_ns();
		double ns;

		for (unsigned int j = 0; j < nr; j++)
			leak_calibrate_nop();
		ns = (double)(clock_thread_ns() - start_ns) / nr;
		if (i == 0 || ns < *ret_ns)
			*ret_ns = ns;
	}
	return 0;
}

static void __attribute__((noreturn)) run_child(int program_fd, int to_fd)
{
	struct hit_costs costs;
	int exe_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	helper_rename("leak-calibrate");
	if (exe_fd < 0 ||
	    measure(program_fd, exe_fd, (uintptr_t)leak_calibrate_nop, PLAIN_CALLS,
		    &costs.plain_ns) ||
	    measure(program_fd, exe_fd, (uintptr_t)leak_calibrate_ret, STEPPED_CALLS,
		    &costs.stepped_ns) ||
	    write(to_fd, &costs, sizeof(costs)) != sizeof(costs))
		_exit(1);
	_exit(0);
}

struct hit_costs hit_costs_measure(const struct bpf_recorder *recorder)
{
	struct hit_costs costs = {0};
	ssize_t len = -1;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) == 0) {
		pid = fork();
		if (pid == 0)
			run_child(bpf_window_program_fd(recorder), fds[1]);
		close(fds[1]);
		if (pid > 0) {
			len = read(fds[0], &costs, sizeof(costs));
			waitpid(pid, NULL, 0);
		}
		close(fds[0]);
	}
	if (len != sizeof(costs) || !(costs.plain_ns > 0) || !(costs.stepped_ns > 0)) {
		diag_warn("cannot measure what a probe costs here: counting %.1f us for each hit",
			  usual.plain_ns / 1000);
		return usual;
	}
	costs.plain_ns += RECORDED_NS;
	costs.stepped_ns += RECORDED_NS;
	return costs;
}
