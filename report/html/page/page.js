/* SPDX-License-Identifier: GPL-2.0-or-later */
/* page.js: the summary, the filters, and the coordination of the views. */
const PRINTED_CAUSES = 12;
const PRINTED_FRAMES = 12;

let printing = false;
let themeCache = null;

/* CSS variables, for the canvases. */
function readTheme() {
	if (themeCache)
		return themeCache;
	const style = getComputedStyle(document.documentElement);
	themeCache = { font: getComputedStyle(document.body).fontFamily };
	for (const name of ["text", "soft", "line", "faint", "accent", "mark", "flame-text", "flame-light", "flame-own", ...data.verdicts])
		themeCache["--" + name] = style.getPropertyValue("--" + name).trim();
	return themeCache;
}

function setTheme(name) {
	document.documentElement.dataset.theme = name;
	themeCache = null;
}

/* Clears a canvas and sets it to the screen's resolution. Returns its context and width in CSS pixels. */
function prepareCanvas(canvas, height) {
	const scale = printing ? 2 : devicePixelRatio || 1;
	const width = canvas.parentElement.clientWidth;

	canvas.style.height = height + "px";
	canvas.width = Math.round(width * scale);
	canvas.height = Math.round(height * scale);
	const context = canvas.getContext("2d");
	context.setTransform(scale, 0, 0, scale, 0, 0);
	return [context, width];
}

/* Shows lines of text at the pointer, the first in bold; null hides them. */
function showTip(event, lines) {
	const tip = $("tip");

	tip.hidden = !event || !lines;
	if (tip.hidden)
		return;
	tip.replaceChildren(element("b", "", lines[0]), ...lines.slice(1).filter(Boolean).map((line) => element("div", "", line)));
	const { width, height } = tip.getBoundingClientRect();
	tip.style.left = Math.max(Math.min(event.clientX + 14, innerWidth - width - 8), 8) + "px";
	tip.style.top = (event.clientY + 18 + height > innerHeight ? Math.max(event.clientY - height - 12, 8) : event.clientY + 18) + "px";
}

/* --- Summary --- */

function tile(name, value, note, className) {
	return element("div", "tile " + (className || ""), element("div", "name", name),
		element("div", "value", value), element("div", "note", note));
}

/* Of all stacks. */
const sumOf = (column) => column.subarray(0, nrSites).reduce((sum, value) => sum + value, 0);

function makeSummary() {
	const s = data.summary;
	const nrCauses = (verdicts) => data.causes.filter((i) => verdicts.includes(verdictOf(i))).length;
	const [suspects, unclear] = [nrCauses(SUSPECTS), nrCauses(["unclear"])];
	const pids = [...new Set(data.threads.pid)];
	const who = pids.length === 1 ? `${strings[data.threads.comm[0]]} (${pids[0]})` : pids.length ? `${pids.length} processes` : "";
	$("subtitle").textContent = [who, `${timeText(duration)} recorded`, plural(s.events, "event"),
		s.sizes ? `only blocks of ${s.sizes[0]}${s.sizes[1] > s.sizes[0] ? " to " + s.sizes[1] : ""} bytes` : "",
		s.is_narrowed ? "filtered by options" : "",
		s.suppressed_blocks ? plural(s.suppressed_blocks, "block") + " suppressed" : ""].filter(Boolean).join("  ·  ");
	$("origin").replaceChildren(...[s.host ? ["on ", s.host] : null,
		s.begin_ms ? ["from ", new Date(s.begin_ms).toISOString().slice(0, 19).replace("T", " ") + " UTC"] : null,
		s.command ? ["by ", element("code", "", s.command)] : null].filter(Boolean).map((words) => element("span", "", ...words)));
	/* In windows, the first amounts are estimates: of the program, not of the blocks that are listed. */
	const [estimated, sample, observed] = data.held ? ["", "", ""] : ["estimated; ", " of the sample", " in windows"];
	const exited = s.exited_blocks && `, ${s.exited_blocks < s.held_blocks ? countText(s.exited_blocks) : "all"} until their process exited`;
	document.title = `Leak report: ${s.held} held`;
	const hasBytes = s.leaked !== "0 bytes"; /* descriptors have none */
	$("tiles").replaceChildren(
		tile("Probably leaked", hasBytes || !suspects ? s.leaked : plural(suspects, "cause"), estimated +
			(!suspects ? "no suspect cause" : hasBytes ? "by " + plural(suspects, "cause") : "without bytes") +
			(s.unclear ? `, ${s.unclear} unclear` : ""), "first" + (suspects ? "" : unclear ? " unsure" : " clean")),
		...(data.reach.length ? [tile(worstWords, bytesText(sumOf(reachBytes[data.worst])),
			`in ${plural(sumOf(reachBlocks[data.worst]), "block")}${sample}`)] : []),
		tile("Held " + s.moment, s.held, s.estimated ? `in ${s.estimated.replace("+-", "± ")}, from a sample of ${countText(s.held_blocks)}` :
			`in ${plural(s.held_blocks, "block")}${exited || ""}`),
		...(isCertaintyKnown ? [tile("Certain", shareText(s.firm_blocks, s.held_blocks), `${countText(s.firm_blocks)} blocks are firm`)] : []),
		...(data.held ? [tile("Held at most", bytesText(data.held.peak), `${timeText(data.held.peak_us)} after the start`)] : []),
		tile("Allocated" + observed, bytesText(s.allocated_bytes), `in ${plural(s.allocations, "block")}`),
		tile("Freed" + observed, bytesText(s.freed_bytes), `in ${plural(s.frees, "block")}`));
	$("warnings").replaceChildren(...data.warnings.filter(Boolean).map((w) => element("p", "warning",
		typeof w === "string" ? w : `${countText(w[0])} ${w[1]}: ${w[2]}.`)));
	$("footer").textContent = `${data.tool}. This file is self-contained and loads nothing.`;
	$("all-label").hidden = !sites.blocks.subarray(0, nrSites).includes(0);
	$("interval-label").hidden = !data.intervals.length;
	$("interval").append(new Option("what is held " + s.moment, -1), ...data.intervals.map((interval, i) =>
		new Option(`${(interval.bytes > 0 ? "+" : "") + bytesText(interval.bytes)} ${intervalText(interval)}`, i)));
	$("held-part").hidden = !data.held;
	$("memory").textContent = data.memory.trim();
	makeVerdicts();
	makeReach();
}

/* The last interval ends with the report, which may be of an earlier moment. */
const intervalText = ({ from, to, to_us }) => `from ${from ?? "the start"} to ${to ??
	(data.summary.moment === "at the end" ? "the end" : timeText(to_us))}`;

function makeVerdicts() {
	const stacks = data.verdicts.map(() => 0);

	for (let s = 0; s < nrSites; s++) {
		if (sites.verdict[s] < 0)
			continue;
		stacks[sites.verdict[s]]++;
	}
	data.verdicts.forEach((name, i) => {
		if (!stacks[i])
			return;
		/* By the blocks' verdicts: a stack that leaks may also hold young blocks, which do not. */
		const [bytes, words] = data.summary.of_verdicts[i];
		const part = element("div", "fill v-" + name);
		const button = element("button", "verdict-button", badge(name),
			element("span", "soft", `${words}, ${plural(stacks[i], "stack")}`));

		part.style.flexGrow = bytes;
		$("verdict-bar").append(part);
		button.type = "button";
		button.title = VERDICTS[name].words;
		button.dataset.verdict = i;
		button.addEventListener("click", () => {
			selection.verdict = selection.verdict === i ? -1 : i;
			selectionChanged();
		});
		$("verdicts").append(button);
	});
}

/* A button for each word of a scan. */
function makeReach() {
	document.body.classList.toggle("scanned", data.reach.length > 0);
	data.reach.forEach((words, i) => {
		const blocks = sumOf(reachBlocks[i]);
		const button = element("button", "verdict-button", element("span", "badge", words),
			element("span", "soft", `${bytesText(sumOf(reachBytes[i]))}, ${plural(blocks, "block")}`));

		button.type = "button";
		button.title = data.reach_meanings[i];
		button.hidden = !blocks;
		button.addEventListener("click", () => {
			selection.reach = selection.reach === i ? -1 : i;
			selectionChanged();
		});
		$("reach").append(button);
	});
}

/* --- Filters --- */

function chip(words, clear) {
	const button = element("button", "chip", element("span", "", words), "✕");

	button.type = "button";
	button.setAttribute("aria-label", "Clear: " + words);
	button.addEventListener("click", () => {
		clear();
		selectionChanged();
	});
	return button;
}

function clearSearch() {
	[selection.search, selection.searchText, $("search").value] = [null, "", ""];
}

function clearTime() {
	[selection.from, selection.to, selection.interval, charts.from, charts.to] = [0, 0, -1, 0, duration];
}

function clearAll() {
	clearSearch();
	clearTime();
	[selection.verdict, selection.reach, selection.node, selection.site, flame.current] = [-1, -1, -1, -1, -1];
}

function drawFilters() {
	const chips = [];

	if (selection.search)
		chips.push(chip("contains " + selection.searchText, clearSearch));
	if (selection.verdict >= 0)
		chips.push(chip("verdict: " + data.verdicts[selection.verdict], () => selection.verdict = -1));
	if (selection.reach >= 0)
		chips.push(chip("blocks " + data.reach[selection.reach], () => selection.reach = -1));
	if (selection.node >= 0)
		chips.push(chip("through " + functionName(tree.func[selection.node]), () => selection.node = -1));
	if (selection.site >= 0)
		chips.push(chip((stacksOf.has(selection.site) ? "cause: " : "stack: ") + siteName(selection.site), () => selection.site = -1));
	if (selection.to)
		chips.push(chip(`allocated ${timeText(selection.from)} to ${timeText(selection.to)}`, clearTime));
	if (selection.interval >= 0)
		chips.push(chip("changes " + intervalText(data.intervals[selection.interval]), clearTime));
	if (chips.length)
		chips.unshift(element("b", "", "Only"));
	if (chips.length > 2)
		chips.push(chip("clear all", clearAll));
	$("filters").replaceChildren(...chips);
	$("interval").value = selection.interval;
	for (const button of $("verdicts").children)
		button.setAttribute("aria-pressed", +button.dataset.verdict === selection.verdict);
	[...$("reach").children].forEach((button, i) => button.setAttribute("aria-pressed", i === selection.reach));
}

/* Selects a stack, or deselects it. */
function selectSite(site) {
	selection.site = selection.site === site || site === undefined ? -1 : site;
	selectionChanged();
	const row = table.rows.indexOf(selection.site);
	if (row >= 0)
		showRow(row);
	drawTable();
}

function selectionChanged() {
	updateSearch();
	updateNode();
	updateRange();
	updateHeld();
	drawFilters();
	updateTable();
	drawSizes();
	updateFlame();
	drawPoints();
	drawHeld();
}

/* Escape clears the first of these selections that is set. */
function stepBack() {
	if (selection.site >= 0)
		selection.site = -1;
	else if (selection.node >= 0)
		selection.node = tree.parent[selection.node];
	else if (selection.to || selection.interval >= 0)
		clearTime();
	else if (selection.verdict >= 0)
		selection.verdict = -1;
	else if (selection.reach >= 0)
		selection.reach = -1;
	else
		clearSearch();
	selectionChanged();
}

/* --- The page --- */

function redraw() {
	layoutFlame();
	drawFlame();
	drawPoints();
	drawHeld();
	drawTable();
}

function beforePrint() {
	const list = table.rows.slice(0, PRINTED_CAUSES);

	printing = document.documentElement.dataset.theme;
	[charts.point, charts.cursor, flame.current] = [-1, -1, -1];
	setTheme("light");
	$("print").replaceChildren(element("h2", "", list.length < table.rows.length ?
		`The first ${list.length} of ${countText(table.rows.length)} causes` : "Causes"),
	...list.map((site) => element("article", "", siteBadge(site), " ",
		element("b", "", `${siteName(site)}: ${amountText(rangeBytes[site])} in ${plural(rangeBlocks[site], "block")}`),
		stacksOf.has(site) ? element("p", "", `${plural(stacksOf.get(site).length, "stack")}, ${partsText(site)}`) : "",
		frameList(site, PRINTED_FRAMES))));
	redraw();
}

function afterPrint() {
	setTheme(printing);
	printing = false;
	redraw();
}

function makePage() {
	const dark = matchMedia("(prefers-color-scheme: dark)");
	let searching = 0;

	setTheme(dark.matches ? "dark" : "light");
	dark.addEventListener("change", () => {
		setTheme(dark.matches ? "dark" : "light");
		redraw();
	});
	$("theme").addEventListener("click", () => {
		setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
		redraw();
	});
	$("search").addEventListener("input", () => {
		clearTimeout(searching);
		searching = setTimeout(() => {
			const text = $("search").value.trim();
			const search = text ? makeSearch(text) : null;

			$("search").classList.toggle("bad", !!text && !search);
			[selection.search, selection.searchText] = [search, text];
			selectionChanged();
		}, nrSites > 5000 ? 150 : 0);
	});
	$("interval").addEventListener("change", () => {
		const chosen = +$("interval").value;

		clearTime();
		if (chosen >= 0) {
			const { from_us, to_us } = data.intervals[chosen];

			[selection.interval, charts.from, charts.to] = [chosen, from_us, Math.max(to_us, from_us + 2)];
		}
		selectionChanged();
	});
	$("all").addEventListener("change", () => {
		selection.all = $("all").checked;
		updateTable();
	});
	addEventListener("keydown", (event) => {
		if (event.key === "Escape") {
			stepBack();
		} else if (event.key === "/" && document.activeElement !== $("search")) {
			event.preventDefault();
			$("search").focus();
		}
	});
	addEventListener("resize", redraw);
	addEventListener("beforeprint", beforePrint);
	addEventListener("afterprint", afterPrint);
	makeSummary();
	makeTable();
	makeFlame();
	updateSizes();
	makeChart("points", true);
	makeChart("held", false);
	selectionChanged();
	document.documentElement.dataset.ready = "yes"; /* for tests */
}

makePage();
