/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calls of the machine's threads, their real effects, and the events they send. */
#include "test/support/heap_machine.h"

#include <string.h>

#define MANY_HELD	100 /* in one address space: then frees prevail */
#define BASE_ADDRESS	0x10000u
#define ADDRESS_STEP	0x40u
#define TRAMPOLINE	0x7fffffffe000u
#define PLT_STUB	0x7f0000026010u
#define UNKNOWN_ADDRESS 0x90000000u

uint64_t machine_draw(struct machine *m, uint64_t below)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return m->random % below;
}

uint64_t machine_address_of(int index)
{
	return BASE_ADDRESS + ADDRESS_STEP * (uint64_t)index;
}

uint64_t machine_unknown_address(struct machine *m)
{
	return UNKNOWN_ADDRESS + 16 * m->nr_unknown++;
}

int machine_pick_address(struct machine *m, const struct memory *memory, enum state state)
{
	int start = (int)machine_draw(m, NR_ADDRESSES);

	for (int i = 0; i < NR_ADDRESSES; i++) {
		int index = (start + i) % NR_ADDRESSES;

		if (memory->blocks[index].state == state && !memory->busy[index])
			return index;
	}
	return NO_ADDRESS;
}

/* An address that malloc may return. */
static int pick_vacant(struct machine *m, const struct memory *memory)
{
	int index = machine_pick_address(m, memory, machine_draw(m, 4) ? RELEASED : NEVER);

	if (index == NO_ADDRESS)
		index = machine_pick_address(m, memory, NEVER);
	if (index == NO_ADDRESS)
		index = machine_pick_address(m, memory, RELEASED);
	assert_int_not_equal(index, NO_ADDRESS);
	return index;
}

static int count_held(const struct memory *memory)
{
	int nr = 0;

	for (int i = 0; i < NR_ADDRESSES; i++)
		nr += memory->blocks[i].state == HELD;
	return nr;
}

/* What calls do */

static void really_release(struct machine *m, struct memory *memory, int index)
{
	struct block *block = &memory->blocks[index];

	if (block->state != HELD) {
		m->truth.anomalies[ANOMALY_DOUBLE_FREE]++;
		return;
	}
	m->truth.frees++;
	m->truth.freed_bytes += block->b.size_bytes;
	block->state = RELEASED;
	block->released_by = m->feed.sequence;
}

static void really_enter(struct machine *m, struct process *p, struct task *t,
			 const struct event *event)
{
	struct call *call = &t->call;
	struct block *block = &p->memory->blocks[call->block];

	if (block->state == HELD) { /* the inner call's return has entered it already */
		m->truth.allocations--;
		m->truth.allocated_bytes -= block->b.size_bytes;
	}
	block->state = HELD;
	block->b = (struct heap_block){
		.address = machine_address_of(call->block),
		.size_bytes = call->size_known ? call->size_bytes : 0,
		.size_known = call->size_known,
		.allocated =
			{
				.time_ns = m->feed.sequence * 10,
				.sequence = m->feed.sequence,
				.pid = p->memory->pid,
				.tid = t->tid,
				.schema = probe_schema_find(event->function),
			},
	};
	m->truth.allocations++;
	m->truth.allocated_bytes += block->b.size_bytes;
}

static void really_fail(struct machine *m, struct process *p, struct call *call)
{
	struct block *block;

	if (!call->failed)
		m->truth.anomalies[ANOMALY_ALLOC_FAILED]++;
	call->failed = true;
	if (call->at < call->nr || call->old == NO_ADDRESS || !call->release_sequence)
		return;
	block = &p->memory->blocks[call->old];
	if (block->state != RELEASED || block->released_by != call->release_sequence)
		return;
	block->state = HELD;
	block->b = call->old_block;
	m->truth.frees--;
	m->truth.freed_bytes -= call->old_block.size_bytes;
}

/* Sending events */

void machine_end_call(struct process *p, struct call *call)
{
	if (call->old != NO_ADDRESS)
		p->memory->busy[call->old] = false;
	if (call->block != NO_ADDRESS)
		p->memory->busy[call->block] = false;
	*call = (struct call){.old = NO_ADDRESS, .block = NO_ADDRESS};
}

static void send(struct machine *m, const struct event *event, uint64_t value)
{
	struct perf_sample sample = {.ret = value, .block = value};

	memcpy(sample.args, event->args, sizeof(sample.args));
	if (event->point == PROBE_CALL || (event->point == PROBE_ENTRY && m->callers))
		sample.caller = event->caller;
	if (probe_point_is_return(event->point))
		sample.return_address = event->caller;
	m->feed.probe_address = event->probe_address;
	feed_send(&m->feed, event->function, event->point, &sample);
}

static uint64_t value_of(struct machine *m, struct process *p, struct call *call,
			 const struct event *event)
{
	if (event->effect != ENTERS)
		return event->point == PROBE_RETURN && event->effect == FAILS &&
				       probe_schema_find(event->function)->effect ==
					       HEAP_ALLOC_TO_PTR
			       ? 12
			       : 0;
	if (call->block == NO_ADDRESS)
		call->block = call->in_place ? call->old : pick_vacant(m, p->memory);
	p->memory->busy[call->block] = true;
	return machine_address_of(call->block);
}

/* Sends the next event of @t's call. */
void machine_step_call(struct machine *m, struct process *p, struct task *t)
{
	struct call *call = &t->call;
	const struct event *event = &call->events[call->at++];
	const struct probe_schema *schema = probe_schema_find(event->function);
	bool to_ptr = schema->effect == HEAP_ALLOC_TO_PTR;
	uint64_t value = value_of(m, p, call, event);

	feed_as(&m->feed, p->pid, t->tid);
	if (event->lost) {
		if (call->lost_old != NO_ADDRESS)
			t->lost_old[call->lost_old] = true;
		m->truth.entries_without_return += event->point == PROBE_RETURN;
	} else {
		send(m, event,
		     to_ptr && event->point == PROBE_RETURN && event->effect == ENTERS ? 0 : value);
		if (event->point == PROBE_RETURN && call->nr_open-- == 0) {
			m->truth.returns_without_entry++;
			call->nr_open = 0;
		}
		if (event->point == PROBE_ENTRY && probe_schema_has_return(schema))
			call->nr_open++;
		if (event->effect == RELEASES_OLD) {
			call->old_block = p->memory->blocks[call->old].b;
			if (p->memory->blocks[call->old].state == HELD)
				call->release_sequence = m->feed.sequence;
			really_release(m, p->memory, call->old);
		} else if (event->effect == IS_UNKNOWN) {
			m->truth.anomalies[ANOMALY_REALLOC_UNKNOWN]++;
		} else if (event->effect == ENTERS && probe_point_is_return(event->point)) {
			if (call->unlocated)
				m->truth.blocks_unlocated++;
			else
				really_enter(m, p, t, event);
		} else if (event->effect == FAILS) {
			really_fail(m, p, call);
		}
	}
	if (call->old != NO_ADDRESS && call->at == call->vacates_at) {
		p->memory->busy[call->old] = false;
		call->old = NO_ADDRESS;
	}
	if (call->at == call->nr)
		machine_end_call(p, call);
}

/* Planning calls */

static struct event *add_event(struct call *call, const char *function, enum probe_point point,
			       uint64_t caller)
{
	struct event *event = &call->events[call->nr++];

	assert_true(call->nr <= MAX_EVENTS);
	*event = (struct event){.function = function, .point = point, .caller = caller};
	return event;
}

/* Each call of the program has a return address of its own. */
uint64_t machine_new_caller(struct machine *m)
{
	return FEED_PROGRAM + 16 * m->nr_calls++ * 2 + 8;
}

static void set_args(struct event *event, const char *function, const struct call *call,
		     uint64_t old_address)
{
	const struct probe_schema *schema = probe_schema_find(function);

	if (schema->count_arg >= 0) {
		event->args[schema->count_arg] = 1;
		event->args[schema->size_arg] = call->size_bytes;
	} else {
		event->args[schema->size_arg] = call->size_bytes;
	}
	if (schema->effect == HEAP_REALLOC)
		event->args[schema->block_arg] = old_address;
}

/* Sometimes malloc's return has its arguments, and its entry is no event. */
static void merge_malloc(struct machine *m, struct call *call)
{
	int nr = 0;

	if (!m->whole_calls || machine_draw(m, 2))
		return;
	for (int i = 0; i < call->nr; i++) {
		struct event *event = &call->events[i];
		bool is_malloc = strcmp(event->function, "malloc") == 0;

		if (is_malloc && event->point == PROBE_ENTRY) {
			if (i < call->vacates_at)
				call->vacates_at--;
			continue;
		}
		if (is_malloc && event->point == PROBE_RETURN) {
			event->point = PROBE_CALL;
			set_args(event, "malloc", call, 0);
		}
		call->events[nr++] = *event;
	}
	call->nr = nr;
}

/* One call, or the same call seen at its PLT stub, too. */
static void plan_plain(struct machine *m, struct call *call, const char *function,
		       uint64_t old_address, enum effect at_entry, enum effect at_return)
{
	uint64_t caller = machine_new_caller(m);
	bool twice = machine_draw(m, 5) == 0;
	struct event *event;
	int nr;

	if (twice) {
		event = add_event(call, function, PROBE_ENTRY, caller);
		event->probe_address = PLT_STUB;
		event->effect = at_entry;
		set_args(event, function, call, old_address);
	}
	event = add_event(call, function, PROBE_ENTRY, twice ? TRAMPOLINE : caller);
	event->effect = twice ? NOTHING : at_entry;
	set_args(event, function, call, old_address);
	if (at_return == ENTERS && !call->in_place)
		call->vacates_at = call->nr;
	event = add_event(call, function, PROBE_RETURN, caller);
	event->effect = at_return;
	if (twice) {
		event = add_event(call, function, PROBE_RETURN, caller);
		event->effect = at_return;
		event->probe_address = PLT_STUB;
	}
	nr = call->nr;
	merge_malloc(m, call);
	if (call->nr < nr)
		return;
	if (twice || !m->lossy || at_return != ENTERS || machine_draw(m, 20))
		return;
	if (machine_draw(m, 2)) {
		call->events[1].lost = true;
		call->lost_old = call->old;
	} else if (at_entry == NOTHING && !call->in_place) {
		call->events[0].lost = true;
		call->size_known = false;
	}
}

static void plan_allocation(struct machine *m, struct call *call)
{
	static const char *const functions[] = {"malloc", "calloc", "memalign", "aligned_alloc",
						"valloc"};
	const char *function = functions[machine_draw(m, 5)];

	plan_plain(m, call, function, 0, NOTHING, machine_draw(m, 50) ? ENTERS : FAILS);
}

/* realloc(), with malloc() and free() called inside. */
static void plan_nested_realloc(struct machine *m, struct call *call, uint64_t old_address,
				enum effect at_entry)
{
	uint64_t caller = machine_new_caller(m);
	struct event *event = add_event(call, "realloc", PROBE_ENTRY, caller);

	set_args(event, "realloc", call, old_address);
	event->effect = at_entry;
	event = add_event(call, "malloc", PROBE_ENTRY, old_address ? FEED_IN_LIBC : TRAMPOLINE);
	set_args(event, "malloc", call, 0);
	event = add_event(call, "malloc", PROBE_RETURN, old_address ? FEED_IN_LIBC : caller);
	event->effect = ENTERS;
	if (old_address) {
		event = add_event(call, "free", PROBE_ENTRY, FEED_IN_LIBC);
		event->args[0] = old_address;
	}
	event = add_event(call, "realloc", PROBE_RETURN, caller);
	event->effect = ENTERS;
	merge_malloc(m, call);
}

static void plan_realloc_to_zero(struct machine *m, struct call *call, uint64_t old_address)
{
	uint64_t caller = machine_new_caller(m);
	struct event *event = add_event(call, "realloc", PROBE_ENTRY, caller);

	call->size_bytes = 0;
	set_args(event, "realloc", call, old_address);
	event->effect = RELEASES_OLD;
	if (machine_draw(m, 2)) {
		event = add_event(call, "free", PROBE_ENTRY, FEED_IN_LIBC);
		event->args[0] = old_address;
	}
	call->vacates_at = call->nr;
	add_event(call, "realloc", PROBE_RETURN, caller);
}

static void plan_realloc(struct machine *m, struct process *p, struct call *call)
{
	enum effect at_entry = RELEASES_OLD;
	uint64_t old_address;

	switch (machine_draw(m, 12)) {
	case 0: /* of NULL */
		old_address = 0;
		at_entry = NOTHING;
		break;
	case 1: /* of an unknown block */
		old_address = machine_unknown_address(m);
		plan_plain(m, call, "realloc", old_address, IS_UNKNOWN, ENTERS);
		return;
	default:
		call->old =
			machine_pick_address(m, p->memory, machine_draw(m, 15) ? HELD : RELEASED);
		if (call->old == NO_ADDRESS) {
			plan_allocation(m, call);
			return;
		}
		old_address = machine_address_of(call->old);
		p->memory->busy[call->old] = true;
	}
	switch (machine_draw(m, 6)) {
	case 0:
		plan_nested_realloc(m, call, old_address, at_entry);
		break;
	case 1:
		plan_plain(m, call, "realloc", old_address, at_entry, FAILS);
		break;
	case 2:
		if (call->old != NO_ADDRESS) {
			plan_realloc_to_zero(m, call, old_address);
			break;
		}
		/* fall through */
	case 3:
		call->in_place = call->old != NO_ADDRESS;
		/* fall through */
	default:
		plan_plain(m, call, "realloc", old_address, at_entry, ENTERS);
	}
}

static void plan_posix_memalign(struct machine *m, struct call *call)
{
	uint64_t caller = machine_new_caller(m), memptr = 0x7ffe0000 + 8 * machine_draw(m, 100);
	struct event *event = add_event(call, "posix_memalign", PROBE_ENTRY, caller);
	bool fails = machine_draw(m, 10) == 0;

	set_args(event, "posix_memalign", call, 0);
	event->args[0] = memptr;
	if (!fails) {
		event = add_event(call, "posix_memalign", PROBE_STORE, caller);
		event->args[0] = memptr;
		event->effect = ENTERS;
		event->lost = call->unlocated = machine_draw(m, 20) == 0;
	}
	event = add_event(call, "posix_memalign", PROBE_RETURN, caller);
	event->effect = fails ? FAILS : ENTERS;
}

static void do_free(struct machine *m, struct process *p, struct task *t)
{
	uint64_t kind = machine_draw(m, 40);
	int index;

	feed_as(&m->feed, p->pid, t->tid);
	m->feed.caller = machine_new_caller(m);
	m->feed.probe_address = 0;
	if (kind == 0) {
		feed_free(&m->feed, 0);
		m->truth.null_frees++;
	} else if (kind == 1) {
		feed_free(&m->feed, machine_unknown_address(m));
		m->truth.anomalies[ANOMALY_FREE_UNKNOWN]++;
	} else {
		index = machine_pick_address(m, p->memory, kind == 2 ? RELEASED : HELD);
		if (index == NO_ADDRESS)
			return;
		feed_free(&m->feed, machine_address_of(index));
		really_release(m, p->memory, index);
	}
}

void machine_begin_call(struct machine *m, struct process *p, struct task *t)
{
	bool many = count_held(p->memory) > MANY_HELD;
	struct call *call = &t->call;
	uint64_t kind = machine_draw(m, many ? 60 : 100);

	if (kind < 45) {
		do_free(m, p, t);
		return;
	}
	call->size_bytes = machine_draw(m, 5000) + 1;
	call->size_known = true;
	if (kind < 65)
		plan_realloc(m, p, call);
	else if (kind < 70)
		plan_posix_memalign(m, call);
	else
		plan_allocation(m, call);
}
