/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/bpf_syscalls.h"

#include "common/schema/syscall_schema.h"
#include "recorder/events/event_attr.h"
#include "recorder/programs/bpf_sites.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

/* These ids follow those of the probes' events. */
#define FIRST_ID   (BPF_FIRST_ID + (1U << 16))
#define FIRST_TYPE (BPF_FIRST_TYPE + BPF_MAX_TYPES)

static_assert(FIRST_TYPE + 2 * BPF_MAX_SYSCALLS <= UINT16_MAX, "a type has 16 bits");
static_assert(SYSCALL_MAX_NUMBER < BPF_MAX_SYSCALLS, "a row for each");

static void print_field(FILE *out, const char *type, const char *name, int index, bool is_signed)
{
	fprintf(out, "\tfield:%s %s;\toffset:%d;\tsize:8;\tsigned:%d;\n", type, name,
		16 + 8 * index, is_signed);
}

/*
 * Returns the text of tracefs' format file. Entry and return begin alike
 * (syscall_enter_define_fields(), kernel/trace/trace_syscalls.c); the return ends with fields of
 * our own.
 */
static char *format_text(const struct syscall_schema *schema, unsigned int type, bool is_exit)
{
	size_t size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out,
		"name: sys_%s_%s\nID: %u\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n",
		is_exit ? "exit" : "enter", schema->name, type);
	if (is_exit) {
		print_field(out, "long", SYSCALL_FIELD_RET, 0, true);
		print_field(out, "unsigned long", SYSCALL_FIELD_CALLER, 1, false);
		print_field(out, "unsigned long", SYSCALL_FIELD_INSIDE, 2, false);
		if (schema->does == SYSCALL_OPENS_PAIR)
			print_field(out, "unsigned long", SYSCALL_FIELD_PAIR, 3, false);
		fputs("\nprint fmt: \"0x%lx\", REC->" SYSCALL_FIELD_RET "\n", out);
	} else {
		for (int i = 0; i < SYSCALL_MAX_ARGS && schema->arg_names[i]; i++)
			print_field(out, "unsigned long", schema->arg_names[i], i, false);
		fputs("\nprint fmt: \"", out);
		for (int i = 0; i < schema->nr_args; i++)
			fprintf(out, "%s%s: 0x%%08lx", i ? ", " : "", schema->arg_names[i]);
		fputc('"', out);
		for (int i = 0; i < schema->nr_args; i++)
			fprintf(out, ", REC->%s", schema->arg_names[i]);
		fputc('\n', out);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static int describe_event(const struct syscall_schema *schema, bool is_exit,
			  const struct record_config *config, struct record_events *events,
			  struct bpf_event *ret)
{
	unsigned int nr = 2 * (unsigned int)schema->number + is_exit;
	char *name = NULL;

	*ret = (struct bpf_event){
		.id = FIRST_ID + nr,
		.type = FIRST_TYPE + nr,
		.has_stack = event_attr_syscall_has_stack(schema, is_exit, config),
	};
	if (asprintf(&name, SYSCALL_SYSTEM ":sys_%s_%s", is_exit ? "exit" : "enter", schema->name) <
	    0)
		return -ENOMEM;
	return record_events_add_written(events, config, name,
					 format_text(schema, ret->type, is_exit), ret->type,
					 ret->id, ret->has_stack);
}

int bpf_syscalls_describe(struct bpf_syscall *syscalls, const struct record_config *config,
			  struct record_events *events)
{
	size_t nr;
	const struct syscall_schema *table = syscall_schema_table(&nr);
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		const struct syscall_schema *schema = &table[i];
		struct bpf_syscall *row;

		if (!(schema->groups & config->syscalls) || schema->number < 0)
			continue;
		row = &syscalls[schema->number];
		row->pair_arg =
			schema->does == SYSCALL_OPENS_PAIR ? (unsigned int)schema->pair_arg + 1 : 0;
		row->size_arg = schema->size_arg;
		row->replaces_arg = schema->replaces_arg;
		row->replaces_bit = schema->replaces_bit;
		row->is_brk = schema->number == SYS_brk;
		err = describe_event(schema, false, config, events, &row->enter);
		if (!err)
			err = describe_event(schema, true, config, events, &row->exit);
	}
	return err;
}

void bpf_syscalls_mark_transfers(bool ret[static BPF_MAX_SYSCALLS])
{
	static const int numbers[] = {
		SYS_read,     SYS_write,   SYS_pread64,	 SYS_pwrite64, SYS_readv,    SYS_writev,
		SYS_preadv,   SYS_pwritev, SYS_preadv2,	 SYS_pwritev2, SYS_recvmsg,  SYS_sendmsg,
		SYS_recvfrom, SYS_sendto,  SYS_recvmmsg, SYS_sendmmsg, SYS_sendfile, SYS_splice,
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		ret[numbers[i]] = true;
}
