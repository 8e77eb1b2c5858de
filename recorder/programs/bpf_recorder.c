/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/bpf_recorder.h"

#include "common/diag.h"
#include "common/interrupted.h"
#include "common/scope.h"
#include "bpf_recorder.skel.h"
#include "common/proc/process_namespace.h"
#include "recorder/loading/bpf_setup.h"
#include "recorder/processes/apart.h"
#include "recorder/programs/bpf_programs.h"
#include "recorder/programs/bpf_sites.h"
#include "recorder/programs/bpf_syscalls.h"
#include "recorder/programs/uprobe_link.h"

#include <errno.h>
#include <bpf/bpf.h>
#include <limits.h>
#include <linux/bpf.h>
#include <sys/syscall.h>

#define MAX_RING_PAGES 65536 /* the most that the verifier lets programs add to a pointer */

/* The attributes of BPF_LINK_CREATE for BPF_PERF_EVENT. */
struct link_perf_attr {
	uint32_t program_fd, target_fd, attach_type, flags;
	uint64_t cookie;
};

/* Creates the ring of a CPU, if the CPU is present. */
static int create_ring(struct bpf_recorder *recorder, size_t cpu, uint32_t size_bytes)
{
	char path[64];
	_cleanup_close_ int fd = -1;
	uint32_t key = (uint32_t)cpu;
	int err;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%zu", cpu);
	if (access(path, F_OK) < 0)
		return 0;
	fd = bpf_ring_create_map(size_bytes);
	if (fd < 0)
		return fd;
	err = bpf_map_update_elem(bpf_map__fd(recorder->bpf->maps.rings), &key, &fd, BPF_ANY);
	return err ? err
		   : bpf_ring_init(&recorder->rings[cpu], fd, size_bytes,
				   recorder->bpf->rodata->ring_secret);
}

static int ignore_wakeup(void *context, void *data, size_t size)
{
	return 0;
}

static int create_rings(struct bpf_recorder *recorder, const struct record_config *config)
{
	uint32_t size_bytes = config->ring_pages * (uint32_t)getpagesize();
	int err = 0;

	recorder->wakeups = ring_buffer__new(bpf_map__fd(recorder->bpf->maps.wakeups),
					     ignore_wakeup, NULL, NULL);
	recorder->nr_rings = (size_t)libbpf_num_possible_cpus();
	recorder->rings = calloc(recorder->nr_rings, sizeof(*recorder->rings));
	if (!recorder->rings)
		recorder->nr_rings = 0;
	if (!recorder->rings || !recorder->wakeups)
		err = -ENOMEM;
	for (size_t cpu = 0; cpu < recorder->nr_rings && !err; cpu++)
		err = create_ring(recorder, cpu, size_bytes);
	if (err)
		diag_error("cannot create rings of %u pages: %s; give a smaller -m",
			   config->ring_pages, strerror(-err));
	return err;
}

int bpf_recorder_create(const struct record_config *config,
			const char *ret_objections[RECORD_NR_WAYS], struct bpf_recorder **ret)
{
	struct bpf_recorder *recorder;
	int err;

	/* The programs see process ids of the initial PID namespace. */
	if (!process_namespace_is_initial()) {
		for (enum record_by by = RECORD_BY_SESSION; by < RECORD_BY_PERF; by++)
			ret_objections[by] = "leakrec is not in the initial PID namespace";
		return -EOPNOTSUPP;
	}
	if (config->ring_pages > MAX_RING_PAGES) {
		diag_error(
			"cannot create rings of %u pages: recording programs write into at most %u; "
			"give a smaller -m, or --perf-events",
			config->ring_pages, MAX_RING_PAGES);
		return -EINVAL;
	}
	recorder = calloc(1, sizeof(*recorder));
	if (!recorder) {
		diag_error("cannot load the recording programs: out of memory");
		return -ENOMEM;
	}
	bpf_setup_silence_libbpf();
	recorder->in_windows = config->in_windows;
	err = bpf_programs_load(config, &recorder->by, ret_objections, &recorder->bpf);
	if (!err)
		err = create_rings(recorder, config);
	if (!err && bpf_recorder_bpf__attach(recorder->bpf)) {
		ret_objections[recorder->by] = "this kernel cannot attach a program that it takes";
		err = -EOPNOTSUPP;
	}
	if (err) {
		bpf_recorder_destroy(recorder);
		return err;
	}
	*ret = recorder;
	return 0;
}

void bpf_recorder_destroy(struct bpf_recorder *recorder)
{
	if (!recorder)
		return;
	for (size_t i = 0; i < recorder->nr_links; i++)
		close(recorder->links[i].fd);
	free(recorder->links);
	bpf_link__destroy(recorder->counter);
	for (size_t i = 0; i < recorder->nr_rings; i++)
		bpf_ring_deinit(&recorder->rings[i]);
	free(recorder->rings);
	watched_sites_deinit(&recorder->sites);
	ring_buffer__free(recorder->wakeups);
	bpf_recorder_bpf__destroy(recorder->bpf);
	free(recorder);
}

static int add_link(struct bpf_recorder *recorder, int fd, const struct probe_file *file)
{
	struct bpf_file_link *links =
		reallocarray(recorder->links, recorder->nr_links + 1, sizeof(*links));

	if (!links) {
		close(fd);
		return -ENOMEM;
	}
	recorder->links = links;
	links[recorder->nr_links++] = (struct bpf_file_link){fd, file};
	return 0;
}

struct apart_closing *bpf_recorder_begin_unlink(struct bpf_recorder *recorder, size_t nr_kept,
						const struct probe_file *file)
{
	int *fds = calloc(recorder->nr_links + 1, sizeof(*fds));
	size_t nr_left = nr_kept, nr = 0;

	for (size_t i = nr_kept; i < recorder->nr_links; i++) {
		if (file && recorder->links[i].file != file)
			recorder->links[nr_left++] = recorder->links[i];
		else if (fds)
			fds[nr++] = recorder->links[i].fd;
		else
			close(recorder->links[i].fd);
	}
	recorder->nr_links = nr_left;
	return fds ? apart_close_begin(fds, nr) : NULL;
}

void bpf_recorder_unlink(struct bpf_recorder *recorder, size_t nr_kept,
			 const struct probe_file *file)
{
	apart_close_wait(bpf_recorder_begin_unlink(recorder, nr_kept, file));
}

/*
 * The program that linked processes run at the site; NULL if the site's points are watched instead.
 */
static const struct bpf_program *program_at(const struct bpf_recorder *recorder,
					    const struct watched_site *watched)
{
	if (watched->nr_points)
		return NULL;
	if (watched->file->has_resources)
		return recorder->bpf->progs.linked_site;
	if (watched->ret && watched->ret->point == PROBE_RETURN &&
	    recorder->by == RECORD_BY_SESSION)
		return recorder->bpf->progs.linked_call;
	return watched->entry ? recorder->bpf->progs.linked_site : NULL;
}

/* Where in a file a program is linked. */
struct link_sites {
	uint64_t *offsets;
	uint64_t *cookies; /* tell the program where it runs: a site's index, or BPF_AT_* flags */
	size_t nr;
	bool at_return; /* of the functions that begin there */
};

/* Links @program to the sites in @file. Returns 0 or a negative errno, not reported. */
static int create_link(struct bpf_recorder *recorder, const struct probe_file *file, pid_t pid,
		       const struct bpf_program *program, const struct link_sites *at)
{
	struct uprobe_link link = {
		.program_fd = bpf_program__fd(program),
		.is_session = program == recorder->bpf->progs.linked_call,
		.at_return = at->at_return,
		.file_fd = file->fd,
		.pid = pid,
		.offsets = at->offsets,
		.cookies = at->cookies,
		.nr = (uint32_t)at->nr,
	};
	int fd;

	if (at->nr == 0)
		return 0;
	fd = uprobe_link_create_apart(&link);
	return fd < 0 ? fd : add_link(recorder, fd, file);
}

/* True if an exit before the @nth probe of @file is at the same offset. */
static bool is_linked_before(const struct probe_file *file, size_t nth)
{
	for (size_t i = 0; i < nth; i++)
		if (file->probes[i].point == PROBE_EXIT &&
		    file->probes[i].offset == file->probes[nth].offset)
			return true;
	return false;
}

static void add_link_site(struct link_sites *to, uint64_t offset, uint64_t cookie)
{
	to->offsets[to->nr] = offset;
	to->cookies[to->nr++] = cookie;
}

/*
 * Lists the exits of the functions of @file. Functions may share an exit, which is linked once: the
 * notes show whose call ends there (exits.bpf.h).
 */
static void list_exits(const struct probe_file *file, struct link_sites *to)
{
	for (size_t i = 0; i < file->nr_probes; i++)
		if (file->probes[i].point == PROBE_EXIT && !is_linked_before(file, i))
			add_link_site(to, file->probes[i].offset, BPF_AT_EXIT);
}

/* Without sessions: lists the functions of @file whose returns are probed. */
static void list_returns(const struct bpf_recorder *recorder, const struct probe_file *file,
			 struct link_sites *to)
{
	to->at_return = true;
	for (size_t i = 0; i < recorder->sites.nr_watched; i++) {
		const struct watched_site *watched = &recorder->sites.watched[i];

		if (watched->file == file && !watched->nr_points && watched->ret &&
		    watched->ret->point == PROBE_RETURN)
			add_link_site(to, watched->offset, i | BPF_AT_RETURN);
	}
}

/*
 * Lists what @program watches in @file: sites, and with linked_site also exits and points. The
 * kernel enables them in this order: exits must be first, or the end of a call could go unseen.
 */
static void list_sites(const struct bpf_recorder *recorder, const struct probe_file *file,
		       const struct bpf_program *program, struct link_sites *to)
{
	const bool lists_all = program == recorder->bpf->progs.linked_site;

	if (lists_all)
		list_exits(file, to);
	for (size_t i = 0; i < recorder->sites.nr_watched; i++) {
		const struct watched_site *watched = &recorder->sites.watched[i];

		if (watched->file == file && program_at(recorder, watched) == program)
			add_link_site(to, watched->offset, i);
	}
	for (size_t i = 0; lists_all && i < recorder->sites.nr_points; i++) {
		const struct watched_point *point = &recorder->sites.points[i];

		if (point->site->file == file)
			add_link_site(to, watched_point_offset(point), bpf_point_index(i));
	}
}

/* Creates all links of @file, or none. Returns 0 or a negative errno, not reported. */
static int link_file(struct bpf_recorder *recorder, const struct probe_file *file, pid_t pid)
{
	const struct bpf_program *const programs[] = {
		recorder->bpf->progs.linked_site,
		recorder->bpf->progs.linked_call,
	};
	size_t max = file->nr_probes + recorder->sites.nr_watched + recorder->sites.nr_points;
	size_t nr_before = recorder->nr_links;
	_cleanup_free_ uint64_t *offsets = calloc(max, sizeof(*offsets));
	_cleanup_free_ uint64_t *cookies = calloc(max, sizeof(*cookies));
	struct link_sites at = {offsets, cookies, 0, false};
	/*
	 * At each window, only its server could tell whether it is in memory: without CAP_FOWNER,
	 * which is dropped by then, mincore() says so of all files of others.
	 */
	int err = recorder->in_windows && file->is_on_fuse ? -EREMOTEIO
							   : probe_file_check_blocking(file);

	if (!err && (!offsets || !cookies))
		err = -ENOMEM;
	if (!err && recorder->by == RECORD_BY_SINGLE)
		return recorder->open_events(recorder->open_context, file, pid);
	if (err)
		return err;
	/* Returns first: a call whose entry is seen has its return seen, too. */
	if (recorder->by == RECORD_BY_MULTI) {
		list_returns(recorder, file, &at);
		err = create_link(recorder, file, pid, recorder->bpf->progs.linked_site, &at);
	}
	for (size_t i = 0; i < ARRAY_SIZE(programs) && !err; i++) {
		at = (struct link_sites){offsets, cookies, 0, false};
		list_sites(recorder, file, programs[i], &at);
		err = create_link(recorder, file, pid, programs[i], &at);
	}
	if (err)
		bpf_recorder_unlink(recorder, nr_before, NULL);
	return err;
}

int bpf_recorder_attach(const struct bpf_recorder *recorder, int fd, enum probe_point point,
			size_t site)
{
	struct link_perf_attr attr = {
		.program_fd = (uint32_t)bpf_program__fd(
			recorder->by == RECORD_BY_SINGLE ? recorder->bpf->progs.linked_site
							 : recorder->bpf->progs.followed_site),
		.target_fd = (uint32_t)fd,
		.attach_type = BPF_PERF_EVENT,
		.cookie = site | (point == PROBE_EXIT	  ? BPF_AT_EXIT
				  : point == PROBE_RETURN ? BPF_AT_RETURN
							  : 0),
	};
	/*
	 * libbpf's function would load programs to probe the kernel. By now that is not permitted.
	 */
	int link_fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return link_fd < 0 ? -errno : link_fd;
}

static void report_unlinked(const struct probe_file *file, pid_t pid, int err)
{
	if (err == -EINTR && is_interrupted())
		return;
	if (err == -ESRCH && pid)
		diag_error("cannot attach: process %d has ended", pid);
	else if (!pid)
		diag_error("cannot attach to %s: %s", file->display, probe_file_attach_error(-err));
	else
		diag_error("cannot attach to %s in process %d: %s", file->display, pid,
			   probe_file_attach_error(-err));
}

/* Goes to the next watched file; NULL: there is none. The sites of a file follow each other. */
static const struct probe_file *next_file(const struct bpf_recorder *recorder, size_t *site)
{
	const struct probe_file *file = NULL;

	for (; *site < recorder->sites.nr_watched; ++*site) {
		if (file && recorder->sites.watched[*site].file != file)
			break;
		file = recorder->sites.watched[*site].file;
	}
	return file;
}

int bpf_recorder_try_link(struct bpf_recorder *recorder, pid_t pid,
			  const struct probe_file **ret_file)
{
	size_t site = 0;
	int err = 0;

	while (!err && (*ret_file = next_file(recorder, &site)))
		if (!(*ret_file)->is_given_up && !recorder->sites.watched[site - 1].left_out)
			err = link_file(recorder, *ret_file, pid);
	return err;
}

int bpf_recorder_link(struct bpf_recorder *recorder, pid_t pid)
{
	const struct probe_file *file;
	int err = bpf_recorder_try_link(recorder, pid, &file);

	if (err)
		report_unlinked(file, pid, err);
	return err;
}

int bpf_recorder_link_all(struct bpf_recorder *recorder)
{
	const struct probe_file *file, *failed = NULL;
	size_t site = 0, nr_linked = 0;
	int err, first_err = 0;

	while ((file = next_file(recorder, &site))) {
		if (file->is_given_up)
			continue;
		err = link_file(recorder, file, 0);
		if (err == -EINTR && is_interrupted())
			return err;
		if (!err) {
			nr_linked++;
		} else if (recorder->nr_unlinked++ == 0) {
			failed = file;
			first_err = err;
		}
	}
	if (failed && !nr_linked)
		report_unlinked(failed, 0, first_err);
	else if (failed)
		record_group_warn_left_out(failed, recorder->nr_unlinked, first_err);
	return nr_linked ? 0 : first_err;
}

static void warn_of_left_out(size_t nr, const struct probe_file *first)
{
	diag_warn("%s of user %u%s not recorded: a user's files may have %d allocator functions, "
		  "all users' but root's %d, and all files %d",
		  first->display, (unsigned int)first->owner,
		  nr > 1 ? " and other files are" : ", and what may follow, is", BPF_USER_SHARE,
		  BPF_USERS_SHARE, BPF_MAX_WATCHED);
}

int bpf_recorder_add_late(struct bpf_recorder *recorder, const struct probe_file *file)
{
	size_t first = recorder->sites.nr_watched, nr;
	int err;

	if (!bpf_sites_find_file_shared(&recorder->sites, file)) {
		/* Warn once: a process with many files could otherwise fill the screen. */
		if (!recorder->left_out_late)
			warn_of_left_out(1, file);
		recorder->left_out_late = true;
		return -E2BIG;
	}
	nr = bpf_sites_fill_late(&recorder->sites, recorder->bpf->bss->sites, first);
	/* The next window links it. */
	recorder->has_new_file = true;
	err = recorder->in_windows ? 0 : link_file(recorder, file, 0);
	if (err)
		report_unlinked(file, 0, err);
	return err ? err : (int)nr;
}

void bpf_recorder_know_code(struct bpf_recorder *recorder, pid_t pid, uint64_t pages)
{
	const uint32_t tgid = (uint32_t)pid;

	bpf_map_update_elem(bpf_map__fd(recorder->bpf->maps.code_seen), &tgid, &pages, BPF_ANY);
}

void bpf_recorder_know_file(struct bpf_recorder *recorder, const struct bpf_file *file,
			    const struct bpf_file_version *version)
{
	/* If there is no room, a process that maps the file later is stopped needlessly. */
	bpf_map_update_elem(bpf_map__fd(recorder->bpf->maps.files_seen), file, version, BPF_ANY);
}

void bpf_recorder_forget_file(struct bpf_recorder *recorder, const struct bpf_file *file)
{
	bpf_map_delete_elem(bpf_map__fd(recorder->bpf->maps.files_seen), file);
}

int bpf_recorder_plan(struct bpf_recorder *recorder, const struct probe_set *const *sets,
		      size_t nr_sets, const struct record_config *config,
		      struct record_events *events)
{
	const struct probe_file *left_out;
	size_t nr;
	int err = 0;

	for (size_t i = 0; i < nr_sets && !err; i++) {
		/* For named processes, record all functions or fail. */
		if (config->scope == RECORD_PROCESSES) {
			err = bpf_sites_find(&recorder->sites, sets[i]);
			continue;
		}
		nr = bpf_sites_find_shared(&recorder->sites, sets[i], &left_out);
		if (nr)
			warn_of_left_out(nr, left_out);
	}
	recorder->sites.nr_initial = recorder->sites.nr_watched;
	if (err == -E2BIG)
		diag_error("cannot record: the processes use more than %d %s", BPF_MAX_WATCHED,
			   config->at_calls ? "calls of the cause" : "allocator functions");
	if (!err)
		err = bpf_sites_describe(&recorder->sites, recorder->bpf->bss->sites, config,
					 events);
	if (!err)
		err = bpf_syscalls_describe(recorder->bpf->bss->syscalls, config, events);
	if (err == -ENOMEM)
		diag_error("cannot describe the events: out of memory");
	return err;
}

struct target_table *bpf_recorder_target_table(const struct bpf_recorder *recorder)
{
	return &recorder->bpf->bss->shared;
}

unsigned long long *bpf_recorder_stack_bases(const struct bpf_recorder *recorder)
{
	return recorder->bpf->bss->stack_bases;
}

int bpf_recorder_wakeup_fd(const struct bpf_recorder *recorder)
{
	return bpf_map__fd(recorder->bpf->maps.wakeups);
}

void bpf_recorder_consume_wakeups(struct bpf_recorder *recorder)
{
	ring_buffer__consume(recorder->wakeups);
}

void bpf_recorder_rearm(struct bpf_recorder *recorder, size_t cpu)
{
	__atomic_store_n(&recorder->bpf->bss->cpus[cpu & (BACKPRESSURE_MAX_CPUS - 1)].woken, 0,
			 __ATOMIC_SEQ_CST);
}

uint64_t bpf_recorder_consume_lost(struct bpf_recorder *recorder, size_t cpu)
{
	unsigned long long *lost =
		&recorder->bpf->bss->cpus[cpu & (BACKPRESSURE_MAX_CPUS - 1)].lost;

	return __atomic_load_n(lost, __ATOMIC_RELAXED)
		       ? __atomic_exchange_n(lost, 0, __ATOMIC_SEQ_CST)
		       : 0;
}

uint64_t bpf_recorder_nr_skipped(const struct bpf_recorder *recorder, enum skip_cost cost)
{
	return backup_programs_nr_skipped(recorder->bpf->obj, cost) -
	       recorder->nr_skipped_before[cost];
}

void bpf_recorder_note_skipped(struct bpf_recorder *recorder)
{
	if (!recorder->may_have_skipped)
		diag_warn("the kernel may have skipped programs that notice new processes and "
			  "files: calls there may be missing, and are not counted as lost");
	recorder->may_have_skipped = true;
}

void bpf_recorder_start(struct bpf_recorder *recorder)
{
	for (enum skip_cost cost = 0; cost < NR_SKIP_COSTS; cost++)
		recorder->nr_skipped_before[cost] =
			backup_programs_nr_skipped(recorder->bpf->obj, cost);
	__atomic_store_n(&recorder->bpf->bss->recording, true, __ATOMIC_SEQ_CST);
}

void bpf_recorder_stop(struct bpf_recorder *recorder)
{
	__atomic_store_n(&recorder->bpf->bss->recording, false, __ATOMIC_SEQ_CST);
}
