/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/module.h"

#include "common/diag.h"
#include "common/scope.h"
#include "common/elf/elf_file.h"
#include "common/elf/root_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>

#define DELETED_SUFFIX " (deleted)"
#define SMALL_PAGE     4096u
#define LARGE_PAGE     65536u
#define MAX_SEGMENTS   256
#define MAX_SEGMENT    (1ull << 46) /* bytes */

struct known_build_id {
	char *path;
	uint8_t build_id[BUILD_ID_MAX];
	uint8_t size;
	UT_hash_handle hh;
};

void module_table_init(struct module_table *table, const char *symfs)
{
	struct stat st;

	elf_version(EV_CURRENT); /* libelf needs it before it opens anything */
	*table = (struct module_table){.symfs = symfs};
	/* "/" is not a regular file, so this can only tell whether openat2(2) exists. */
	if (symfs && root_file_open(symfs, "/", &st) == -ENOSYS)
		diag_warn("cannot use %s: this system lacks openat2(2), which confines paths; "
			  "use Linux 5.6 or later",
			  symfs);
}

static void module_destroy(struct module *module)
{
	if (!module)
		return;
	free(module->file_path);
	free(module->segments);
	free(module->key);
	free(module);
}

void module_table_deinit(struct module_table *table)
{
	struct known_build_id *known, *next;

	HASH_CLEAR(hh, table->by_key);
	for (size_t i = 0; i < table->nr; i++)
		module_destroy(table->by_id[i]);
	free(table->by_id);

	HASH_ITER (hh, table->known_build_ids, known, next) {
		HASH_DELETE(hh, table->known_build_ids, known);
		free(known->path);
		free(known);
	}
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/*
 * The kernel's names for mappings without a file (fs/proc/task_mmu.c, show_map_vma();
 * kernel/events/core.c, perf_event_mmap_event(); mm/shmem.c; ipc/shm.c).
 */
static bool is_anonymous(const char *path)
{
	static const char *const prefixes[] = {
		"//",	       "/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage",
		"anon_inode:", "[heap",	  "[stack",    "[anon",
	};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (starts_with(path, prefixes[i]))
			return true;
	return path[0] != '/' && path[0] != '[';
}

/* Makes the key of a module of @path and build-id. NULL: out of memory. */
static char *make_key(const char *path, const uint8_t *build_id, size_t size, size_t *ret_len)
{
	size_t path_len = strlen(path);
	char *key = malloc(path_len + 1 + BUILD_ID_MAX);

	if (!key)
		return NULL;
	memcpy(key, path, path_len + 1);
	if (size)
		memcpy(key + path_len + 1, build_id, size);
	*ret_len = path_len + 1 + size;
	return key;
}

/* Remembers the mapping of code with the lowest offset. */
static void remember_code(struct module *module, const struct stack_mapping *mapping)
{
	if (module->code_len && module->code_offset <= mapping->file_offset)
		return;
	module->code_offset = mapping->file_offset;
	module->code_len = mapping->len;
}

static void remember_user(struct module *module, const struct stack_mapping *mapping)
{
	struct module_user *user = NULL;

	for (size_t i = 0; i < MODULE_MAX_PIDS; i++)
		if (module->users[i].pid == mapping->pid)
			user = &module->users[i];
	if (!user)
		user = &module->users[module->next_user++ % MODULE_MAX_PIDS];
	*user = (struct module_user){
		.pid = mapping->pid,
		.start = mapping->start,
		.end = mapping->start + mapping->len,
	};
}

/* Takes over @key. */
static int add_module(struct module_table *table, char *key, size_t key_len, struct module **ret)
{
	struct module *module = calloc(1, sizeof(*module));

	if (!module) {
		free(key);
		return -ENOMEM;
	}
	module->key = key;
	module->path = key;
	module->has_file = key[0] == '/';
	module->build_id_size = (uint8_t)(key_len - strlen(key) - 1);
	memcpy(module->build_id, key + strlen(key) + 1, module->build_id_size);

	if (table->nr == table->capacity) {
		size_t capacity = table->capacity ? 2 * table->capacity : 64;
		struct module **by_id =
			reallocarray(table->by_id, capacity, sizeof(struct module *));

		if (!by_id)
			goto out_of_memory;
		table->by_id = by_id;
		table->capacity = capacity;
	}
	HASH_ADD_KEYPTR(hh, table->by_key, module->key, key_len, module);
	if (!hash_added(module))
		goto out_of_memory;
	table->by_id[table->nr++] = module;
	module->id = (uint32_t)table->nr;
	*ret = module;
	return 0;

out_of_memory:
	module_destroy(module);
	return -ENOMEM;
}

/* Gets the module of a process's generated code. No mapped file's path begins so. */
static int get_jit_module(struct module_table *table, pid_t pid, struct module **ret)
{
	char path[32];
	size_t key_len;
	int err;

	if (pid <= 0)
		return 0;
	snprintf(path, sizeof(path), "//jit/%d", (int)pid);
	_cleanup_free_ char *key = make_key(path, NULL, 0, &key_len);
	if (!key)
		return -ENOMEM;
	HASH_FIND(hh, table->by_key, key, key_len, *ret);
	if (*ret)
		return 0;
	err = add_module(table, steal_ptr(key), key_len, ret);
	if (err)
		return err;
	(*ret)->has_file = false;
	(*ret)->jit_pid = pid;
	return 0;
}

int module_table_get(struct module_table *table, const struct stack_mapping *mapping,
		     struct module **ret)
{
	const uint8_t *build_id = mapping->build_id;
	size_t size = mapping->build_id_size;
	struct known_build_id *known;
	size_t key_len;

	*ret = NULL;
	if (!mapping->path)
		return 0;
	if (is_anonymous(mapping->path))
		return get_jit_module(table, mapping->pid, ret);
	if (size > BUILD_ID_MAX)
		size = 0;
	if (!size) {
		HASH_FIND_STR(table->known_build_ids, mapping->path, known);
		if (known) {
			build_id = known->build_id;
			size = known->size;
		}
	}

	_cleanup_free_ char *key = make_key(mapping->path, build_id, size, &key_len);
	if (!key)
		return -ENOMEM;
	HASH_FIND(hh, table->by_key, key, key_len, *ret);
	if (!*ret) {
		int err = add_module(table, steal_ptr(key), key_len, ret);

		if (err)
			return err;
	}
	remember_user(*ret, mapping);
	remember_code(*ret, mapping);
	return 0;
}

struct module *module_table_by_id(const struct module_table *table, uint32_t id)
{
	return id != MODULE_NONE && id <= table->nr ? table->by_id[id - 1] : NULL;
}

/* Gives a build-id to a module that was mapped before the build-id was known. */
static int rekey_module(struct module_table *table, const struct known_build_id *known)
{
	struct module *module, *existing;
	size_t old_len = strlen(known->path) + 1, key_len;

	HASH_FIND(hh, table->by_key, known->path, old_len, module);
	if (!module || module->state != MODULE_UNTRIED)
		return 0;

	_cleanup_free_ char *key = make_key(known->path, known->build_id, known->size, &key_len);
	if (!key)
		return -ENOMEM;
	memcpy(module->build_id, known->build_id, known->size);
	module->build_id_size = known->size;

	HASH_DELETE(hh, table->by_key, module);
	HASH_FIND(hh, table->by_key, key, key_len, existing);
	if (existing)
		return 0; /* it stays reachable by its id */
	free(module->key);
	module->key = steal_ptr(key);
	module->path = module->key;
	HASH_ADD_KEYPTR(hh, table->by_key, module->key, key_len, module);
	return hash_added(module) ? 0 : -ENOMEM;
}

int module_table_set_build_id(struct module_table *table, const char *path, const uint8_t *build_id,
			      uint8_t size)
{
	struct known_build_id *known;

	if (!size || size > BUILD_ID_MAX)
		return 0;
	HASH_FIND_STR(table->known_build_ids, path, known);
	if (!known) {
		known = calloc(1, sizeof(*known));
		if (!known)
			return -ENOMEM;
		known->path = strdup(path);
		if (known->path)
			HASH_ADD_STR(table->known_build_ids, path, known);
		if (!known->path || !hash_added(known)) {
			free(known->path);
			free(known);
			return -ENOMEM;
		}
	}
	memcpy(known->build_id, build_id, size);
	known->size = size;
	return rekey_module(table, known);
}

/*
 * perf before 5.11 pads build-ids to 20 bytes with zeros and stores no size. Longer ones (sha256)
 * it cuts (tools/perf/util/build-id.c).
 */
static bool build_id_matches(const struct module *module, const uint8_t *build_id, size_t size)
{
	size_t common = size < module->build_id_size ? size : module->build_id_size;

	if (!common || memcmp(module->build_id, build_id, common) != 0)
		return false;
	for (size_t i = common; i < module->build_id_size; i++)
		if (module->build_id[i])
			return false;
	return size <= module->build_id_size || module->build_id_size == BUILD_ID_MAX;
}

static int read_segments(struct module *module, Elf *elf)
{
	size_t nr_headers;
	GElf_Ehdr ehdr;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr) ||
	    (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN) || elf_getphdrnum(elf, &nr_headers))
		return -ENOEXEC;
	if (nr_headers > MAX_SEGMENTS)
		nr_headers = MAX_SEGMENTS;

	struct module_segment *segments = calloc(nr_headers + 1, sizeof(*segments));
	if (!segments)
		return -ENOMEM;

	size_t nr = 0;
	for (size_t i = 0; i < nr_headers; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD)
			continue;
		segments[nr++] = (struct module_segment){
			.file_offset = phdr.p_offset,
			.file_size = phdr.p_filesz,
			.vaddr = phdr.p_vaddr,
			.memory_size = phdr.p_memsz,
			.flags = phdr.p_flags,
		};
	}
	free(module->segments);
	module->segments = segments;
	module->nr_segments = nr;
	module->machine = ehdr.e_machine;
	module->elf_class = ehdr.e_ident[EI_CLASS];
	return 0;
}

/* @root confines @path; NULL: "/". Returns a descriptor or a negative number. */
static int open_below(const char *root, const char *path, struct stat *ret_stat)
{
	return root ? root_file_open(root, path, ret_stat) : elf_file_open(path, ret_stat);
}

/*
 * Uses @path below @root as the module's file if it is the recorded one. Returns 0, -ENOENT, or
 * -ESTALE if it is another file.
 */
static int try_file(struct module *module, const char *root, const char *path)
{
	struct stat st;
	const void *build_id;

	_cleanup_close_ int fd = open_below(root, path, &st);
	if (fd < 0)
		return -ENOENT;

	Elf *elf = elf_file_is_sane(fd) ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	if (!elf)
		return -ENOENT;

	int err = read_segments(module, elf);
	if (!err && module->build_id_size) {
		ssize_t size = dwelf_elf_gnu_build_id(elf, &build_id);

		if (size <= 0 || !build_id_matches(module, build_id, (size_t)size))
			err = -ESTALE;
	}
	elf_end(elf);
	if (err)
		return err == -ESTALE ? err : -ENOENT;

	if (asprintf(&module->file_path, "%s%s", root ? root : "", path) < 0)
		module->file_path = NULL;
	module->file_root = root;
	module->file_stat = st;
	return module->file_path ? 0 : -ENOENT;
}

/* Tries the file that @format makes of pid, range and path, for each of the module's users. */
static int try_users(struct module *module, const char *path,
		     int (*format)(char **ret, const struct module_user *user, const char *path))
{
	int result = -ENOENT;

	if (!module->build_id_size)
		return result; /* the pid may belong to another process by now */
	for (size_t i = 0; i < MODULE_MAX_PIDS; i++) {
		_cleanup_free_ char *found = NULL;

		if (module->users[i].pid <= 0)
			continue;
		if (format(&found, &module->users[i], path) < 0) {
			found = NULL;
			break;
		}
		int err = try_file(module, NULL, found);
		if (!err)
			return 0;
		if (err == -ESTALE)
			result = err;
	}
	return result;
}

/* The file as the process sees it; its root may be a container's. */
static int format_in_root(char **ret, const struct module_user *user, const char *path)
{
	return asprintf(ret, "/proc/%d/root%s", (int)user->pid, path);
}

/* The mapped file, even if it was replaced or deleted since. */
static int format_mapped(char **ret, const struct module_user *user, const char *path)
{
	return asprintf(ret, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)user->pid, user->start,
			user->end);
}

static int try_places(const struct module_table *table, struct module *module)
{
	size_t len = strlen(module->path), suffix_len = strlen(DELETED_SUFFIX);
	_cleanup_free_ char *path = strdup(module->path);
	int result = -ENOENT, err;

	if (!path)
		return -ENOENT;
	/*
	 * The kernel marks the path of a file that was unlinked or replaced. A file of that path
	 * needs a matching build-id.
	 */
	if (len > suffix_len && strcmp(path + len - suffix_len, DELETED_SUFFIX) == 0) {
		if (!module->build_id_size)
			return -ENOENT;
		path[len - suffix_len] = '\0';
	}

	if (table->symfs) {
		err = try_file(module, table->symfs, path);
		if (!err)
			return 0;
		result = err;
	}
	err = try_file(module, NULL, path);
	if (!err)
		return 0;
	if (err == -ESTALE)
		result = err;
	err = try_users(module, path, format_in_root);
	if (!err)
		return 0;
	if (err == -ESTALE)
		result = err;
	err = try_users(module, path, format_mapped);
	return err == -ENOENT ? result : err;
}

int module_find_file(const struct module_table *table, struct module *module)
{
	if (module->state == MODULE_UNTRIED) {
		int err = module->has_file ? try_places(table, module) : -ENOENT;

		module->state = err ? MODULE_MISSING : MODULE_FOUND;
		if (err == -ESTALE)
			diag_warn(
				"%s: not the recorded file: its build-id differs; give --symfs DIR with the recorded file at DIR%s",
				module->path, module->path);
	}
	return module->state == MODULE_FOUND ? 0 : -ENOENT;
}

bool module_is_at_its_path(const struct module_table *table, struct module *module)
{
	if (module->state == MODULE_UNTRIED && module->has_file && module->build_id_size &&
	    !table->symfs && try_file(module, NULL, module->path) == 0)
		module->state = MODULE_FOUND;
	return module->state == MODULE_FOUND;
}

int module_open_file(const struct module_table *table, struct module *module)
{
	const struct stat *found = &module->file_stat;
	struct stat st;

	if (module_find_file(table, module))
		return -ENOENT;

	_cleanup_close_ int fd = open_below(
		module->file_root,
		module->file_path + (module->file_root ? strlen(module->file_root) : 0), &st);
	if (fd < 0)
		return -ENOENT;
	if (st.st_dev != found->st_dev || st.st_ino != found->st_ino ||
	    st.st_size != found->st_size || st.st_mtim.tv_sec != found->st_mtim.tv_sec ||
	    st.st_mtim.tv_nsec != found->st_mtim.tv_nsec)
		return -ESTALE;
	return steal_fd(fd);
}

static bool is_whole(const struct module *module, const struct module_segment *segment)
{
	for (uint64_t page = SMALL_PAGE; page <= LARGE_PAGE; page *= 4) {
		uint64_t end = segment->vaddr % page + segment->memory_size;

		if (module->code_len == (end + page - 1) / page * page)
			return true;
	}
	return false;
}

int module_use_debug_file(struct module *module, int fd)
{
	struct module_segment *code = NULL;
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	int err = elf ? read_segments(module, elf) : -ENOENT;

	elf_end(elf);
	for (size_t i = 0; !err && i < module->nr_segments; i++) {
		struct module_segment *segment = &module->segments[i];

		if (!(segment->flags & PF_X))
			continue;
		if (code || segment->memory_size > MAX_SEGMENT || !is_whole(module, segment))
			err = -ENOENT;
		code = segment;
	}
	if (err || !code) {
		module->nr_segments = 0;
		return -ENOENT;
	}
	/* An offset and its address are congruent modulo the page size. */
	code->file_offset = module->code_offset + code->vaddr % SMALL_PAGE;
	code->file_size = code->memory_size;
	module->segments[0] = *code;
	module->nr_segments = 1;
	return 0;
}

/*
 * Rates how well a segment fits a byte of the file, as several may share its page; 0: not at all.
 */
static int rate_segment(const struct module_segment *segment, uint64_t file_offset)
{
	/* A segment is mapped from the start of its first page. */
	uint64_t start = segment->file_offset & ~(uint64_t)(SMALL_PAGE - 1);

	if (file_offset < start ||
	    file_offset - start >= segment->file_size + (segment->file_offset - start))
		return 0;
	return 1 + 2 * (file_offset >= segment->file_offset) + !!(segment->flags & PF_X);
}

bool module_vaddr(const struct module *module, uint64_t file_offset, uint64_t *ret)
{
	const struct module_segment *best = NULL;
	int best_rating = 0;

	for (size_t i = 0; i < module->nr_segments; i++) {
		int rating = rate_segment(&module->segments[i], file_offset);

		if (rating > best_rating) {
			best = &module->segments[i];
			best_rating = rating;
		}
	}
	if (!best)
		return false;
	*ret = file_offset - best->file_offset + best->vaddr;
	return true;
}

bool module_code_bias(const struct module *module, uint64_t start, uint64_t file_offset,
		      uint64_t *ret)
{
	for (size_t i = 0; i < module->nr_segments; i++) {
		const struct module_segment *segment = &module->segments[i];

		if (!(segment->flags & PF_X))
			continue;
		/* A mapping begins with a page, of the recording machine's size. */
		for (uint64_t page = SMALL_PAGE; page <= LARGE_PAGE; page *= 4)
			if (file_offset == (segment->file_offset & ~(page - 1))) {
				*ret = start - file_offset + segment->file_offset - segment->vaddr;
				return true;
			}
	}
	return false;
}

uint64_t module_span(const struct module *module)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < module->nr_segments; i++) {
		const struct module_segment *segment = &module->segments[i];

		if (segment->vaddr < low)
			low = segment->vaddr;
		if (segment->vaddr + segment->memory_size > high)
			high = segment->vaddr + segment->memory_size;
	}
	return high > low ? high - low : 0;
}
