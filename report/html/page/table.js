/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table.js: the table of causes, in which the selected one shows its stacks, and the details of one. Only visible
 * rows exist as elements, so that 100,000 stacks scroll smoothly.
 */
const [ROW_PX, HEAD_PX] = [44, 36]; /* as in report.css */
const [FEWEST_ROWS, MOST_ROWS] = [5, 10]; /* visible */

/* Creates an element with a class and children; strings become text. */
function element(tag, className, ...children) {
	const e = document.createElement(tag);

	if (className)
		e.className = className;
	e.append(...children);
	return e;
}

const siteBadge = (site) => badge(verdictOf(site), sites.verdict[site] >= 0 ? doubtsOf(sites.doubts[site]) : []);

const columns = [
	{ name: "Verdict", left: true, key: (s) => sites.verdict[s] < 0 ? 99 : sites.verdict[s], up: true, cell: siteBadge },
	{ name: "Where", left: true, key: siteName, up: true, cell: whereCell },
	{ name: "Held", changed: "Change", key: (s) => rangeBytes[s], cell: heldCell },
	{ name: "Blocks", key: (s) => rangeBlocks[s], cell: (s) => countText(rangeBlocks[s]) },
	...(data.reach.length ? [{ name: worstWords, title: "by a scan: " + data.reach_meanings[data.worst],
		key: (s) => reachBytes[data.worst][s],
		cell: (s) => reachBytes[data.worst][s] ? bytesText(reachBytes[data.worst][s]) : "–" }] : []),
	{ name: "Growth", key: (s) => sites.rate_day_bytes[s],
		cell: (s) => sites.rate_day_bytes[s] > 0 ? rateText(sites.rate_day_bytes[s]) : "–" },
	...(data.reach.length ? [] : [{ name: "Oldest", key: (s) => sites.oldest_us[s],
		cell: (s) => sites.blocks[s] ? timeText(sites.oldest_us[s]) : "–" }]),
	{ name: "Allocations", key: (s) => sites.allocations[s], cell: (s) => countText(sites.allocations[s]) },
	{ name: "Lifetime", title: "median of freed blocks", key: (s) => sites.median_us[s],
		cell: (s) => sites.median_us[s] >= 0 ? timeText(sites.median_us[s]) : sites.frees[s] ? "not known" : "never freed" },
];

/* sort -1: by verdict */
const table = { rows: [], sort: -1, down: true, current: 0, differences: new Map() };

/* An amount of rangeBytes. */
const amountText = (bytes) => (selection.interval >= 0 && bytes > 0 ? "+" : "") + bytesText(bytes);

function whereCell(site) {
	const [name, place, callers] = siteWords(site);
	const via = table.differences.get(site);
	const stacks = stacksOf.get(site);
	const words = (stacks ? [plural(stacks.length, "stack"), partsText(site), via ? "through " + via : ""] :
		[via ? "via " + via : "", [place, ...callers].filter(Boolean).join(" ‹ ")]).filter(Boolean).join(" · ");
	const cell = element("div", "where", element("b", "", name), element("small", "", words));

	cell.title = name + "\n" + words;
	return cell;
}

function heldCell(site) {
	const meter = element("span", "meter v-" + verdictOf(site), element("i"));

	meter.firstChild.style.width = 100 * Math.abs(rangeBytes[site]) / Math.max(data.summary.held_bytes, 1) + "%";
	return element("div", "", amountText(rangeBytes[site]), meter);
}

function makeTable() {
	columns.forEach((column, i) => {
		const button = element("button", "", column.name);
		const head = element("div", column.left ? "left" : "", button);

		button.type = "button";
		button.title = column.title || "sort by this column";
		head.setAttribute("role", "columnheader");
		button.addEventListener("click", () => {
			/* First the natural direction, then the other one, then the order by verdict. */
			if (table.sort !== i)
				[table.sort, table.down] = [i, !column.up];
			else if (table.down === !column.up)
				table.down = !table.down;
			else
				table.sort = -1;
			updateTable();
		});
		$("table-head").append(head);
	});
	$("table-body").addEventListener("scroll", drawTable, { passive: true });
	$("table-body").addEventListener("keydown", onTableKey);
	$("table-body").addEventListener("click", (event) => {
		const row = event.target.closest(".row");

		if (!row)
			return;
		table.current = +row.dataset.index;
		selectSite(table.rows[table.current]);
	});
}

function onTableKey(event) {
	if (event.target !== $("table-body"))
		return; /* a heading handles it */
	const page = Math.floor($("table-body").clientHeight / ROW_PX) - 1;
	const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };

	if (event.key in steps) {
		table.current = Math.min(Math.max(table.current + steps[event.key], 0), table.rows.length - 1);
		showRow(table.current);
		drawTable();
		drawDetail();
	} else if ((event.key === "Enter" || event.key === " ") && table.rows.length) {
		selectSite(table.rows[table.current]);
	} else {
		return;
	}
	event.preventDefault();
}

function showRow(index) {
	const body = $("table-body");
	const top = index * ROW_PX;

	if (top < body.scrollTop)
		body.scrollTop = top;
	else if (top + ROW_PX > body.scrollTop + body.clientHeight - HEAD_PX)
		body.scrollTop = top + ROW_PX - body.clientHeight + HEAD_PX;
}

/* Whether there is anything to show of a site. */
function isListed(site) {
	if (selection.interval >= 0 || selection.to)
		return rangeBlocks[site] !== 0 || rangeBytes[site] !== 0;
	return selection.all || sites.blocks[site] > 0;
}

/* Sorts causes, or the stacks of one, by the chosen column. */
function sortRows(rows) {
	const key = table.sort >= 0 ? columns[table.sort].key : selection.interval >= 0 ? (s) => rangeBytes[s] : null;
	const keys = new Map(key ? rows.map((s) => [s, key(s)]) : []);
	const sign = table.sort < 0 || table.down ? -1 : 1;

	return key ? rows.sort((a, b) => keys.get(a) < keys.get(b) ? -sign : keys.get(a) > keys.get(b) ? sign : 0) : rows;
}

function updateTable() {
	const isShown = (s) => shown(s, "table") && isListed(s);
	const causes = data.causes.filter(isShown);
	const nrCauses = causes.length;

	/* Then the stacks that hold nothing. */
	for (let s = 0; s < nrSites; s++)
		if (!sites.blocks[s] && isShown(s))
			causes.push(s);
	const selected = selection.site >= 0 ? sites.cause[selection.site] : -1;
	table.rows = sortRows(causes).flatMap((cause) => cause === selected && stacksOf.has(cause) ?
		[cause, ...sortRows(stacksOf.get(cause).filter(isShown))] : [cause]);
	table.current = Math.max(table.rows.indexOf(selection.site), 0);
	[...$("table-head").children].forEach((head, i) => {
		const own = i === table.sort;
		const name = selection.interval >= 0 && columns[i].changed || columns[i].name;

		head.setAttribute("aria-sort", !own ? "none" : table.down ? "descending" : "ascending");
		head.firstChild.textContent = name + (own ? (table.down ? " ↓" : " ↑") : "");
	});
	$("table-room").style.height = table.rows.length * ROW_PX + "px";
	$("table-body").style.height = Math.min(Math.max(table.rows.length, FEWEST_ROWS), MOST_ROWS) * ROW_PX + HEAD_PX + "px";
	$("table").setAttribute("aria-rowcount", table.rows.length);
	const bytes = causes.reduce((sum, s) => sum + rangeBytes[s], 0);
	$("stacks-count").textContent = plural(nrCauses, "cause") + (bytes ? ", " + amountText(bytes) : "") +
		(table.sort < 0 ? ", worst first" : "") +
		(causes.length > nrCauses ? `, and ${plural(causes.length - nrCauses, "stack")} that hold nothing` : "");
	drawTable();
	drawDetail();
}

/* Whether a cause shows its stacks. */
const isOpen = (cause) => selection.site >= 0 && sites.cause[selection.site] === cause;

function drawTable() {
	const body = $("table-body");
	const first = Math.max(Math.floor(body.scrollTop / ROW_PX) - 4, 0);
	const last = Math.min(first + Math.ceil(body.clientHeight / ROW_PX) + 8, table.rows.length);
	const room = $("table-room");
	const rows = [];

	table.differences = differences(table.rows.slice(first, last));
	for (let i = first; i < last; i++) {
		const site = table.rows[i];
		const row = element("div", "row" + (i === table.current ? " current" : "") +
			(stacksOf.has(site) ? isOpen(site) ? " open" : " closed" : sites.cause[site] !== site ? " part" : "") +
			(site === selection.site ? " selected" : ""));

		row.style.top = i * ROW_PX + "px";
		row.dataset.index = i;
		row.setAttribute("role", "row");
		row.setAttribute("aria-rowindex", i + 1);
		row.setAttribute("aria-selected", site === selection.site);
		row.setAttribute("aria-level", sites.cause[site] === site ? 1 : 2);
		if (stacksOf.has(site))
			row.setAttribute("aria-expanded", isOpen(site));
		for (const column of columns) {
			const cell = element("div", column.left ? "left" : "", column.cell(site));

			cell.setAttribute("role", "gridcell");
			row.append(cell);
		}
		rows.push(row);
	}
	room.replaceChildren(...(table.rows.length ? rows : [element("p", "empty", data.summary.nothing ?
		data.summary.nothing + "." : "No cause matches the filters.")]));
}

/* --- Details of one stack --- */

/* With @most, only so many frames from the user's outwards. */
function frameList(site, most) {
	const all = framesOf(site);
	const list = most ? all.slice(sites.user[site], sites.user[site] + most) : all;
	const own = most ? 0 : sites.user[site];
	const out = element("ol", "frames mono");

	list.forEach((frame, i) => {
		const f = frames.function[frame];
		const where = [sourceOf(frame), moduleName(f)].filter(Boolean);
		const item = element("li", i === own ? "own" : i < own ? "outside" : "",
			element("span", "", functionName(f) + (frames.inlined[frame] ? "  (inlined)" : "")),
			element("small", "", where.map(baseName).join("  ·  ")));

		item.title = where.join("\n");
		out.append(item);
	});
	return out;
}

function factsOf(site) {
	const facts = [["Held", `${bytesText(sites.bytes[site])} in ${plural(sites.blocks[site], "block")}`]];
	const rate = sites.rate_day_bytes[site];

	if (sites.blocks[site] > 0 && isCertaintyKnown)
		facts.push(["Certain", `${countText(sites.blocks[site] - sites.doubtful[site])} of ${countText(sites.blocks[site])}`]);
	if (sites.blocks[site] > 0)
		facts.push(["Oldest", timeText(sites.oldest_us[site])]);
	const said = data.reach.map((words, i) => [words, reachBlocks[i][site]]).filter(([, blocks]) => blocks);
	if (said.length)
		facts.push(["Scan", said.map(([words, blocks]) => `${countText(blocks)} ${words}`).join(", ")]);
	if (sites.holder[site] >= 0)
		facts.push([data.worst ? "Pointed to by" : "Held by", data.holders[sites.holder[site]]]);
	if (rate > 0)
		facts.push(["Growth", rateText(rate, sites.rate_day_error[site])]);
	facts.push(["Allocated", `${bytesText(sites.allocated_bytes[site])} in ${plural(sites.allocations[site], "block")}`],
		["Freed", plural(sites.frees[site], "block")]);
	if (data.held)
		facts.push(["Peak", bytesText(sites.peak_bytes[site])]);
	if (sites.median_us[site] >= 0)
		facts.push(["Lifetime", `median ${timeText(sites.median_us[site])}, 99 % within ${timeText(sites.p99_us[site])}`]);
	facts.push(["Allocations", `${timeText(sites.first_us[site])} to ${timeText(sites.last_us[site])} after the start`]);
	if (sites.temporaries[site])
		facts.push(["Temporary", shareText(sites.temporaries[site], sites.allocations[site]) + " of the allocations"]);
	return facts;
}

function partList(cause) {
	const list = element("dl", "");
	const parts = partsOf(cause), others = parts.slice(8);

	for (const [name, bytes] of parts.slice(0, 8))
		list.append(element("dt", "", name), element("dd", "", bytesText(bytes)));
	if (others.length)
		list.append(element("dt", "", `${others.length} more`),
			element("dd", "", bytesText(others.reduce((sum, part) => sum + part[1], 0))));
	return list;
}

function blockList(site) {
	const list = element("table", "blocks");
	const [first, last] = [firstLeak[site], firstLeak[site + 1]];

	list.append(element("tr", "", ...["Address", "Size", "After the start", "Thread"].map((t) => element("th", "", t))));
	for (let i = first; i < Math.min(last, first + 8); i++) {
		list.append(element("tr", "mono", ...["0x" + leaks.address[i].toString(16),
			(leaks.count[i] > 1 ? leaks.count[i] + " × " : "") + countText(leaks.size[i]),
			timeText(leaks.time_us[i]), threadName(leaks.thread[i])].map((t) => element("td", "", t))));
	}
	return list;
}

function drawDetail() {
	const site = selection.site >= 0 ? selection.site : table.rows[table.current];

	if (site === undefined) {
		$("detail").replaceChildren(element("p", "empty", "No stack."));
		return;
	}
	const doubts = sites.verdict[site] >= 0 ? doubtsOf(sites.doubts[site]) : [];
	const facts = element("dl", "");
	for (const [name, value] of factsOf(site))
		facts.append(element("dt", "", name), element("dd", "", value));
	const parts = [siteBadge(site), element("h3", "", siteName(site)), element("p", "soft", VERDICTS[verdictOf(site)].words)];
	if (sites.blocks[site])
		parts.splice(2, 0, element("p", "", factsOf(site)[0][1] +
			(sites.rate_day_bytes[site] > 0 ? `, growing by ${rateText(sites.rate_day_bytes[site])}` : "")));
	if (doubts.length)
		parts.push(element("p", "soft", "Doubtful: " + doubts.map((d) => DOUBTS[d] || d).join("; ") + "."));
	if (stacksOf.has(site))
		parts.push(element("h4", "", `Its ${plural(stacksOf.get(site).length, "stack")} by what they call`), partList(site));
	parts.push(element("h4", "", stacksOf.has(site) ? "What calls all of them" : "Stack, innermost first"), frameList(site),
		element("h4", "", "Statistics"), facts);
	if (firstLeak[site + 1] > firstLeak[site])
		parts.push(element("h4", "", sites.blocks[site] > 8 ? "Its oldest blocks" : "Its blocks"), blockList(site));
	$("detail").replaceChildren(...parts);
	$("detail").scrollTop = 0;
}
