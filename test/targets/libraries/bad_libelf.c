/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded before libelf (LD_PRELOAD), it stands for a libelf with a bug that a hostile file uses: in
 * the process that reads the file with inode BAD_INODE, it does what BAD_DEED says. Files that
 * begin with $BAD_GAIN are what it could gain.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libelf.h>

static void gain(const char *what)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s.%s", getenv("BAD_GAIN"), what);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

static void attack(void)
{
	if (socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0)
		gain("connected");
	if (kill(getppid(), SIGKILL) == 0)
		gain("killed");
	if (fork() >= 0)
		gain("forked");
	if (setuid(0) == 0)
		gain("root");
}

/* Writes to all that is open. */
static void forge(void)
{
	char bytes[4096];

	memset(bytes, 1, sizeof(bytes));
	for (int fd = 0; fd < 1024; fd++)
		if (write(fd, bytes, sizeof(bytes)) < 0)
			continue;
	_exit(0);
}

static void misbehave(void)
{
	const char *deed = getenv("BAD_DEED");

	if (strcmp(deed, "attack") == 0)
		attack();
	else if (strcmp(deed, "forge") == 0)
		forge();
	else if (strcmp(deed, "crash") == 0)
		raise(SIGSEGV), abort();
	else
		for (;;)
			;
}

Elf *elf_begin(int fd, Elf_Cmd command, Elf *ref)
{
	Elf *(*real)(int, Elf_Cmd, Elf *) =
		(Elf * (*)(int, Elf_Cmd, Elf *)) dlsym(RTLD_NEXT, "elf_begin");
	const char *inode = getenv("BAD_INODE");
	struct stat stat;

	if (inode && fd >= 0 && fstat(fd, &stat) == 0 && stat.st_ino == strtoull(inode, NULL, 10)) {
		gain("opened");
		misbehave();
	}
	return real(fd, command, ref);
}
