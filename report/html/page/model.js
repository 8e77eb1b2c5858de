/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * model.js: the report's data and the selection. It draws nothing.
 *
 * The data are tables of columns (report/html/html_columns.c writes them): strings <- functions <-
 * frames <- nodes <- sites <- leaks. A node is a frame called from its parent node, so a site's stack is
 * the path from its node to the root. All text comes from the recorded program: it goes into the page as
 * textContent or onto a canvas, never as HTML.
 */
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const { strings, functions, frames, nodes, sites, leaks } = data;
/* A column of equal values is written as one number. Typed arrays take less memory, and less time. */
for (const table of [functions, frames, nodes, sites, leaks, data.threads])
	for (const name in table)
		if (name !== "nr")
			table[name] = typeof table[name] === "number" ? new Float64Array(table.nr).fill(table[name]) :
				Float64Array.from(table[name]);
/* The first nrSites rows of sites are stacks. Then come causes of several stacks, with their sums. */
const [nrSites, nrLeaks] = [data.summary.stacks, leaks.nr];
/* Nothing is certain if the recording is not whole and in order, or was made in windows: then the number is missing. */
const isCertaintyKnown = "firm_blocks" in data.summary;
const duration = Math.max(data.summary.duration_us, 1);
/* In windows, what was held over time is not known: data.held, the histories and the peaks are missing. */
if (data.held && !data.held.end.length) /* no event changed the held amount */
	data.held = { span_us: duration / 128, end: new Array(128).fill(0), peak: 0, peak_us: 0 };

/* --- Words and numbers --- */

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];

function bytesText(bytes) {
	let unit = 0;
	let value = Math.abs(bytes);

	/* What would be rounded to 1024 is 1.00 of the next unit. */
	while (value >= 1023.5 && unit < UNITS.length - 1) {
		value /= 1024;
		unit++;
	}
	const digits = unit === 0 ? (value % 1 && value < 10 ? 1 : 0) : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	const name = unit === 0 && value === 1 ? "byte" : UNITS[unit];
	return (bytes < 0 ? "−" : "") + value.toFixed(digits) + " " + name;
}

const PERIODS = [["s", 86400], ["min", 1440], ["h", 24], ["day", 1]];

/* Growth: bytes a second, or in the shortest time in which a byte comes; with its @error in the same unit. */
function rateText(dayBytes, error) {
	const [name, parts] = PERIODS.find((period) => dayBytes >= period[1]) || PERIODS[3];
	const errorText = error > 0 ? bytesText(error / parts) : "";

	return `${bytesText(dayBytes / parts)}/${name}` + (/[1-9]/.test(errorText) ? ` ± ${errorText}/${name}` : "");
}

const countText = (n) => Math.round(n).toLocaleString("en");
const plural = (n, word) => countText(n) + " " + word + (n === 1 ? "" : "s");

function timeText(us) {
	if (us < 1)
		return "0 s";
	if (us < 999.5)
		return us.toPrecision(3).replace(/\.0+$/, "") + " µs";
	if (us < 999500)
		return (us / 1e3).toPrecision(3) + " ms";
	if (us < 120e6)
		return (us / 1e6).toFixed(us < 10e6 ? 2 : 1) + " s";
	if (us < 7200e6)
		return (us / 60e6).toFixed(1) + " min";
	return us < 172800e6 ? (us / 3600e6).toFixed(1) + " h" : (us / 86400e6).toFixed(1) + " d";
}

function shareText(part, whole) {
	const percent = whole ? 100 * part / whole : 0;

	return percent > 0 && percent < 0.1 ? "<0.1 %" : percent.toFixed(percent < 10 ? 1 : 0) + " %";
}

/* --- Stacks --- */

const functionName = (f) => strings[functions.name[f]];
const moduleName = (f) => strings[functions.module[f]] || "";
const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

function sourceOf(frame) {
	return frames.file[frame] < 0 ? "" : strings[frames.file[frame]] + ":" + frames.line[frame];
}

/* Undoes the differences that report/html/html_columns.c writes. */
const parentOf = Int32Array.from(nodes.parent, (distance, i) => i - distance);
for (let i = 1; i < nrLeaks; i++) {
	leaks.site[i] += leaks.site[i - 1];
	leaks.address[i] += leaks.address[i - 1];
}
for (let s = 0; s < sites.nr; s++) {
	sites.cause[s] = sites.cause[s] ? nrSites + sites.cause[s] - 1 : s; /* a row */
	sites.allocations[s] += sites.blocks[s] + sites.frees[s];
	sites.allocated_bytes[s] += sites.bytes[s];
	if (data.held)
		sites.peak_bytes[s] += sites.bytes[s];
	sites.last_us[s] += sites.first_us[s];
	sites.oldest_us[s] = duration - sites.first_us[s] - sites.oldest_us[s];
}

/* The stacks of each cause that has several. */
const stacksOf = new Map();
for (let s = 0; s < nrSites; s++) {
	if (sites.cause[s] === s)
		continue;
	if (!stacksOf.has(sites.cause[s]))
		stacksOf.set(sites.cause[s], []);
	stacksOf.get(sites.cause[s]).push(s);
}

/*
 * What a scan has said of each site's blocks: data.reach has the words, and is empty without a scan. Each word has
 * the blocks and bytes of each site.
 */
/* "Proven lost", or "No holder found": the word for blocks that nothing leads to. */
const worstWords = data.reach.length ? data.reach[data.worst][0].toUpperCase() + data.reach[data.worst].slice(1) : "";
const reachBlocks = data.reach.map(() => new Float64Array(sites.nr));
const reachBytes = data.reach.map(() => new Float64Array(sites.nr));
for (let i = 0; i < nrLeaks && data.reach.length; i++) {
	for (const site of new Set([leaks.site[i], sites.cause[leaks.site[i]]])) {
		reachBlocks[leaks.reach[i]][site] += leaks.count[i];
		reachBytes[leaks.reach[i]][site] += leaks.count[i] * leaks.size[i];
	}
}

/* The frames of a site, innermost first. */
function framesOf(site) {
	const list = [];

	for (let node = sites.node[site]; node >= 0; node = parentOf[node])
		list.push(nodes.frame[node]);
	return list;
}

/* Named by the user's frame, which sites.user counts in framesOf(). */
function siteName(site) {
	const list = framesOf(site);

	return list.length ? functionName(frames.function[list[sites.user[site]]]) : "(no stack)";
}

/* What a row of the table shows of a site: the user's frame, its place, three callers. */
function siteWords(site) {
	const list = framesOf(site);

	if (!list.length)
		return ["(no stack)", "", []];
	const own = sites.user[site];
	const f = frames.function[list[own]];

	return [functionName(f), baseName(sourceOf(list[own]) || moduleName(f)),
		list.slice(own + 1, own + 4).map((frame) => functionName(frames.function[frame]))];
}

const knownParts = new Map();

/*
 * What a cause of several stacks consists of: [[name, bytes], ...], the largest first. Names are the functions that
 * its function calls; where it calls none in common, lines, as in leakparse --summary.
 */
function partsOf(cause) {
	if (knownParts.has(cause))
		return knownParts.get(cause);
	const top = callNodes[sites.node[cause]];
	const parts = new Map();

	for (const s of stacksOf.get(cause)) {
		const own = ancestor(sites.node[s], sites.user[s]);
		let inner = -1, node = own;

		for (; node >= 0 && callNodes[node] !== top; node = parentOf[node])
			if (nodeFunction(node) !== callTree.func[top])
				inner = node; /* where it calls itself, the innermost call tells more */
		const name = node >= 0 && inner >= 0 ? functionName(nodeFunction(inner)) :
			own < 0 ? "(no stack)" : baseName(sourceOf(nodes.frame[own])) || functionName(nodeFunction(own));
		parts.set(name, (parts.get(name) || 0) + sites.bytes[s]);
	}
	knownParts.set(cause, [...parts].sort((a, b) => b[1] - a[1]));
	return knownParts.get(cause);
}

function ancestor(node, steps) {
	for (; steps > 0 && parentOf[node] >= 0; steps--)
		node = parentOf[node];
	return node;
}

function partsText(cause) {
	const parts = partsOf(cause);
	const shown = parts.slice(0, 3).map(([name, bytes]) => `${name} ${shareText(bytes, sites.bytes[cause])}`);

	return parts.length < 2 ? "" : "via " + shown.join(", ") + (parts.length > 3 ? `, ${parts.length - 3} more` : "");
}

/* What tells frames apart: their functions, else their lines. */
const frameWords = [
	(frame) => functionName(frames.function[frame]),
	(frame) => functionName(frames.function[frame]) + (sourceOf(frame) ? ` (${baseName(sourceOf(frame))})` : ""),
];

/*
 * For those of @list, sites, that siteWords() shows alike: a Map to the frames in which they differ, as
 * report/text/path_details.c finds them: from the user's outwards, then inwards.
 */
function differences(list) {
	const alike = new Map();
	const words = new Map();

	for (const site of list) {
		const key = siteWords(site).join("\n");

		alike.set(key, [...alike.get(key) || [], site]);
	}
	for (const group of alike.values()) {
		if (group.length > 1)
			split(group.map((site) => {
				const stack = framesOf(site);
				const own = sites.user[site];

				return { site, of: stack.slice(own).concat(stack.slice(0, own).reverse()), via: [] };
			}), 0, 0, words);
	}
	return words;
}

/* Parts @group by the words of frame @at, the first one in which there are several. */
function part(group, at, level) {
	for (; group.some(({ of }) => at < of.length); at++) {
		const parts = new Map();

		for (const stack of group) {
			const word = at < stack.of.length ? frameWords[level](stack.of[at]) : "";

			parts.set(word, [...parts.get(word) || [], stack]);
		}
		if (parts.size > 1)
			return [parts, at + 1];
	}
	return [null, at];
}

/* Adds to @words what tells the stacks of @group apart from frame @at on. */
function split(group, at, level, words) {
	const [parts, next] = group.length > 1 ? part(group, at, level) : [null, at];

	for (const [word, stacks] of parts || []) {
		if (word)
			stacks.forEach(({ via }) => via.push(word));
		split(stacks, next, level, words);
	}
	if (parts)
		return;
	if (group.length > 1 && level + 1 < frameWords.length) {
		split(group, 0, level + 1, words);
		return;
	}
	/* The last ones tell it apart from those that have most in common with it. */
	group.forEach(({ site, via }, i) => words.set(site, [...via.slice(-3),
		...(group.length > 1 ? [`${i + 1} of ${group.length} in the same lines`] : [])].join(", ")));
}

const threadName = (t) => strings[data.threads.comm[t]] + " " + data.threads.tid[t];
const verdictOf = (site) => sites.verdict[site] < 0 ? "released" : data.verdicts[sites.verdict[site]];
const doubtsOf = (bits) => data.doubts.filter((name, i) => bits >> i & 1);

/* Leaks are sorted by site: those of site s are [firstLeak[s], firstLeak[s + 1]). */
const firstLeak = new Uint32Array(nrSites + 1);
for (let i = 0; i < nrLeaks; i++)
	firstLeak[leaks.site[i] + 1]++;
for (let s = 0; s < nrSites; s++)
	firstLeak[s + 1] += firstLeak[s];

/* --- The call tree: nodes merged by function, whatever the line --- */

/* Builds a tree of at most @max nodes. @fill adds them, callers first, and returns each stack's last one, or -1. */
function buildTree(max, fill) {
	const parent = new Int32Array(max);
	const func = new Int32Array(max);
	/* A hash table from parent and function to a node: a Map of this size is slow. */
	const slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * max + 2))).fill(-1);
	let size = 0;

	const leaf = fill((up, f) => {
		let slot = Math.imul(up + 1, 0x9e3779b1) + Math.imul(f + 1, 0x7feb352d);

		slot = Math.imul(slot ^ slot >>> 16, 0x846ca68b);
		slot = (slot ^ slot >>> 15) & slots.length - 1;
		while (slots[slot] >= 0 && (parent[slots[slot]] !== up || func[slots[slot]] !== f))
			slot = slot + 1 & slots.length - 1;
		if (slots[slot] < 0) {
			slots[slot] = size;
			parent[size] = up;
			func[size++] = f;
		}
		return slots[slot];
	});
	/* Children are linked lists. The roots are children of -1, stored at index size. */
	const child = new Int32Array(size + 1).fill(-1);
	const next = new Int32Array(size).fill(-1);
	for (let id = size - 1; id >= 0; id--) {
		const up = parent[id] < 0 ? size : parent[id];

		next[id] = child[up];
		child[up] = id;
	}
	return { leaf, parent, func, child, next, size, value: new Float64Array(size + 1) };
}

const nodeFunction = (node) => frames.function[nodes.frame[node]];

/* The node of the call tree for each of nodes. */
const callNodes = new Int32Array(nodes.nr);
const callTree = buildTree(nodes.nr, (add) => {
	for (let i = 0; i < nodes.nr; i++)
		callNodes[i] = add(parentOf[i] < 0 ? -1 : callNodes[parentOf[i]], nodeFunction(i));
	return Int32Array.from(sites.node, (node) => node < 0 ? -1 : callNodes[node]);
});

/* The frames from which a stack's callers are followed: all from @func on, or from the user's frame if it is -1. */
function callersOf(site, func) {
	const list = framesOf(site);
	const first = func < 0 ? sites.user[site] : list.findIndex((frame) => frames.function[frame] === func);

	return first < 0 ? [] : list.slice(first);
}

/* The tree of callers below what they call: of the function @func, or of all that asked for memory (-1). */
function buildCallerTree(func) {
	const paths = Array.from({ length: nrSites }, (_, site) => callersOf(site, func));

	return buildTree(paths.reduce((sum, path) => sum + path.length, 0), (add) => Int32Array.from(paths, (path) =>
		path.reduce((up, frame) => add(up, frames.function[frame]), -1)));
}

let tree = callTree; /* what the flame graph shows */

/* Sums a number for each site up the tree; returns the total. */
function sumTree(valueOf) {
	const { value, parent, size } = tree;

	value.fill(0);
	for (let s = 0; s < nrSites; s++) {
		const v = valueOf(s);

		if (v > 0 && tree.leaf[s] >= 0)
			value[tree.leaf[s]] += v;
	}
	for (let id = size - 1; id >= 0; id--)
		value[parent[id] < 0 ? size : parent[id]] += value[id];
	return value[size];
}

/* --- The selection. Each view shows what the others select; see shown(). --- */

const selection = {
	search: null,  /* a function that tests a string */
	searchText: "",
	verdict: -1,
	reach: -1,     /* index into data.reach: only such blocks */
	node: -1,      /* of the tree: selects stacks through it */
	site: -1,      /* a stack, or a cause of several */
	interval: -1,  /* between marks: shows changes in place of what is held */
	from: 0, to: 0, /* µs since the start; to === 0: any time */
	all: false,    /* include stacks that hold nothing */
};
/* By site: matches search and verdict; goes through the node; held amounts in the range of time, or changes. */
const passes = new Uint8Array(sites.nr);
const through = new Uint8Array(sites.nr);
let rangeBytes = sites.bytes;
let rangeBlocks = sites.blocks;
let foundFunctions = null; /* by function: whether the search matches */

/* Compiles "text" or "/regexp/". Returns null for an invalid regular expression. */
function makeSearch(text) {
	const pattern = /^\/(.+)\/$/.exec(text);

	if (pattern) {
		try {
			const regexp = new RegExp(pattern[1], "i");
			return (s) => regexp.test(s);
		} catch {
			return null;
		}
	}
	const wanted = text.toLowerCase();
	return (s) => s.toLowerCase().includes(wanted);
}

function updateSearch() {
	const search = selection.search;

	foundFunctions = null;
	if (search) {
		const found = strings.map(search);
		foundFunctions = functions.name.map((name, f) => found[name] || found[functions.module[f]]);
		frames.function.forEach((f, i) => foundFunctions[f] ||= found[frames.file[i]]);
		const threads = data.threads.tid.map((tid, t) => search(threadName(t)));
		const nodeFound = new Uint8Array(parentOf.length);
		for (let i = 0; i < nodeFound.length; i++)
			nodeFound[i] = (parentOf[i] >= 0 && nodeFound[parentOf[i]]) ||
				foundFunctions[frames.function[nodes.frame[i]]] ? 1 : 0;
		for (let s = 0; s < nrSites; s++)
			passes[s] = sites.node[s] >= 0 ? nodeFound[sites.node[s]] : 0;
		for (let i = 0; i < nrLeaks; i++)
			if (threads[leaks.thread[i]])
				passes[leaks.site[i]] = 1;
	} else {
		passes.fill(1);
	}
	if (selection.verdict >= 0)
		for (let s = 0; s < nrSites; s++)
			passes[s] &= sites.verdict[s] === selection.verdict ? 1 : 0;
	if (selection.reach >= 0)
		for (let s = 0; s < nrSites; s++)
			passes[s] &= reachBlocks[selection.reach][s] ? 1 : 0;
}

function updateNode() {
	if (selection.node < 0) {
		through.fill(1);
		return;
	}
	const below = new Uint8Array(tree.size);
	for (let id = selection.node; id < tree.size; id++)
		below[id] = id === selection.node || (tree.parent[id] >= 0 && below[tree.parent[id]]) ? 1 : 0;
	for (let s = 0; s < nrSites; s++)
		through[s] = tree.leaf[s] >= 0 ? below[tree.leaf[s]] : 0;
}

/* Whether a scan has said of a block what is selected. */
const leakPasses = (i) => selection.reach < 0 || leaks.reach[i] === selection.reach;

function updateRange() {
	const { from, to, interval, reach } = selection;
	const whole = !to && interval < 0 && reach < 0;

	rangeBytes = whole ? sites.bytes.slice() : new Float64Array(sites.nr);
	rangeBlocks = whole ? sites.blocks.slice() : new Float64Array(sites.nr);
	if (interval >= 0) {
		const { changes } = data.intervals[interval];

		for (let i = 0; i < changes.length; i += 3)
			[rangeBytes[changes[i]], rangeBlocks[changes[i]]] = [changes[i + 1], changes[i + 2]];
	}
	for (let i = 0; i < nrLeaks && interval < 0 && !whole; i++) {
		if (!leakPasses(i) || (to && (leaks.time_us[i] < from || leaks.time_us[i] > to)))
			continue;
		rangeBytes[leaks.site[i]] += leaks.size[i] * leaks.count[i];
		rangeBlocks[leaks.site[i]] += leaks.count[i];
	}
	/* A cause has what is selected of its stacks. */
	for (const [cause, stacks] of stacksOf) {
		const selected = stacks.filter((s) => passes[s] && through[s]);

		passes[cause] = through[cause] = selected.length ? 1 : 0;
		rangeBytes[cause] = selected.reduce((sum, s) => sum + rangeBytes[s], 0);
		rangeBlocks[cause] = selected.reduce((sum, s) => sum + rangeBlocks[s], 0);
	}
}

/* Whether a site is the selected one, or a stack of the selected cause. */
const isSelected = (site) => selection.site >= 0 && (site === selection.site || sites.cause[site] === selection.site);

/* Whether a view shows a site. A selection made in a view does not filter that view. */
function shown(site, view) {
	return passes[site] && (view === "flame" || through[site]) &&
		(view === "table" || view === "points" || selection.site < 0 || isSelected(site));
}
