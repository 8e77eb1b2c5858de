/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/process_views.h"

#include "common/partition_point.h"
#include "common/scope.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NS_PER_S 1e9

/* A block's place among all, to be sorted by process. */
struct place {
	pid_t pid;
	uint32_t index;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static struct process_view view_of(const struct process_views_input *input,
				   const struct heap_block *block)
{
	uint64_t time_ns = block->allocated.time_ns;
	struct process_view view = {
		.pid = block->allocated.pid, .start_ns = input->start_ns, .end_ns = input->end_ns};
	struct process_life life = {0};

	if (input->process_life)
		life = input->process_life(input->context, view.pid, time_ns);
	if (life.start_ns > view.start_ns && life.start_ns <= time_ns)
		view.start_ns = life.start_ns;
	if (!life.end_ns || life.end_ns >= input->end_ns)
		return view;
	view.exited = true;
	view.end_ns = life.end_ns > view.start_ns ? life.end_ns : view.start_ns;
	return view;
}

static bool is_same(const struct process_view *a, const struct process_view *b)
{
	return a->pid == b->pid && a->start_ns == b->start_ns && a->end_ns == b->end_ns;
}

int process_views_init(struct process_views *views, const struct process_views_input *input)
{
	_cleanup_free_ struct place *places = calloc(input->nr_held + 1, sizeof(*places));
	bool is_sorted = true;
	size_t max = 0;

	*views = (struct process_views){
		.of = calloc(input->nr_held + 1, sizeof(*views->of)),
		.start_ns = input->start_ns,
	};
	if (!places || !views->of)
		return -ENOMEM;
	for (size_t i = 0; i < input->nr_held; i++) {
		places[i] = (struct place){input->held[i].allocated.pid, (uint32_t)i};
		is_sorted &= i == 0 || places[i - 1].pid <= places[i].pid;
	}
	if (!is_sorted)
		qsort(places, input->nr_held, sizeof(*places), compare_places);
	for (size_t i = 0; i < input->nr_held; i++) {
		struct process_view view = view_of(input, &input->held[places[i].index]);

		if (!views->nr || !is_same(&view, &views->list[views->nr - 1])) {
			if (views->nr == max) {
				struct process_view *list;

				max = max ? 2 * max : 16;
				list = reallocarray(views->list, max, sizeof(*list));
				if (!list)
					return -ENOMEM;
				views->list = list;
			}
			views->list[views->nr++] = view;
		}
		views->of[places[i].index] = (uint32_t)(views->nr - 1);
	}
	views->met = calloc(views->nr + 1, sizeof(*views->met));
	views->lives_s = calloc(views->nr + 1, sizeof(*views->lives_s));
	views->sums_s = calloc(views->nr + 1, sizeof(*views->sums_s));
	return views->met && views->lives_s && views->sums_s ? 0 : -ENOMEM;
}

void process_views_deinit(struct process_views *views)
{
	free(views->list);
	free(views->of);
	free(views->met);
	free(views->lives_s);
	free(views->sums_s);
}

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double process_views_life_s(const struct process_views *views, size_t index, double min_age_ns,
			    double until_s)
{
	const struct process_view *view = &views->list[index];
	double end_s = ((double)(view->end_ns - views->start_ns) - min_age_ns) / NS_PER_S;

	return fmin(end_s, until_s) - (double)(view->start_ns - views->start_ns) / NS_PER_S;
}

void process_views_clock(struct process_views *views, const uint32_t *order, size_t nr,
			 size_t nr_left, double min_age_ns, double until_s,
			 struct process_clock *ret)
{
	*ret = (struct process_clock){
		.lives_s = views->lives_s, .sums_s = views->sums_s, .began_together = true};
	views->nr_calls++;
	for (size_t i = 0; i < nr + nr_left; i++) {
		uint32_t index = views->of[order[i]];
		const struct process_view *view = &views->list[index];
		double life_s = process_views_life_s(views, index, min_age_ns, until_s);

		if (views->met[index] == views->nr_calls)
			continue;
		views->met[index] = views->nr_calls;
		ret->began_together &= view->start_ns == views->list[views->of[order[0]]].start_ns;
		if (life_s <= 0)
			continue;
		views->lives_s[ret->nr++] = life_s;
		ret->nr_present += i < nr;
	}
	qsort(views->lives_s, ret->nr, sizeof(*views->lives_s), compare_numbers);
	for (size_t i = 0; i < ret->nr; i++)
		views->sums_s[i + 1] = views->sums_s[i] + views->lives_s[i];
}

double process_clock_at(const struct process_clock *clock, double age_s)
{
	/* The first life that is longer. */
	size_t first = partition_point(clock->nr, i, clock->lives_s[i] <= age_s);

	return clock->nr == 0 ? 0
			      : (clock->sums_s[first] + age_s * (double)(clock->nr - first)) /
					(double)clock->nr;
}
