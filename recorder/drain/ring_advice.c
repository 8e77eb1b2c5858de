/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/drain/ring_advice.h"

#include "common/quantity.h"

#include <inttypes.h>
#include <stdio.h>

uint32_t ring_advice_pages(const struct ring_losses *losses)
{
	uint64_t lost_bytes, pages = losses->pages;

	if (__builtin_mul_overflow(losses->most_lost, losses->sample_bytes, &lost_bytes))
		return 0;
	while (pages <= losses->most_pages &&
	       (pages - losses->pages) * losses->page_bytes < lost_bytes)
		pages *= 2;
	return pages <= losses->most_pages ? (uint32_t)pages : 0;
}

void ring_advice_text(char *ret, size_t size, const struct ring_losses *losses)
{
	uint32_t pages = ring_advice_pages(losses);
	int len;

	*ret = '\0';
	if (!losses->most_lost)
		return;
	len = snprintf(ret, size,
		       "a ring of %" PRIu32 " page%s had no room for %" PRIu64 " event%s; ",
		       losses->pages, quantity_plural(losses->pages), losses->most_lost,
		       quantity_plural(losses->most_lost));
	if (pages)
		snprintf(ret + len, size - (size_t)len, "-m %" PRIu32 " has room for as many",
			 pages);
	else
		snprintf(ret + len, size - (size_t)len,
			 "that is more than any ring holds: record less, as with --size");
}
