/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/records/perf_side_records.h"

#include "common/perf_disk.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

/* The string at @offset of the record's body. NULL: it does not end there. */
static const char *string_at(const uint8_t *bytes, size_t size_bytes, size_t offset)
{
	if (offset >= size_bytes || !memchr(bytes + offset, '\0', size_bytes - offset))
		return NULL;
	return (const char *)bytes + offset;
}

static void copy_build_id(const uint8_t *from, uint8_t size, uint8_t *to, uint8_t *ret_size)
{
	*ret_size = size < BUILD_ID_MAX ? size : BUILD_ID_MAX;
	memcpy(to, from, *ret_size);
}

static int decode_mmap2(const struct perf_record *record, size_t body_bytes,
			struct perf_mmap_record *ret)
{
	struct perf_disk_mmap2 disk;

	if (body_bytes < sizeof(disk))
		return -EINVAL;
	memcpy(&disk, record->bytes, sizeof(disk));
	ret->mapping.path = string_at(record->bytes, body_bytes, sizeof(disk));
	ret->mapping.pid = (pid_t)disk.pid;
	ret->mapping.start = disk.address;
	ret->mapping.len = disk.len;
	ret->mapping.file_offset = disk.file_offset;
	if (perf_disk_has_build_id(&disk)) {
		copy_build_id(disk.build_id, disk.build_id_size, ret->mapping.build_id,
			      &ret->mapping.build_id_size);
	} else {
		ret->mapping.device = makedev(disk.major, disk.minor);
		ret->mapping.inode = disk.inode;
	}
	ret->tid = (pid_t)disk.tid;
	ret->executable = disk.prot & PROT_EXEC;
	return ret->mapping.path ? 0 : -EINVAL;
}

int perf_decode_mmap(const struct perf_record *record, size_t body_bytes,
		     struct perf_mmap_record *ret)
{
	struct perf_disk_mmap disk;

	if (record->header.type == PERF_RECORD_MMAP2)
		return decode_mmap2(record, body_bytes, ret);
	if (body_bytes < sizeof(disk))
		return -EINVAL;
	memcpy(&disk, record->bytes, sizeof(disk));
	ret->mapping.path = string_at(record->bytes, body_bytes, sizeof(disk));
	ret->mapping.pid = (pid_t)disk.pid;
	ret->mapping.start = disk.address;
	ret->mapping.len = disk.len;
	ret->mapping.file_offset = disk.file_offset;
	ret->tid = (pid_t)disk.tid;
	ret->executable = !(disk.header.misc & PERF_RECORD_MISC_MMAP_DATA);
	return ret->mapping.path ? 0 : -EINVAL;
}

int perf_decode_task(const struct perf_record *record, size_t body_bytes,
		     struct perf_task_record *ret)
{
	struct perf_disk_task disk;

	if (body_bytes < sizeof(disk))
		return -EINVAL;
	memcpy(&disk, record->bytes, sizeof(disk));
	ret->pid = (pid_t)disk.pid;
	ret->ppid = (pid_t)disk.ppid;
	ret->tid = (pid_t)disk.tid;
	ret->ptid = (pid_t)disk.ptid;
	if (ret->origin.time_ns == 0)
		ret->origin.time_ns = disk.time_ns;
	return 0;
}

int perf_decode_comm(const struct perf_record *record, size_t body_bytes,
		     struct perf_comm_record *ret)
{
	struct perf_disk_comm disk;

	if (body_bytes < sizeof(disk))
		return -EINVAL;
	memcpy(&disk, record->bytes, sizeof(disk));
	ret->pid = (pid_t)disk.pid;
	ret->tid = (pid_t)disk.tid;
	ret->exec = disk.header.misc & PERF_RECORD_MISC_COMM_EXEC;
	ret->comm = string_at(record->bytes, body_bytes, sizeof(disk));
	return ret->comm ? 0 : -EINVAL;
}

int perf_decode_build_id(const uint8_t *bytes, size_t size_bytes, struct perf_build_id *ret)
{
	struct perf_disk_build_id disk;

	*ret = (struct perf_build_id){0};
	if (size_bytes < sizeof(disk))
		return -EINVAL;
	memcpy(&disk, bytes, sizeof(disk));
	ret->path = string_at(bytes, size_bytes, sizeof(disk));
	ret->is_kernel =
		(disk.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	copy_build_id(disk.build_id,
		      disk.header.misc & PERF_MISC_BUILD_ID_SIZE ? disk.size : BUILD_ID_MAX,
		      ret->build_id, &ret->size);
	return ret->path ? 0 : -EINVAL;
}
