/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notices when a recorded process first uses a file whose code it has mapped. By dlopen() or exec()
 * it may have got an allocator. The process is stopped until the recorder has inspected the file
 * (dlopen_watch.h), once for each file. A process that must not be stopped (targets.bpf.h) may miss
 * calls until then.
 *
 * The first page fault on the file shows the use, before any of its code has run. A file that is
 * mapped as data does not count: the process has as much code as before, and no process has mapped
 * the file as code.
 */
#ifndef LEAKTOOLS_RECORDER_DLOPEN_WATCH_BPF_H
#define LEAKTOOLS_RECORDER_DLOPEN_WATCH_BPF_H

#include "recorder/bpf/backup_programs.bpf.h"
#include "recorder/bpf/samples.bpf.h"
#include "recorder/bpf/syscalls.bpf.h"

#define MAX_FILES_SEEN	   65536
#define MAX_PROCESSES_SEEN 16384

struct super_block {
	unsigned int s_dev;
} __attribute__((preserve_access_index));

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	long long i_size;
	long long i_ctime_sec;
	unsigned int i_ctime_nsec;
} __attribute__((preserve_access_index));

struct timespec64 {
	long long tv_sec;
	long tv_nsec;
} __attribute__((preserve_access_index));

/* include/linux/fs.h up to Linux 6.5, and from 6.6 to 6.10 */
struct inode___before_6_6 {
	struct timespec64 i_ctime;
} __attribute__((preserve_access_index));

struct inode___before_6_11 {
	struct timespec64 __i_ctime;
} __attribute__((preserve_access_index));

struct rb_node {
	struct rb_node *rb_right, *rb_left;
} __attribute__((preserve_access_index));

struct rb_root_cached {
	struct {
		struct rb_node *rb_node;
	} rb_root;
} __attribute__((preserve_access_index));

struct address_space {
	struct inode *host;
	struct rb_root_cached i_mmap; /* its mappings in all processes */
} __attribute__((preserve_access_index));

struct file {
	struct address_space *f_mapping;
} __attribute__((preserve_access_index));

struct vm_area_struct {
	struct file *vm_file;
	unsigned long vm_flags;
	struct {
		struct rb_node rb;
	} shared;
} __attribute__((preserve_access_index));

struct vm_fault {
	struct vm_area_struct *vma;
} __attribute__((preserve_access_index));

#define VM_EXEC 4 /* include/linux/mm.h */

/* The highest bit is a flag: I_CTIME_QUERIED, include/linux/fs.h (6.13). */
#define CTIME_NSEC_MASK 0x7fffffff

/* Inspected files, by the inode that uprobes use: on overlayfs, that of the lower file. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_FILES_SEEN);
	__type(key, struct bpf_file);
	__type(value, struct bpf_file_version);
} files_seen SEC(".maps");

/* How much code a process had mapped at the last look, in pages. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_PROCESSES_SEEN);
	__type(key, unsigned int);
	__type(value, unsigned long long);
} code_seen SEC(".maps");

/* Notes the code size of the process; true if it is as large as before. */
ALWAYS_INLINE bool has_no_new_code(unsigned int tgid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	unsigned long long pages = BPF_CORE_READ(task, mm, exec_vm), *seen;
	unsigned int tgid_of_parent;

	/* A page of code comes with the first probe that is hit. */
	if (BPF_CORE_READ(task, mm, uprobes_state.xol_area))
		pages--;
	seen = bpf_map_lookup_elem(&code_seen, &tgid);
	if (!seen) {
		/* A child has its parent's. */
		tgid_of_parent = BPF_CORE_READ(task, real_parent, tgid);
		seen = bpf_map_lookup_elem(&code_seen, &tgid_of_parent);
	}
	if (seen && *seen == pages)
		return true;
	bpf_map_update_elem(&code_seen, &tgid, &pages, BPF_ANY);
	return false;
}

/* The mapping that @node of mapping->i_mmap stands for is one of code. */
ALWAYS_INLINE bool is_code(struct rb_node *node)
{
	struct vm_area_struct *mapping;

	if (!node)
		return false;
	mapping = (void *)node - bpf_core_field_offset(struct vm_area_struct, shared.rb);
	return BPF_CORE_READ(mapping, vm_flags) & VM_EXEC;
}

/* The same for @node and the nodes below it. Without looking at all of them: true. */
static __attribute__((noinline)) int has_code_below(struct rb_node *node)
{
	struct rb_node *left, *right;

	if (!node)
		return 0;
	left = BPF_CORE_READ(node, rb_left);
	right = BPF_CORE_READ(node, rb_right);
	return is_code(node) || is_code(left) || is_code(right) ||
	       (left && (BPF_CORE_READ(left, rb_left) || BPF_CORE_READ(left, rb_right))) ||
	       (right && (BPF_CORE_READ(right, rb_left) || BPF_CORE_READ(right, rb_right)));
}

/*
 * True if some process has mapped the file as code. A library may take the place of another one
 * that had as much code. The tree (mm/interval_tree.c) may change meanwhile; one process's few
 * mappings of a file are in its upper three levels.
 */
ALWAYS_INLINE bool is_mapped_as_code(struct address_space *mapping)
{
	struct rb_node *root;

	if (!bpf_core_field_exists(struct vm_area_struct, vm_flags))
		return false;
	root = BPF_CORE_READ(mapping, i_mmap.rb_root.rb_node);
	return root && (is_code(root) || has_code_below(BPF_CORE_READ(root, rb_left)) ||
			has_code_below(BPF_CORE_READ(root, rb_right)));
}

/* A process has become another program, whose code may be as much. */
ALWAYS_INLINE void forget_code(unsigned int tgid)
{
	bpf_map_delete_elem(&code_seen, &tgid);
}

ALWAYS_INLINE unsigned long long ns_of(unsigned long long seconds, unsigned long long ns)
{
	return seconds * 1000000000ULL + (ns & CTIME_NSEC_MASK);
}

ALWAYS_INLINE unsigned long long changed_ns(struct inode *inode)
{
	struct inode___before_6_6 *old = (void *)inode;
	struct inode___before_6_11 *middle = (void *)inode;

	if (bpf_core_field_exists(inode->i_ctime_sec))
		return ns_of(BPF_CORE_READ(inode, i_ctime_sec), BPF_CORE_READ(inode, i_ctime_nsec));
	if (bpf_core_field_exists(old->i_ctime))
		return ns_of(BPF_CORE_READ(old, i_ctime.tv_sec),
			     BPF_CORE_READ(old, i_ctime.tv_nsec));
	return ns_of(BPF_CORE_READ(middle, __i_ctime.tv_sec),
		     BPF_CORE_READ(middle, __i_ctime.tv_nsec));
}

ALWAYS_INLINE struct bpf_file_version version_of(struct inode *inode)
{
	return (struct bpf_file_version){
		.size_bytes = BPF_CORE_READ(inode, i_size),
		.changed_ns = changed_ns(inode),
	};
}

/*
 * At a page fault on a file: if the process is recorded and the file's code is new, stores the file
 * in the target's entry, and stops the process until the recorder has inspected it.
 */
static __attribute__((noinline)) int note_use(struct address_space *mapping)
{
	unsigned int tgid = bpf_get_current_pid_tgid() >> 32;
	struct bpf_file_version version, *seen;
	struct target *target;
	struct bpf_file key;
	struct inode *inode;

	if (!recording || shared.closed || !is_recorded())
		return 0;
	inode = BPF_CORE_READ(mapping, host);
	key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	key.inode = BPF_CORE_READ(inode, i_ino);
	version = version_of(inode);
	seen = bpf_map_lookup_elem(&files_seen, &key);
	if (seen && seen->size_bytes == version.size_bytes &&
	    seen->changed_ns == version.changed_ns)
		return 0;
	/* Files of data may change often. */
	if ((seen || has_no_new_code(tgid)) && !is_mapped_as_code(mapping))
		return 0;
	target = add_target(tgid);
	/* Without an entry its file is not inspected. */
	if (!target) {
		shared.no_room = 1;
		return 0;
	}
	target->mapped_device = key.device;
	target->mapped_inode = key.inode;
	target->mapped_size_bytes = version.size_bytes;
	target->mapped_changed_ns = version.changed_ns;
	target->has_mapped = 1;
	shared.any_mapped = 1;
	if (in_windows) {
		/* It is recorded from the next window on: nothing waits for that. */
	} else if (!(may_hold_for_set_up() && target_to_hold() && hold_for_set_up(target))) {
		/* Something is missing if such a file turns out to be an allocator. */
		shared.files_unheld = 1;
	}
	wake_recorder();
	return 0;
}

PROGRAM_WITH_BACKUPS("tp_btf/mm_filemap_map_pages", after_map_pages,
		     (struct address_space * mapping), note_use, (mapping))

PROGRAM_WITH_BACKUPS("tp_btf/mm_filemap_fault", after_file_fault, (struct address_space * mapping),
		     note_use, (mapping))

/*
 * For kernels that have none of these tracepoints, as before Linux 6.11: the functions that contain
 * them (mm/filemap.c).
 */
ALWAYS_INLINE int note_fault(struct vm_fault *vmf)
{
	return note_use(BPF_CORE_READ(vmf, vma, vm_file, f_mapping));
}

PROGRAM_WITH_BACKUPS("fentry/filemap_map_pages", map_pages_begins, (struct vm_fault * vmf),
		     note_fault, (vmf))

PROGRAM_WITH_BACKUPS("fentry/filemap_fault", file_fault_begins, (struct vm_fault * vmf), note_fault,
		     (vmf))

#endif
