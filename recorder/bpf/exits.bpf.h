/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records returns without replacing return addresses (probes/sites/function_exits.h). The entry
 * notes the call by its frame, the address of its return address. At each `ret` where calls of such
 * functions may end, the stack pointer shows whether a noted call ends. The sample is the one that
 * a return probe would have written.
 *
 * A call that ends by an exception leaves its note, which the next call with that frame replaces.
 * Functions that are not probed may share an exit: their calls have no note.
 */
#ifndef LEAKTOOLS_RECORDER_EXITS_BPF_H
#define LEAKTOOLS_RECORDER_EXITS_BPF_H

#include "recorder/bpf/calls.bpf.h"
#include "recorder/bpf/filter.bpf.h"

#define MAX_NOTES  32768
#define MAX_LEVELS 3 /* functions that tail-call each other, whose calls end at one `ret` */

struct call_key {
	unsigned long long frame;
	unsigned int tgid, level; /* 0: the function that was called */
};

struct call_note {
	unsigned long long caller;   /* the return address */
	unsigned long long function; /* the address of the probe of its entry */
	/* BPF_SITE_RESOURCE: where it will store the handle; else the released block, or 0. */
	unsigned long long value;
	unsigned int site;
	unsigned int window; /* in which the call began */
};

/* Twice as large as MAX_NOTES: an LRU map evicts entries before it is full. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2 * MAX_NOTES);
	__type(key, struct call_key);
	__type(value, struct call_note);
} call_notes SEC(".maps");

unsigned long long nr_call_notes;

/* True if the call began in an earlier window: it has ended since, or its end does not count. */
ALWAYS_INLINE bool is_stale(const struct call_note *note)
{
	return note->window != window.nr;
}

ALWAYS_INLINE void drop_note(const struct call_key *key)
{
	if (bpf_map_delete_elem(&call_notes, key) == 0)
		__sync_fetch_and_sub(&nr_call_notes, 1);
}

/* Drops stale notes from @level on: of an earlier call here, and of its tail calls. */
ALWAYS_INLINE void drop_levels(struct call_key *key, unsigned int level)
{
#pragma unroll
	for (unsigned int i = 0; i < MAX_LEVELS; i++) {
		if (i < level)
			continue;
		key->level = i;
		drop_note(key);
	}
	key->level = level;
}

/*
 * Finds the level of a call of @site that begins. A call with the same frame and return address has
 * jumped here: the level is one more than that call's. Returns true if the level has a note
 * already.
 */
ALWAYS_INLINE bool find_level(struct call_key *key, unsigned long long caller, unsigned int site)
{
	const struct call_note *found;

#pragma unroll
	for (unsigned int i = 0; i < MAX_LEVELS; i++) {
		key->level = i;
		found = bpf_map_lookup_elem(&call_notes, key);
		if (!found)
			return false;
		if (found->caller != caller || found->site == site || is_stale(found))
			break;
	}
	return true;
}

/*
 * Notes a call at the entry of a function with exits; without @is_wanted only drops stale notes.
 * Returns false if there is no room for the note, which counts as a loss.
 */
static __attribute__((noinline)) bool note_call(struct pt_regs *regs, unsigned int index,
						unsigned long long value, bool is_wanted)
{
	struct call_key key = {PT_REGS_SP(regs), bpf_get_current_pid_tgid() >> 32, 0};
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	struct call_note note = {true_return(caller_at(regs, site), PT_REGS_SP(regs)),
				 function_at(regs, index), value, index, window.nr};

	if (find_level(&key, note.caller, index))
		drop_levels(&key, key.level);
	if (!is_wanted)
		return true;
	if (bpf_map_update_elem(&call_notes, &key, &note, BPF_ANY)) {
		count_lost();
		return false;
	}
	/* The map was full: it has evicted another note, perhaps of a call that goes on. */
	if (__sync_fetch_and_add(&nr_call_notes, 1) >= MAX_NOTES) {
		__sync_fetch_and_sub(&nr_call_notes, 1);
		count_lost();
	}
	return true;
}

/*
 * Removes the note of a call that ends at the `ret` that @regs are at, and fills in @ret_sample
 * with the registers after it. Returns the call's site, or NULL: no call of that level ends there.
 */
ALWAYS_INLINE const struct bpf_site *consume_note(const struct pt_regs *regs,
						  const struct call_key *key,
						  unsigned long long caller,
						  struct sample *ret_sample)
{
	const struct call_note *note = bpf_map_lookup_elem(&call_notes, key);
	const struct bpf_site *site;

	if (!note || note->caller != caller || is_stale(note))
		return 0;
	site = &sites[note->site & (BPF_MAX_SITES - 1)];
	ret_sample->caller = 0;
	ret_sample->fields[0] = note->function;
	ret_sample->fields[1] = caller;
	ret_sample->fields[2] = PT_REGS_RC(regs);
	ret_sample->fields[3] = note->value;
	drop_note(key);
	return site;
}

/* Writes the sample of a call of this level that ends here. */
static __attribute__((noinline)) int record_exit(struct pt_regs *regs, unsigned int level,
						 unsigned long long caller)
{
	struct call_key key = {PT_REGS_SP(regs), bpf_get_current_pid_tgid() >> 32, level};
	const struct bpf_site *site;
	struct sample sample;
	bool stores;

	site = consume_note(regs, &key, caller, &sample);
	if (!site)
		return 0;
	stores = site->kind == BPF_SITE_RESOURCE;
	if (stores && sample.fields[3] &&
	    bpf_probe_read_user(&sample.fields[3], sizeof(sample.fields[3]),
				(void *)sample.fields[3]))
		sample.fields[3] = 0;
	if (!stores && !note_returned(site, sample.fields[2], sample.fields[3])) {
		count_lost();
		return 0;
	}
	copy_context(&sample.regs, regs);
	if (!at_calls)
		set_return(&sample.regs, caller, PT_REGS_SP(regs) + 8);
	record(&sample, &site->events[BPF_EVENT_RETURN], stores ? 4 : 3);
	return 0;
}

/* The return address of the call that ends here, or 0 if no call with its frame was noted. */
static __attribute__((noinline)) unsigned long long noted_caller(struct pt_regs *regs)
{
	struct call_key key = {PT_REGS_SP(regs), bpf_get_current_pid_tgid() >> 32, 0};

	if (!bpf_map_lookup_elem(&call_notes, &key))
		return 0;
	return true_return(caller_at_entry(regs), PT_REGS_SP(regs));
}

/* Inline: Linux 6.1 permits no other function on the way to the sample. */
ALWAYS_INLINE int record_exits(struct pt_regs *regs)
{
	unsigned long long caller;

	/* Behind a call, the stack pointer is what it was at the call. */
	if (at_calls)
		return record_exit(regs, 0, PT_REGS_IP(regs));
	caller = noted_caller(regs);
	/* Look for the innermost call first. */
	for (unsigned int i = 1; i <= MAX_LEVELS && caller; i++)
		record_exit(regs, MAX_LEVELS - i, caller);
	return 0;
}

/*
 * --- functions that the user has chosen (common/schema/resource_schema.h) ---
 *
 * The fields of their samples have fixed offsets, and the recording describes those in use: at the
 * entry handle, size and caller; at the return the value and what was stored.
 */

/* Reads a register, or the user's memory that it points to; @from is as in struct bpf_site. */
ALWAYS_INLINE unsigned long long read_value(struct pt_regs *regs, unsigned int from)
{
	unsigned long long value = 0;

	if (!from)
		return 0;
	bpf_probe_read_kernel(&value, sizeof(value), (char *)regs + (from & 0xff));
	if (from & BPF_READ_POINTED && bpf_probe_read_user(&value, sizeof(value), (void *)value))
		value = 0;
	return value;
}

static __attribute__((noinline)) int record_resource_entry(struct pt_regs *regs, unsigned int index)
{
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	const struct bpf_event *event = &site->events[BPF_EVENT_ENTRY];
	struct sample sample;
	unsigned long long handle = read_value(regs, site->reads[0]);

	if (site->has_exits && !note_call(regs, index, site->stores ? handle : 0, true))
		return 0;
	sample.caller = site->has_caller ? caller_at_entry(regs) : 0;
	sample.fields[0] = PT_REGS_IP(regs);
	sample.fields[1] = handle;
	sample.fields[2] = read_value(regs, site->reads[1]);
	sample.fields[3] = sample.caller;
	record_here(&sample, event, 4, regs);
	return 0;
}

#endif
