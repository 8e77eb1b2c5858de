/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/drain/mark_texts.h"

#include "common/clock.h"
#include "common/diag.h"
#include "recorder/processes/memory_reader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_LIMIT_NS 100000000
/* Late reads are forgotten if there was none for so long. */
#define FORGET_NS 600000000000ULL
/* A read that takes as long may never end. The texts of other processes do not wait for it. */
#define LEAVE_NS 1000000000ULL

/* The sample of a mark's perf event (event_attr_want_text()); its size varies. */
struct kernel_sample {
	struct plain_head head;
	struct raw_head raw;
	uint32_t ip_words[2];
	uint32_t address_words[2];
	uint32_t pad;
	uint64_t regs_abi, sp; /* there is no sp without an ABI */
	uint64_t stack_bytes;
	char stack[]; /* and how many bytes of it are valid */
};

_Static_assert(offsetof(struct kernel_sample, regs_abi) % sizeof(uint64_t) == 0, "words follow");

/* Takes the text from @bytes if it ends there, or is long enough to be cut. */
static bool set_text(struct mark_record *record, const char *bytes, size_t nr)
{
	size_t len = strnlen(bytes, nr < BPF_TEXT_BYTES - 1 ? nr : BPF_TEXT_BYTES - 1);

	if (len == nr)
		return false;
	memset(record->text, 0, sizeof(record->text));
	memcpy(record->text, bytes, len);
	record->data_loc = MARK_DATA_LOC(len + 1);
	return true;
}

/*
 * Reads the file's program headers. No library does: a bug in it would give away what leakrec may
 * do while it records. Probes are in native files only.
 */
static void read_segments(struct mark_texts *texts, const struct probe_file *file)
{
	Elf64_Ehdr header;
	size_t size;

	texts->file = file;
	texts->nr_segments = 0;
	if (pread(file->fd, &header, sizeof(header), 0) != sizeof(header) ||
	    header.e_phentsize != sizeof(*texts->segments) || header.e_phnum > MARK_MAX_SEGMENTS)
		return;
	size = header.e_phnum * sizeof(*texts->segments);
	if (pread(file->fd, texts->segments, size, (off_t)header.e_phoff) == (ssize_t)size)
		texts->nr_segments = header.e_phnum;
}

/* The segment with the byte at @offset of the file, which is code; or NULL. */
static const Elf64_Phdr *find_code(const struct mark_texts *texts, uint64_t offset)
{
	for (size_t i = 0; i < texts->nr_segments; i++) {
		const Elf64_Phdr *segment = &texts->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    offset >= segment->p_offset && offset - segment->p_offset < segment->p_filesz)
			return segment;
	}
	return NULL;
}

/* The segment with what the file has at @address, as linked; or NULL. */
static const Elf64_Phdr *find_data(const struct mark_texts *texts, uint64_t address)
{
	for (size_t i = 0; i < texts->nr_segments; i++) {
		const Elf64_Phdr *segment = &texts->segments[i];

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz)
			return segment;
	}
	return NULL;
}

/*
 * Looks for the text in the file, where the program cannot change it. The mark is at @offset there.
 */
static bool find_in_file(struct mark_texts *texts, const struct probe_file *file, uint64_t offset,
			 uint64_t address)
{
	struct mark_record *record = &texts->record;
	const Elf64_Phdr *code, *data;
	char bytes[BPF_TEXT_BYTES];
	uint64_t at, left;
	ssize_t nr;

	if (texts->file != file)
		read_segments(texts, file);
	code = find_code(texts, offset);
	if (!code)
		return false;
	address -= record->head.ip - (code->p_vaddr + (offset - code->p_offset));
	data = find_data(texts, address);
	if (!data || data->p_flags & PF_W)
		return false;
	at = address - data->p_vaddr;
	left = data->p_filesz - at;
	nr = pread(file->fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes),
		   (off_t)(data->p_offset + at));
	return nr > 0 && set_text(record, bytes, (size_t)nr);
}

/* A text to read from a process. */
struct text_request {
	pid_t pid;
	uint64_t address;
	char bytes[BPF_TEXT_BYTES];
	ssize_t nr; /* that were read; or an error */
};

static void read_text(void *argument)
{
	struct text_request *request = argument;
	struct memory_reader reader = {0};

	request->nr = memory_reader_open(&reader, request->pid);
	if (!request->nr)
		request->nr = memory_reader_read(&reader, request->address, request->bytes,
						 sizeof(request->bytes));
	memory_reader_close(&reader);
}

/* Ends the thread. One that is not done keeps the request. */
static void end_read(const struct late_read *read)
{
	if (read_thread_destroy(read->thread))
		free(read->request);
}

/* Ends the threads that were left behind and are done since. */
static void end_done(struct mark_texts *texts)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < texts->nr_left; i++) {
		if (read_thread_wait(texts->left[i].thread, 0))
			end_read(&texts->left[i]);
		else
			texts->left[nr++] = texts->left[i];
	}
	texts->nr_left = nr;
}

/* False while the thread waits for a process, and if that was too often. */
static bool can_read(struct mark_texts *texts)
{
	if (texts->late && !read_thread_wait(texts->thread, 0)) {
		if (clock_now_ns() - texts->late_ns < LEAVE_NS)
			return false;
		texts->left[texts->nr_left++] = (struct late_read){texts->thread, texts->late};
		texts->thread = NULL;
		texts->late = NULL;
	}
	free(texts->late);
	texts->late = NULL;
	return texts->nr_late < MARK_MAX_LATE;
}

static void note_late(struct mark_texts *texts, struct text_request *request)
{
	uint64_t now_ns = clock_now_ns();

	end_done(texts);
	if (now_ns - texts->late_ns > FORGET_NS)
		texts->nr_late = texts->nr_left;
	texts->late = request;
	texts->late_ns = now_ns;
	if (++texts->nr_late == MARK_MAX_LATE)
		diag_warn("the texts of some marks are missing from now on: to read them from "
			  "process %d has taken too long %d times",
			  (int)request->pid, MARK_MAX_LATE);
}

/*
 * Reads the text from the process, which may have changed it meanwhile. If that takes too long
 * (memory_reader.h), nothing is read this way until it is done, or for a second.
 */
static bool find_in_process(struct mark_texts *texts, uint64_t address)
{
	struct text_request *request = can_read(texts) ? calloc(1, sizeof(*request)) : NULL;
	bool found;

	if (!request)
		return false;
	request->pid = (pid_t)texts->record.head.pid;
	request->address = address;
	if (!texts->thread)
		texts->thread = read_thread_create();
	if (texts->thread)
		read_thread_begin(texts->thread, read_text, request);
	if (texts->thread && !read_thread_wait(texts->thread, READ_LIMIT_NS)) {
		note_late(texts, request);
		return false;
	}
	found = texts->thread && request->nr > 0 &&
		set_text(&texts->record, request->bytes, (size_t)request->nr);
	free(request);
	return found;
}

void mark_texts_deinit(struct mark_texts *texts)
{
	for (unsigned int i = 0; i < texts->nr_left; i++)
		end_read(&texts->left[i]);
	end_read(&(const struct late_read){texts->thread, texts->late});
}

static void set_unread(struct mark_record *record, uint64_t address)
{
	char text[BPF_TEXT_BYTES];

	set_text(record, text,
		 (size_t)snprintf(text, sizeof(text), PROBE_UNREAD_TEXT, address) + 1);
}

const struct perf_event_header *mark_texts_complete(struct mark_texts *texts,
						    const struct watched_sites *sites,
						    const struct mark_record *unread)
{
	struct mark_record *record = &texts->record;
	const struct watched_site *site =
		&sites->watched[unread->head.reserved & (BPF_MAX_SITES - 1)];

	*record = *unread;
	record->head.header.misc &= (uint16_t)~MARK_IS_UNREAD;
	record->head.reserved = 0;
	if (!site->file || !find_in_file(texts, site->file, site->offset, unread->address))
		set_unread(record, unread->address);
	return &record->head.header;
}

/* Looks for the text in the top of the stack. */
static bool find_in_stack(struct mark_record *record, const struct kernel_sample *sample,
			  uint64_t address)
{
	size_t size = sample->head.header.size, max = size - sizeof(*sample) - sizeof(uint64_t);
	uint64_t at, valid;

	if (size < sizeof(*sample) + sizeof(valid) ||
	    sample->regs_abi == PERF_SAMPLE_REGS_ABI_NONE || sample->stack_bytes > max)
		return false;
	memcpy(&valid, sample->stack + sample->stack_bytes, sizeof(valid));
	at = address - sample->sp;
	return valid <= sample->stack_bytes && at < valid &&
	       set_text(record, sample->stack + at, valid - at);
}

const struct perf_event_header *mark_texts_convert(struct mark_texts *texts,
						   const struct record_event *event,
						   const struct perf_event_header *header)
{
	const struct kernel_sample *sample = (const void *)header;
	struct mark_record *record = &texts->record;
	uint64_t address;

	if (header->size < offsetof(struct kernel_sample, regs_abi))
		return header;
	*record = (struct mark_record){
		.head = sample->head,
		.raw = sample->raw,
		.ip_words = {sample->ip_words[0], sample->ip_words[1]},
	};
	record->head.header.size = sizeof(*record);
	record->raw.size = sizeof(*record) - offsetof(struct mark_record, raw.type);
	memcpy(&address, sample->address_words, sizeof(address));
	if (!find_in_stack(record, sample, address) &&
	    !find_in_file(texts, event->file, event->mark->offset, address) &&
	    !find_in_process(texts, address))
		set_unread(record, address);
	return &record->head.header;
}
