/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which files may be passed to libraries that decompress sections. */
#include "common/elf/elf_file.h"
#include "common/elf/elf_section.h"
#include "common/elf/own_mounts.h"
#include "common/scope.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <lzma.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <libelf.h>

#define GIB (1ULL << 30)

static const char names[] = "\0.shstrtab\0.debug_info\0.gnu_debugdata";
enum { NAMES_AT = 1, DEBUG_INFO_AT = 11, MINI_AT = 23 };

/* An ELF file of two sections, its names and another. */
struct file {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char names[64];
	uint8_t content[4096];
};

static const Elf64_Chdr bomb = {
	.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 20 * GIB, .ch_addralign = 1};

static struct file make_file(uint32_t name, const void *content, size_t size)
{
	struct file file = {
		.header =
			{
				.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
										      : ELFDATA2MSB,
					    EV_CURRENT},
				.e_type = ET_DYN,
				.e_machine = EM_X86_64,
				.e_version = EV_CURRENT,
				.e_shoff = offsetof(struct file, sections),
				.e_ehsize = sizeof(Elf64_Ehdr),
				.e_shentsize = sizeof(Elf64_Shdr),
				.e_shnum = 3,
				.e_shstrndx = 1,
			},
		.sections = {[1] = {.sh_name = NAMES_AT,
				    .sh_type = SHT_STRTAB,
				    .sh_offset = offsetof(struct file, names),
				    .sh_size = sizeof(names)},
			     [2] = {.sh_name = name,
				    .sh_type = SHT_PROGBITS,
				    .sh_offset = offsetof(struct file, content),
				    .sh_size = size}},
	};

	assert_true(size <= sizeof(file.content));
	memcpy(file.names, names, sizeof(names));
	memcpy(file.content, content, size);
	return file;
}

static bool expands_well(const void *bytes, size_t size)
{
	_cleanup_close_ int fd = memfd_create("file", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, size), size);
	return elf_file_expands_well(fd, NULL);
}

static void plain_files_do(void **state)
{
	const struct file file = make_file(DEBUG_INFO_AT, "x", 1);

	assert_true(expands_well(&file, sizeof(file)));
}

static void what_is_no_elf_file_does_not(void **state)
{
	assert_false(expands_well("", 0));
	assert_false(expands_well("\x1f\x8b\x08 gzip's, or another's", 20));
}

static void sections_that_say_they_are_large_do_not(void **state)
{
	struct file file = make_file(DEBUG_INFO_AT, &bomb, sizeof(bomb));

	file.sections[2].sh_flags = SHF_COMPRESSED;
	assert_false(expands_well(&file, sizeof(file)));
}

/* A request for a section's name would have decompressed them. */
static void compressed_names_do_not(void **state)
{
	struct file file = make_file(DEBUG_INFO_AT, "x", 1);

	memcpy(file.names, &bomb, sizeof(bomb));
	file.sections[1].sh_flags = SHF_COMPRESSED;
	assert_false(expands_well(&file, sizeof(file)));
}

/* A file with @mini, compressed, as its MiniDebugInfo. */
static struct file with_mini(const struct file *mini)
{
	uint8_t packed[4096];
	size_t size = 0;

	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, (const uint8_t *)mini,
						 sizeof(*mini), packed, &size, sizeof(packed)),
			 LZMA_OK);
	return make_file(MINI_AT, packed, size);
}

static void compressed_sections_in_a_mini_debug_info_do_not(void **state)
{
	struct file mini = make_file(DEBUG_INFO_AT, &bomb, sizeof(bomb));
	struct file file = with_mini(&mini);

	assert_true(expands_well(&file, sizeof(file)));
	mini.sections[2].sh_flags = SHF_COMPRESSED;
	file = with_mini(&mini);
	assert_false(expands_well(&file, sizeof(file)));
}

static void only_regular_files_are_opened(void **state)
{
	char dir[] = "/tmp/test_elf_file.XXXXXX", fifo[64], link[64], event[4096];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct stat st;

	assert_non_null(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(symlink(fifo, link), 0);
	assert_true(inotify_add_watch(watch, fifo, IN_OPEN) >= 0);

	assert_true(elf_file_open(fifo, &st) < 0);
	assert_true(elf_file_open(link, &st) < 0);
	assert_true(elf_file_open(dir, &st) < 0);
	assert_true(elf_file_open("/dev/null", &st) < 0);
	/* Even a short open() is not permitted. */
	assert_int_equal(read(watch, event, sizeof(event)), -1);

	unlink(link);
	unlink(fifo);
	rmdir(dir);
	close(watch);
}

/* A table may say that its entries are smaller. */
static void symbols_are_counted_by_their_true_size(void **state)
{
	static const Elf64_Sym symbols[8];
	struct file file = make_file(DEBUG_INFO_AT, symbols, sizeof(symbols));
	Elf *elf = elf_memory((char *)&file, sizeof(file));
	struct elf_symbol_table table;

	file.sections[2].sh_type = SHT_SYMTAB;
	file.sections[2].sh_link = 1;
	file.sections[2].sh_entsize = 1;
	assert_true(elf_symbol_table_find(elf, SHT_SYMTAB, &table));
	assert_int_equal(table.nr, ARRAY_SIZE(symbols));
	elf_end(elf);
}

#define SPARSE_BYTES (64u << 20)

/* Of the file that is changed while it is read */
static int changed_fd = -1;
static ino_t changed_inode;

/* The owner changes the header after it was read: the first section says how many there are. */
static void change_header(void)
{
	const uint16_t none = 0;

	assert_int_equal(pwrite(changed_fd, &none, sizeof(none), offsetof(Elf64_Ehdr, e_shnum)),
			 sizeof(none));
}

/* libelf's and ours */
ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
	ssize_t result = syscall(SYS_pread64, fd, bytes, size, offset);
	struct stat st;

	if (changed_fd >= 0 && offset == 0 && fstat(fd, &st) == 0 && st.st_ino == changed_inode)
		change_header();
	return result;
}

static long own_kib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/* libelf takes memory for each section, three times as much as a file without a byte may claim. */
static void changed_headers_take_no_memory(void **state)
{
	struct file file = make_file(DEBUG_INFO_AT, "", 0);
	char path[] = "/tmp/test_elf_file.XXXXXX";
	_cleanup_close_ int fd = mkostemp(path, O_CLOEXEC);
	long kib = own_kib();
	struct stat st;

	assert_true(fd >= 0);
	unlink(path);
	file.sections[0].sh_size = (SPARSE_BYTES - sizeof(file)) / sizeof(Elf64_Shdr);
	assert_int_equal(write(fd, &file, sizeof(file)), sizeof(file));
	assert_int_equal(ftruncate(fd, SPARSE_BYTES), 0);
	assert_int_equal(fchmod(fd, 0666), 0); /* not only root can change it */
	assert_int_equal(fstat(fd, &st), 0);
	changed_inode = st.st_ino;
	changed_fd = fd;
	assert_true(elf_file_is_sane(fd));
	assert_false(elf_file_is_sane(fd));
	changed_fd = -1;
	assert_in_range(own_kib(), 1, kib + (SPARSE_BYTES >> 10));
}

/* A header is read through a copy in memory, which has the size of the file. */
static void limits_on_files_end_nobody(void **state)
{
	const struct file file = make_file(DEBUG_INFO_AT, "", 0);
	_cleanup_close_ int fd = memfd_create("file", MFD_CLOEXEC);
	pid_t child;
	int status;

	assert_int_equal(write(fd, &file, sizeof(file)), sizeof(file));
	assert_int_equal(ftruncate(fd, 2 << 20), 0);
	assert_int_equal(fchmod(fd, 0666), 0);
	assert_true(elf_file_is_sane(fd));
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGXFSZ, SIG_IGN); /* as all tools */
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, 1 << 20});
		_exit(elf_file_is_sane(fd));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static char mountinfo[] = "26 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
			  "41 26 0:41 / /home/a\\040-\\040overlay\\040b rw - fuse a rw\n"
			  "43 26 0:43 / /var/lib/x rw shared:7 - overlay overlay rw,lowerdir=/a\n"
			  "44 26 8:300 / /var/lib/y rw - overlay overlay rw,lowerdir=/b\n"
			  "45 - overlay \n"
			  "46 26 0:46 / /tmp rw - overlayed none rw\n";

/* The overlays of others do not say whose their files are. */
static void own_overlays_are_known(void **state)
{
	_cleanup_fclose_ FILE *file = fmemopen(mountinfo, sizeof(mountinfo) - 1, "r");
	struct own_mount mounts[4];

	assert_non_null(file);
	assert_int_equal(own_mounts_read(file, mounts, ARRAY_SIZE(mounts)), 2);
	assert_int_equal(mounts[0].id, 43);
	assert_int_equal(mounts[0].device, makedev(0, 43));
	assert_int_equal(mounts[1].id, 44);
	assert_int_equal(mounts[1].device, makedev(8, 300));
	rewind(file);
	assert_int_equal(own_mounts_read(file, mounts, 1), 1);
	assert_false(own_mounts_have(-1, makedev(0, 0)));
}

/* Our own files may change, as root's: nobody is protected from himself. Not if others write them.
 */
static void own_files_are_stable(void **state)
{
	_cleanup_close_ int fd = memfd_create("file", MFD_CLOEXEC);
	struct stat st;

	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(elf_file_is_stable(fd, &st));
	st.st_mode = 0620;
	assert_false(elf_file_is_stable(fd, &st));
	st.st_mode = 0600;
	st.st_uid = geteuid() + 1;
	assert_false(elf_file_is_stable(fd, &st));
	st.st_uid = 0;
	assert_true(elf_file_is_stable(fd, &st));
}

/* First with all capabilities, then with one, as by systemd's AmbientCapabilities=, then without */
static int use_capabilities(int fd)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	const struct stat st = {.st_mode = S_IFREG | 0600, .st_uid = 65534};

	if (prctl(PR_SET_KEEPCAPS, 1) || setresuid(65534, 65534, 65534) ||
	    elf_file_is_stable(fd, &st))
		return 1;
	data[0].permitted = data[0].inheritable = CAP_TO_MASK(CAP_SETUID);
	if (syscall(SYS_capset, &header, data) ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SETUID, 0, 0) ||
	    elf_file_is_stable(fd, &st))
		return 2;
	memset(data, 0, sizeof(data));
	return syscall(SYS_capset, &header, data) || !elf_file_is_stable(fd, &st) ? 3 : 0;
}

/* Whoever has capabilities is protected from his user. */
static void own_files_are_not_stable_with_capabilities(void **state)
{
	_cleanup_close_ int fd = memfd_create("file", MFD_CLOEXEC);
	int status;
	pid_t child;

	if (geteuid() != 0)
		skip();
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(use_capabilities(fd));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_regular_files_are_opened),
		cmocka_unit_test(plain_files_do),
		cmocka_unit_test(what_is_no_elf_file_does_not),
		cmocka_unit_test(sections_that_say_they_are_large_do_not),
		cmocka_unit_test(compressed_names_do_not),
		cmocka_unit_test(compressed_sections_in_a_mini_debug_info_do_not),
		cmocka_unit_test(symbols_are_counted_by_their_true_size),
		cmocka_unit_test(changed_headers_take_no_memory),
		cmocka_unit_test(limits_on_files_end_nobody),
		cmocka_unit_test(own_overlays_are_known),
		cmocka_unit_test(own_files_are_stable),
		cmocka_unit_test(own_files_are_not_stable_with_capabilities),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
