/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/module.h"

#include "common/diag.h"
#include "common/scope.h"
#include "common/elf/elf_file.h"
#include "common/elf/root_file.h"

#include <assert.h>
#include <errno.h>
#include <libelf.h>

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

/* The last part of a key if it is no build-id; longer than that. */
struct inode_key {
	uint64_t inode, padding[2];
};

#define KEY_PART_MAX sizeof(struct inode_key)
static_assert(KEY_PART_MAX > BUILD_ID_MAX, "an inode is no build-id");

/* Makes the key of a module of @path and build-id. NULL: out of memory. */
static char *make_key(const char *path, const void *build_id, size_t size, size_t *ret_len)
{
	size_t path_len = strlen(path);
	char *key = malloc(path_len + 1 + KEY_PART_MAX);

	if (!key)
		return NULL;
	memcpy(key, path, path_len + 1);
	if (size)
		memcpy(key + path_len + 1, build_id, size);
	*ret_len = path_len + 1 + size;
	return key;
}

static unsigned int hash_of(const char *path, const uint8_t *build_id, size_t size)
{
	uint64_t words[KEY_PART_MAX / sizeof(uint64_t)] = {0};

	if (size)
		memcpy(words, build_id, size);
	return (unsigned int)hash_words(words, ARRAY_SIZE(words), hash_text(path, hash_seed()));
}

static struct module *find_module(const struct module_table *table, const char *key, size_t key_len)
{
	size_t id_at = strlen(key) + 1;
	unsigned int hash = hash_of(key, (const uint8_t *)key + id_at, key_len - id_at);
	struct module *module;

	HASH_FIND_BYHASHVALUE(hh, table->by_key, key, key_len, hash, module);
	return module;
}

/* Its build-id, with its size, is the one of its key. */
static bool enter_module(struct module_table *table, struct module *module)
{
	size_t key_len = strlen(module->key) + 1 + module->build_id_size;

	HASH_ADD_KEYPTR_BYHASHVALUE(hh, table->by_key, module->key, key_len,
				    hash_of(module->key, module->build_id, module->build_id_size),
				    module);
	return hash_added(module);
}

static struct known_build_id *find_known(const struct module_table *table, const char *path)
{
	struct known_build_id *known;

	HASH_FIND_BYHASHVALUE(hh, table->known_build_ids, path, strlen(path),
			      hash_of(path, NULL, 0), known);
	return known;
}

/* Remembers the mapping of code with the lowest offset. */
static void remember_code(struct module *module, const struct stack_mapping *mapping)
{
	if (module->code_len && module->code_offset <= mapping->file_offset)
		return;
	module->code_offset = mapping->file_offset;
	module->code_len = mapping->len;
}

/*
 * On overlayfs, the kernel's records may name another device than /proc/PID/maps does, and stat(2)
 * that (before "perf/core: Fix MMAP2 event device with backing files", October 2025).
 */
static void remember_inode(struct module *module, const struct stack_mapping *mapping)
{
	if (!mapping->inode)
		return;
	if (!module->inode)
		module->device = mapping->device;
	else if (mapping->device != module->device)
		module->other_device = mapping->device;
	module->inode = mapping->inode;
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
	if (key_len - strlen(key) - 1 <= BUILD_ID_MAX) {
		module->build_id_size = (uint8_t)(key_len - strlen(key) - 1);
		memcpy(module->build_id, key + strlen(key) + 1, module->build_id_size);
	}

	if (table->nr == table->capacity) {
		size_t capacity = table->capacity ? 2 * table->capacity : 64;
		struct module **by_id =
			reallocarray(table->by_id, capacity, sizeof(struct module *));

		if (!by_id)
			goto out_of_memory;
		table->by_id = by_id;
		table->capacity = capacity;
	}
	if (!enter_module(table, module))
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
	*ret = find_module(table, key, key_len);
	if (*ret)
		return 0;
	err = add_module(table, steal_ptr(key), key_len, ret);
	if (err)
		return err;
	(*ret)->has_file = false;
	(*ret)->jit_pid = pid;
	return 0;
}

static int get_by_key(struct module_table *table, const char *path, const void *part, size_t size,
		      struct module **ret)
{
	size_t key_len;
	_cleanup_free_ char *key = make_key(path, part, size, &key_len);

	if (!key)
		return -ENOMEM;
	*ret = find_module(table, key, key_len);
	return *ret ? 0 : add_module(table, steal_ptr(key), key_len, ret);
}

int module_table_get(struct module_table *table, const struct stack_mapping *mapping,
		     struct module **ret)
{
	const uint8_t *build_id = mapping->build_id;
	size_t size = mapping->build_id_size;
	const struct inode_key inode = {.inode = mapping->inode};
	struct known_build_id *known;
	int err;

	*ret = NULL;
	if (!mapping->path)
		return 0;
	if (is_anonymous(mapping->path))
		return get_jit_module(table, mapping->pid, ret);
	if (size > BUILD_ID_MAX)
		size = 0;
	if (!size) {
		known = find_known(table, mapping->path);
		if (known) {
			build_id = known->build_id;
			size = known->size;
		}
	}

	err = get_by_key(table, mapping->path, build_id, size, ret);
	/* Another file has that path in another container, or had it before. */
	if (!err && !size && (*ret)->inode && inode.inode && inode.inode != (*ret)->inode)
		err = get_by_key(table, mapping->path, &inode, sizeof(inode), ret);
	if (err)
		return err;
	remember_inode(*ret, mapping);
	remember_user(*ret, mapping);
	remember_code(*ret, mapping);
	return 0;
}

struct module *module_table_by_id(const struct module_table *table, uint32_t id)
{
	return id != MODULE_NONE && id <= table->nr ? table->by_id[id - 1] : NULL;
}

void module_lend(struct module *module)
{
	if (module->owner == 0)
		module->owner = ELF_FILE_ANYBODY;
}

/* Gives a build-id to a module that was mapped before the build-id was known. */
static int rekey_module(struct module_table *table, const struct known_build_id *known)
{
	struct module *module = find_module(table, known->path, strlen(known->path) + 1);
	size_t key_len;

	if (!module || module->state != MODULE_UNTRIED)
		return 0;

	_cleanup_free_ char *key = make_key(known->path, known->build_id, known->size, &key_len);
	if (!key)
		return -ENOMEM;
	memcpy(module->build_id, known->build_id, known->size);
	module->build_id_size = known->size;

	HASH_DELETE(hh, table->by_key, module);
	if (find_module(table, key, key_len))
		return 0; /* it stays reachable by its id */
	free(module->key);
	module->key = steal_ptr(key);
	module->path = module->key;
	return enter_module(table, module) ? 0 : -ENOMEM;
}

int module_table_set_build_id(struct module_table *table, const char *path, const uint8_t *build_id,
			      uint8_t size)
{
	struct known_build_id *known;

	if (!size || size > BUILD_ID_MAX)
		return 0;
	known = find_known(table, path);
	if (!known) {
		known = calloc(1, sizeof(*known));
		if (!known)
			return -ENOMEM;
		known->path = strdup(path);
		if (known->path)
			HASH_ADD_KEYPTR_BYHASHVALUE(hh, table->known_build_ids, known->path,
						    strlen(path), hash_of(path, NULL, 0), known);
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
