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
	unsigned long long site;
};

/* Twice as large as MAX_NOTES: an LRU map evicts entries before it is full. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2 * MAX_NOTES);
	__type(key, struct call_key);
	__type(value, struct call_note);
} call_notes SEC(".maps");

unsigned long long nr_call_notes;

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
ALWAYS_INLINE bool find_level(struct call_key *key, unsigned long long caller,
			      unsigned long long site)
{
	const struct call_note *found;

#pragma unroll
	for (unsigned int i = 0; i < MAX_LEVELS; i++) {
		key->level = i;
		found = bpf_map_lookup_elem(&call_notes, key);
		if (!found)
			return false;
		if (found->caller != caller || found->site == site)
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
	struct call_note note = {true_return(caller_at_entry(regs), PT_REGS_SP(regs)),
				 PT_REGS_IP(regs), value, index};

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

/* Writes the sample of a call that ends at the `ret` that @regs are at. */
static __attribute__((noinline)) int record_exit(struct pt_regs *regs, struct call_note *note)
{
	const struct bpf_site *site = &sites[note->site & (BPF_MAX_SITES - 1)];
	const struct bpf_event *event = &site->events[BPF_EVENT_RETURN];
	unsigned long long fields[MAX_FIELDS] = {note->function, note->caller, PT_REGS_RC(regs), 0};
	struct pt_regs at_return;

	copy_context(&at_return, regs);
	set_return(&at_return, note->caller, PT_REGS_SP(regs) + 8);
	if (site->kind == BPF_SITE_RESOURCE) {
		if (note->value &&
		    bpf_probe_read_user(&fields[3], sizeof(fields[3]), (void *)note->value))
			fields[3] = 0;
		record(&at_return, event, fields, 4, 0);
	} else if (note_returned(site, fields[2], note->value)) {
		record(&at_return, event, fields, 3, 0);
	} else {
		count_lost();
	}
	return 0;
}

/* Removes the note of a call that ends here. Returns false if there is none. */
ALWAYS_INLINE bool consume_note(const struct call_key *key, unsigned long long caller,
				struct call_note *ret)
{
	const struct call_note *found = bpf_map_lookup_elem(&call_notes, key);

	if (!found || found->caller != caller)
		return false;
	*ret = *found;
	drop_note(key);
	return true;
}

static __attribute__((noinline)) int record_exits(struct pt_regs *regs)
{
	struct call_key key = {PT_REGS_SP(regs), bpf_get_current_pid_tgid() >> 32, 0};
	unsigned long long caller;
	struct call_note note;

	if (!bpf_map_lookup_elem(&call_notes, &key))
		return 0;
	caller = true_return(caller_at_entry(regs), PT_REGS_SP(regs));
	/* Look for the innermost call first. */
	for (unsigned int i = 1; i <= MAX_LEVELS; i++) {
		key.level = MAX_LEVELS - i;
		if (consume_note(&key, caller, &note))
			record_exit(regs, &note);
	}
	return 0;
}

SEC("kprobe")
int linked_exit(struct pt_regs *regs)
{
	KEEP_TASK_STACK(regs, at_links);
	if (recording)
		record_exits(regs);
	return 0;
}

SEC("kprobe")
int followed_exit(struct pt_regs *regs)
{
	KEEP_TASK_STACK(regs, at_events);
	if (is_followed())
		record_exits(regs);
	return 0;
}

#endif
