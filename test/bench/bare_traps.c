// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The floor that test/bench/recorders compares leakrec with: traps alone. Links a BPF program that
 * does nothing to places in a file, as leakrec links its own:
 *
 *	bare_traps PID FILE OFFSET[:call]...
 *
 * OFFSET is in bytes of the file. With ":call", the returns of the function that begins there are
 * hit, too; on a kernel without sessions, by a link of their own. Prints "ready" and keeps the
 * links until its standard input ends.
 */
#include "recorder/programs/bpf_programs.h"
#include "recorder/programs/uprobe_link.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SITES 64

/* Where programs are linked in one way. */
struct sites {
	uint64_t offsets[MAX_SITES];
	uint32_t nr;
};

static int load_program(uint32_t attach_type)
{
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach_type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "bare", "GPL", nothing,
			     sizeof(nothing) / sizeof(nothing[0]), &options);
}

/* Links an empty program of @attach_type to @sites. Returns 0 or a negative errno. */
static int link_sites(struct uprobe_link link, const struct sites *sites)
{
	int fd;

	link.program_fd =
		load_program(link.is_session ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI);
	if (link.program_fd < 0)
		return link.program_fd;
	link.offsets = sites->offsets;
	link.nr = sites->nr;
	fd = sites->nr ? uprobe_link_create(&link) : 0;
	return fd < 0 ? fd : 0;
}

static int link_calls(struct uprobe_link link, const struct sites *calls)
{
	int err = link_sites(link, calls);

	if (!err)
		return 0;
	link.is_session = false;
	err = link_sites(link, calls);
	link.at_return = true;
	return err ? err : link_sites(link, calls);
}

static bool parse_site(const char *text, struct sites *points, struct sites *calls)
{
	char *end;
	uint64_t offset = strtoull(text, &end, 0);
	struct sites *sites = strcmp(end, ":call") == 0 ? calls : points;

	if (end == text || (*end && sites == points) || sites->nr == MAX_SITES)
		return false;
	sites->offsets[sites->nr++] = offset;
	return true;
}

int main(int argc, char **argv)
{
	struct uprobe_link at_points = {0}, at_calls = {.is_session = true};
	struct sites points = {0}, calls = {0};
	int err = 0;

	for (int i = 3; i < argc; i++)
		if (!parse_site(argv[i], &points, &calls))
			argc = 0;
	if (argc < 4) {
		fputs("usage: bare_traps PID FILE OFFSET[:call]...\n", stderr);
		return 2;
	}
	at_points.pid = at_calls.pid = atoi(argv[1]);
	at_points.file_fd = at_calls.file_fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (at_points.file_fd < 0)
		err = -errno;
	if (!err)
		err = link_sites(at_points, &points);
	if (!err && calls.nr)
		err = link_calls(at_calls, &calls);
	if (err) {
		fprintf(stderr, "bare_traps: cannot link: %s\n", strerror(-err));
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
