/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes samples in place into the ring of the CPU, with the layout of PERF_RECORD_SAMPLE
 * (perf_event_open(2)).
 */
#ifndef LEAKTOOLS_RECORDER_SAMPLES_BPF_H
#define LEAKTOOLS_RECORDER_SAMPLES_BPF_H

#include "recorder/bpf/targets.bpf.h"
#include "recorder/bpf/pending_returns.bpf.h"
#include "recorder/bpf/bpf_recorder_shared.h"
#include "recorder/bpf/ring.bpf.h"
#include "recorder/bpf/samples_shared.h"
#include "recorder/bpf/stack_bases.bpf.h"
#include "recorder/bpf/task_stack.bpf.h"
#include "recorder/bpf/windows.bpf.h"

#include <stddef.h>

/* Options of the recording, fixed when the programs are loaded. */
const volatile unsigned int dump_bytes =
	0;			       /* the most of a stack to dump; 0: follow frame pointers */
const volatile bool dumps_fit = false; /* a dump ends where the stack does */
const volatile bool entries_have_stacks = false; /* entries of some functions */
const volatile unsigned long long lost_id = 0;	 /* PERF_SAMPLE_IDENTIFIER of LOST records */

/* Wakes the recorder, which polls this otherwise empty ring. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} wakeups SEC(".maps");

/* With one: CALLCHAIN, too. */
struct stack_head {
	struct perf_event_header header;
	unsigned long long id, ip;
	unsigned int pid, tid;
	unsigned long long time_ns;
	unsigned int cpu, reserved;
	unsigned long long nr_addresses;
};

struct lost_record {
	struct perf_event_header header;
	unsigned long long id, lost;
	/* The end of every record: struct record_trailer (sample_format.h). */
	unsigned int pid, tid;
	unsigned long long time_ns;
	unsigned int cpu, reserved;
	unsigned long long trailer_id;
};

/* Raw data, counted from its size field, is padded to a multiple of eight by this many bytes. */
#define RAW_PAD	   4

#define MAX_FIELDS 7 /* a power of two, less one */

/*
 * A sample to be written. Functions that are not static are verified once for each program, and not
 * at each of their calls. They take no pointer into the context and none into a map, hence the
 * copies.
 */
struct sample {
	struct bpf_event event;
	unsigned int nr_fields;
	unsigned long long caller; /* comes first after ip in a stack by frame pointers, unless 0 */
	unsigned long long fields[MAX_FIELDS];
	struct kept_registers regs; /* where its stack begins; all of them only in raw dumps */
};

/*
 * Writes a LOST record before the first sample that finds room again, as the kernel does in its
 * rings. So the lost samples of a CPU all lie between the sample before the record and the one
 * after.
 */
__attribute__((noinline)) int record_lost(unsigned int nr)
{
	struct bpf_cpu *cpu = &cpus[nr & (BACKPRESSURE_MAX_CPUS - 1)];
	struct bpf_ring_control *ring = own_ring(nr);
	struct lost_record *record;
	struct room room;

	if (!ring)
		return 0;
	record = ring_reserve(ring, sizeof(*record), &room);
	if (!record)
		return 0;
	*record = (struct lost_record){
		.header = {PERF_RECORD_LOST, 0, sizeof(*record)},
		.id = lost_id,
		.lost = __sync_lock_test_and_set(&cpu->lost, 0),
		.time_ns = bpf_ktime_get_ns(),
		.cpu = nr,
		.trailer_id = lost_id,
	};
	ring_seal(ring, room.at);
	return 0;
}

__attribute__((noinline)) int wake_recorder(void)
{
	unsigned long long nothing = 0;

	bpf_ringbuf_output(&wakeups, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* After each sample: has the ring come near its end? */
ALWAYS_INLINE void watch_ring(const struct room *room, unsigned int nr)
{
	struct bpf_cpu *cpu = &cpus[nr & (BACKPRESSURE_MAX_CPUS - 1)];

	count_steps(room->at, &cpu->step);
	if (room->filled < wakeup_bytes)
		return;
	if (!cpu->woken) {
		cpu->woken = 1;
		wake_recorder();
	}
	if (in_windows && room->filled > ring_mask / 2)
		close_window();
	else if (room->filled > shared.limit_bytes)
		hold_for_ring(room->filled);
}

/* Counts a sample that is not written. */
ALWAYS_INLINE void count_lost(void)
{
	unsigned int nr = bpf_get_smp_processor_id();

	__sync_fetch_and_add(&cpus[nr & (BACKPRESSURE_MAX_CPUS - 1)].lost, 1);
}

/*
 * Where all processes are recorded, a process that must not be stopped loses its own samples. The
 * rest of the ring is left to processes that are about to stop.
 */
__attribute__((noinline)) int leaves_room(void)
{
	struct bpf_ring_control *ring = own_ring(bpf_get_smp_processor_id());
	unsigned long long filled;

	if (!ring || !shared.limit_bytes)
		return 1;
	filled = *(volatile unsigned long long *)&ring->head -
		 *(volatile unsigned long long *)&ring->tail;
	if ((long long)filled <= (long long)shared.limit_bytes || target_to_hold())
		return 1;
	count_lost();
	return 0;
}

/* True if a hit of @site by the current process is recorded now. */
ALWAYS_INLINE bool is_wanted(const struct bpf_site *site)
{
	if (everywhere)
		return is_in_scope() && leaves_room();
	return !site->is_late || current_target();
}

ALWAYS_INLINE void no_room(unsigned int nr)
{
	count_lost();
	cpus[nr & (BACKPRESSURE_MAX_CPUS - 1)].woken = 1;
	wake_recorder();
	if (in_windows)
		close_window();
	else
		hold_for_ring(~0ULL);
}

/* The ring of the CPU, after losses so far have been written. */
ALWAYS_INLINE struct bpf_ring_control *ring_to_fill(unsigned int nr)
{
	if (cpus[nr & (BACKPRESSURE_MAX_CPUS - 1)].lost)
		record_lost(nr);
	return own_ring(nr);
}

/* Read anew each time: the verifier then need not tell numbers of fields apart. */
ALWAYS_INLINE unsigned int field_bytes(const struct sample *sample)
{
	return (*(const volatile unsigned int *)&sample->nr_fields & MAX_FIELDS) * 8;
}

ALWAYS_INLINE unsigned int raw_bytes(const struct sample *sample)
{
	return sizeof(struct raw_head) + field_bytes(sample) + RAW_PAD;
}

ALWAYS_INLINE void fill_raw(struct raw_head *raw, const struct sample *sample,
			    unsigned long long pid_tgid)
{
	unsigned int bytes = field_bytes(sample);
	unsigned long long *to = (void *)(raw + 1);

	raw->size = raw_bytes(sample) - sizeof(raw->size);
	raw->type = sample->event.type;
	raw->flags = raw->preempt_count = 0;
	raw->pid = (int)pid_tgid;
#pragma unroll
	for (unsigned int i = 0; i < MAX_FIELDS; i++)
		if (i * 8 < bytes)
			to[i] = sample->fields[i];
	*(unsigned int *)((char *)to + field_bytes(sample)) = 0;
}

/* Written field by field: a compiler may build a whole struct on the stack first. */
ALWAYS_INLINE void fill_plain_head(struct plain_head *head, const struct bpf_event *event,
				   unsigned int size, unsigned long long ip,
				   unsigned long long pid_tgid, unsigned int cpu)
{
	head->header.type = PERF_RECORD_SAMPLE;
	head->header.misc = PERF_RECORD_MISC_USER;
	head->header.size = size;
	head->id = event->id;
	head->ip = ip;
	head->pid = pid_tgid >> 32;
	head->tid = pid_tgid;
	head->cpu = cpu;
	head->reserved = 0;
	/* After the reservation: a sample is never older than what was read before it. */
	head->time_ns = bpf_ktime_get_ns();
}

/* A sample without a stack. */
ALWAYS_INLINE void write_plain(const struct sample *sample)
{
	const unsigned int size = sizeof(struct plain_head) + raw_bytes(sample);
	unsigned long long pid_tgid = bpf_get_current_pid_tgid();
	unsigned int cpu = bpf_get_smp_processor_id();
	struct bpf_ring_control *ring = ring_to_fill(cpu);
	struct plain_head *head;
	struct room room;

	if (!ring) {
		count_lost();
		return;
	}
	head = ring_reserve(ring, size, &room);
	if (!head) {
		no_room(cpu);
		return;
	}
	fill_plain_head(head, &sample->event, size, KEPT_IP(&sample->regs), pid_tgid, cpu);
	fill_raw((void *)(head + 1), sample, pid_tgid);
	ring_seal(ring, room.at);
	watch_ring(&room, cpu);
}

/* --- stacks by frame pointers --- */

#define WINDOW_BYTES  1024
#define FRAME_BYTES   16		  /* the caller's frame pointer, the return address */
#define CALLCHAIN_MAX (BPF_MAX_STACK + 1) /* and PERF_CONTEXT_USER */
#define RAW_MAX_BYTES (sizeof(struct raw_head) + MAX_FIELDS * 8 + RAW_PAD)

/* A sample being written. The ring gets the window back. */
struct frames_record {
	struct stack_head head;
	unsigned long long addresses[CALLCHAIN_MAX];
	unsigned char raw[RAW_MAX_BYTES]; /* follows the last address */
	unsigned long long
		window[WINDOW_BYTES / 8]; /* of the user's stack, from the stack pointer on */
};

/*
 * Follows the frame pointers from @fp on. One copy of the top of the stack serves most frames: a
 * copy for each frame costs more than the rest of a sample. Returns the number of addresses. The
 * function is global, so that the verifier checks the loop once for each program.
 */
__attribute__((noinline)) unsigned int walk_frames(struct frames_record *record,
						   unsigned long long sp, unsigned long long fp,
						   unsigned int nr)
{
	unsigned long long frame[2], index, mask = code_address_mask();
	long is_short;

	if (!record)
		return 0;
	is_short = bpf_probe_read_user(record->window, WINDOW_BYTES, (void *)sp);
	for (int i = 0; i < BPF_MAX_STACK; i++) {
		unsigned long long at = fp - sp;

		if (nr >= CALLCHAIN_MAX || fp < sp || (fp & 7))
			break;
		if (!is_short && at <= WINDOW_BYTES - FRAME_BYTES) {
			unsigned int word = (at / 8) & (WINDOW_BYTES / 8 - 1);

			frame[0] = record->window[word];
			frame[1] = record->window[(word + 1) & (WINDOW_BYTES / 8 - 1)];
		} else if (bpf_probe_read_user(frame, sizeof(frame), (void *)fp)) {
			break;
		}
		if (!frame[1])
			break;
		/* The compiler would drop this check, but the verifier needs it. */
		index = nr++;
		asm volatile("%0 &= 127" : "+r"(index));
		record->addresses[index] = frame[1] & mask;
		if (frame[0] <= fp)
			break;
		fp = frame[0];
	}
	return nr;
}

/* A sample with the callchain. */
ALWAYS_INLINE void write_frames(const struct sample *sample)
{
	const struct kept_registers *regs = &sample->regs;
	unsigned long long pid_tgid = bpf_get_current_pid_tgid();
	unsigned int cpu = bpf_get_smp_processor_id(), nr = 2, size;
	struct bpf_ring_control *ring = ring_to_fill(cpu);
	struct frames_record *record;
	struct room room;

	if (!ring) {
		count_lost();
		return;
	}
	record = ring_reserve(ring, sizeof(*record), &room);
	if (!record) {
		no_room(cpu);
		return;
	}
	record->head.time_ns = bpf_ktime_get_ns();
	record->addresses[0] = PERF_CONTEXT_USER;
	record->addresses[1] = KEPT_IP(regs);
	if (sample->caller)
		record->addresses[nr++] = sample->caller;
	nr = walk_frames(record, KEPT_SP(regs), KEPT_FP(regs), nr);
	if (nr > CALLCHAIN_MAX)
		nr = CALLCHAIN_MAX;
	size = sizeof(struct stack_head) + nr * 8 + raw_bytes(sample);
	record->head.header.type = PERF_RECORD_SAMPLE;
	record->head.header.misc = PERF_RECORD_MISC_USER;
	record->head.header.size = size;
	record->head.id = sample->event.id;
	record->head.ip = KEPT_IP(regs);
	record->head.pid = pid_tgid >> 32;
	record->head.tid = pid_tgid;
	record->head.cpu = cpu;
	record->head.reserved = 0;
	record->head.nr_addresses = nr;
	fill_raw((void *)(record->addresses + nr), sample, pid_tgid);
	ring_shrink(&room, sizeof(*record), size);
	ring_seal(ring, room.at);
	watch_ring(&room, cpu);
}

/* --- marks --- */

/* Writes the sample of a mark (<leaktools/leak_probes.h>), which the current task has set. */
static __attribute__((noinline)) int write_mark(const struct pt_regs *regs,
						const struct bpf_event *event, unsigned int index)
{
	unsigned long long ip = PT_REGS_IP(regs), text = PT_REGS_PARM1(regs);
	unsigned int cpu = bpf_get_smp_processor_id();
	struct bpf_ring_control *ring = ring_to_fill(cpu);
	struct mark_record *record = 0;
	struct room room;
	long len;

	if (ring)
		record = ring_reserve(ring, sizeof(*record), &room);
	if (!record) {
		no_room(cpu);
		return 0;
	}
	fill_plain_head(&record->head, event, sizeof(*record), ip, bpf_get_current_pid_tgid(), cpu);
	record->raw.size = sizeof(*record) - sizeof(record->head) - sizeof(record->raw.size);
	record->raw.type = event->type;
	record->raw.flags = record->raw.preempt_count = 0;
	record->raw.pid = (int)record->head.tid;
	record->ip_words[0] = (unsigned int)ip;
	record->ip_words[1] = (unsigned int)(ip >> 32);
	__builtin_memset(record->text, 0, sizeof(record->text));
	len = bpf_probe_read_user_str(record->text, sizeof(record->text), (void *)text);
	if (len < 1) {
		record->head.header.misc |= MARK_IS_UNREAD;
		record->head.reserved = index;
		record->address = text;
	}
	record->data_loc = MARK_DATA_LOC(len);
	ring_seal(ring, room.at);
	watch_ring(&room, cpu);
	return 0;
}

/* --- stacks as dumps, to be unwound by user space --- */

/* After RAW follow REGS_USER (ABI, registers) and STACK_USER (size, bytes, size). */
#define DUMP_WORDS(nr_registers) (3 + (nr_registers))

#define PAGE_BYTES		 4096 /* or a multiple of it */
#define MAX_PAGES		 17   /* that a dump can touch */

/*
 * The bytes from @sp to the first page that cannot be read. The function is global, so that the
 * verifier checks the loop once for each program.
 */
__attribute__((noinline)) unsigned int readable_bytes(unsigned long long sp)
{
	unsigned long long page = sp & ~(PAGE_BYTES - 1ULL);
	char byte;
	int i;

	for (i = 0; i < MAX_PAGES; i++)
		if (bpf_probe_read_user(&byte, 1, (void *)(i ? page + i * PAGE_BYTES : sp)))
			break;
	return i ? page + i * PAGE_BYTES - sp : 0;
}

/*
 * Copies the stack from @sp on, at most @wanted bytes: a multiple of eight, no more than
 * dump_bytes. Returns the bytes copied.
 */
ALWAYS_INLINE unsigned int copy_stack(char *to, unsigned long long sp, unsigned int wanted)
{
	unsigned int readable;

	if (bpf_probe_read_user(to, wanted, (void *)sp) == 0)
		return wanted;
	readable = readable_bytes(sp) & ~7U;
	/* Linux 6.1 learns a bound from a constant only. */
	if (readable > dump_bytes)
		readable = dump_bytes;
	if (readable > wanted)
		readable = wanted;
	return bpf_probe_read_user(to, readable, (void *)sp) == 0 ? readable : 0;
}

/* How much to dump: a multiple of eight, at most dump_bytes. */
ALWAYS_INLINE unsigned int dump_size(unsigned long long pid_tgid, unsigned long long sp)
{
	unsigned long long bytes = dump_bytes;

	if (dumps_fit) {
		bytes = (stack_bytes_needed(pid_tgid >> 32, sp) + 7) & ~7ULL;
		if (bytes > dump_bytes)
			bytes = dump_bytes;
	}
	return bytes;
}

/* A sample with registers, fewer if it @fits, and the top of the stack. */
ALWAYS_INLINE void write_dump(const struct sample *sample, const bool fits)
{
	const struct kept_registers *regs = &sample->regs;
	unsigned long long pid_tgid = bpf_get_current_pid_tgid();
	unsigned int bytes = dump_size(pid_tgid, KEPT_SP(regs)), size;
	unsigned int cpu = bpf_get_smp_processor_id();
	struct bpf_ring_control *ring = ring_to_fill(cpu);
	struct stack_head *head;
	struct return_instance *pending;
	const unsigned int nr_registers = fits ? NR_CALL_REGISTERS : NR_REGISTERS;
	unsigned long long *words;
	struct room room;

	if (!ring) {
		count_lost();
		return;
	}
	size = sizeof(struct stack_head) + raw_bytes(sample) + DUMP_WORDS(nr_registers) * 8 + bytes;
	head = ring_reserve(ring, size, &room);
	if (!head) {
		no_room(cpu);
		return;
	}
	*head = (struct stack_head){
		.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (unsigned short)size},
		.id = sample->event.id,
		.ip = KEPT_IP(regs),
		.pid = pid_tgid >> 32,
		.tid = (unsigned int)pid_tgid,
		.time_ns = bpf_ktime_get_ns(),
		.cpu = cpu,
	};
	fill_raw((void *)(head + 1), sample, pid_tgid);
	words = (void *)((char *)(head + 1) + raw_bytes(sample));
	words[0] = PERF_SAMPLE_REGS_ABI_64;
	if (fits)
		copy_call_registers(words + 1, regs);
	else
		copy_registers(words + 1, regs);
	words += 1 + nr_registers;
	words[0] = bytes;
	*(unsigned long long *)((char *)(words + 1) + bytes) =
		copy_stack((char *)(words + 1), KEPT_SP(regs), bytes);
	pending = pending_returns();
	if (pending)
		restore_returns((char *)(words + 1), KEPT_SP(regs), bytes, dump_bytes, pending);
	ring_seal(ring, room.at);
	watch_ring(&room, cpu);
}

__attribute__((noinline)) int write_sample(struct sample *sample)
{
	if (!sample)
		return 0;
	if (!sample->event.has_stack)
		write_plain(sample);
	else if (dump_bytes)
		write_dump(sample, dumps_fit);
	else
		write_frames(sample);
	return 0;
}

/* Writes a sample of @event with the first @nr_fields of its fields, and its registers. */
ALWAYS_INLINE void record(struct sample *sample, const struct bpf_event *event,
			  unsigned int nr_fields)
{
	if (!event->type)
		return;
	sample->event = *event;
	sample->nr_fields = nr_fields;
	write_sample(sample);
}

/* For a stack that begins where the program is. */
ALWAYS_INLINE void keep_registers(struct sample *sample, const struct pt_regs *regs)
{
	if (dump_bytes && !dumps_fit)
		copy_context(&sample->regs, regs);
	else
		copy_call_context(&sample->regs, regs);
}

ALWAYS_INLINE void record_here(struct sample *sample, const struct bpf_event *event,
			       unsigned int nr_fields, const struct pt_regs *regs)
{
	keep_registers(sample, regs);
	record(sample, event, nr_fields);
}

#endif
