/* SPDX-License-Identifier: GPL-2.0-or-later */
/* charts.js: held blocks by size and time, and held bytes over time, with a common time axis. */
const MARGIN = { left: 84, right: 14, top: 16, bottom: 34 };
const POINTS_PX = 330;
const HELD_PX = 210;
const NEAR_PX = 12; /* the pointer picks points within this distance */

const charts = {
	from: 0, to: duration, /* the time axis */
	drag: null,            /* {canvas, from, to} in pixels */
	point: -1,             /* a leak: under the pointer, or chosen with the keyboard */
	cursor: -1,            /* a time in the lower chart */
	sizes: [1, 2],         /* the size axis, logarithmic */
	drawn: [],             /* points by verdict */
	picks: null,           /* by pixel of the upper chart: the leak whose middle is there; -1: none */
	selected: null,        /* the held series of the selection */
};

const timeToX = (us, width) => MARGIN.left + (us - charts.from) / (charts.to - charts.from) * (width - MARGIN.left - MARGIN.right);
const xToTime = (x, width) => charts.from + (x - MARGIN.left) / (width - MARGIN.left - MARGIN.right) * (charts.to - charts.from);

function sizeToY(bytes) {
	const [min, max] = charts.sizes;

	return POINTS_PX - MARGIN.bottom - (Math.log2(Math.max(bytes, 1)) - min) / (max - min) *
		(POINTS_PX - MARGIN.top - MARGIN.bottom);
}

/* Round steps: 1, 2 or 5 times a power of ten, or parts of an hour. */
function timeStep(span, most) {
	const steps = [60e6, 120e6, 300e6, 600e6, 1800e6, 3600e6, 7200e6, 21600e6, 43200e6, 86400e6, 604800e6];
	const rough = span / most;

	if (rough > 30e6)
		return steps.find((s) => s >= rough) || Math.ceil(rough / 604800e6) * 604800e6;
	const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-3)));
	return power * ([1, 2, 5].find((m) => m * power >= rough) || 10);
}

function axisTime(us, step) {
	if (us === 0)
		return "0";
	if (step >= 60e6)
		return us >= 3600e6 ? (us / 3600e6).toFixed(step % 3600e6 ? 2 : 0) + " h" : us / 60e6 + " min";
	const unit = step >= 1e5 ? [1e6, "s"] : step >= 100 ? [1e3, "ms"] : [1, "µs"];
	const digits = Math.max(0, -Math.floor(Math.log10(step / unit[0]) + 1e-9));
	return (us / unit[0]).toFixed(Math.min(digits, 6)) + " " + unit[1];
}

function drawTimeAxis(context, theme, width, height) {
	const step = timeStep(charts.to - charts.from, Math.max(Math.floor(width / 130), 2));

	context.textAlign = "center";
	context.textBaseline = "top";
	for (let t = Math.ceil(charts.from / step) * step; t <= charts.to; t += step) {
		const x = timeToX(t, width);

		context.fillStyle = theme["--faint"];
		context.fillRect(Math.round(x), MARGIN.top, 1, height - MARGIN.top - MARGIN.bottom);
		context.fillStyle = theme["--soft"];
		context.fillText(axisTime(t, step), Math.min(Math.max(x, MARGIN.left), width - 28), height - MARGIN.bottom + 7);
	}
	drawMarks(context, theme, width, height);
	context.fillStyle = theme["--line"];
	context.fillRect(MARGIN.left, height - MARGIN.bottom, width - MARGIN.left - MARGIN.right, 1);
}

/* Marks of the recording, as lines with names where there is room. */
function drawMarks(context, theme, width, height) {
	let free = MARGIN.left;

	context.textAlign = "left";
	context.fillStyle = theme["--soft"];
	for (const { to, to_us } of data.intervals) {
		const x = Math.round(timeToX(to_us, width));

		if (to === null || to_us < charts.from || to_us > charts.to)
			continue;
		for (let y = MARGIN.top; y < height - MARGIN.bottom; y += 6)
			context.fillRect(x, y, 1, 3);
		const text = fitText(context, to, 110);
		const left = Math.min(x + 4, width - context.measureText(text).width);
		if (left < free)
			continue;
		context.fillText(text, left, MARGIN.top - 13);
		free = left + context.measureText(text).width + 12;
	}
}

function drawAxisLabel(context, theme, y, text) {
	context.fillStyle = theme["--soft"];
	context.textAlign = "right";
	context.textBaseline = "middle";
	context.fillText(text, MARGIN.left - 8, y);
}

function clipPlot(context, width, height) {
	context.save();
	context.beginPath();
	context.rect(MARGIN.left, MARGIN.top - 4, width - MARGIN.left - MARGIN.right + 4, height - MARGIN.top - MARGIN.bottom + 5);
	context.clip();
}

function drawDrag(context, theme, canvas, height) {
	if (!charts.drag || charts.drag.canvas !== canvas)
		return;
	context.globalAlpha = 0.18;
	context.fillStyle = theme["--accent"];
	context.fillRect(charts.drag.from, MARGIN.top, charts.drag.to - charts.drag.from, height - MARGIN.top - MARGIN.bottom);
	context.globalAlpha = 1;
}

/* --- Held blocks by size and time --- */

function updateSizes() {
	let [min, max] = [Infinity, 0];

	for (let i = 0; i < nrLeaks; i++) {
		min = Math.min(min, leaks.size[i]);
		max = Math.max(max, leaks.size[i]);
	}
	charts.sizes = max ? [Math.floor(Math.log2(Math.max(min, 1)) - 0.3), Math.ceil(Math.log2(max) + 0.3)] : [4, 12];
}

const pointShown = (i) => leakPasses(i) && shown(leaks.site[i], "points") && leaks.time_us[i] >= charts.from && leaks.time_us[i] <= charts.to;

function drawPoints() {
	const theme = readTheme();
	const canvas = $("points").firstElementChild;
	const [context, width] = prepareCanvas(canvas, POINTS_PX);
	const [min, max] = charts.sizes;
	const every = Math.ceil((max - min) / 9);

	context.font = "12px " + theme.font;
	for (let exponent = min; exponent <= max; exponent += every) {
		const y = Math.round(sizeToY(2 ** exponent));

		context.fillStyle = theme["--faint"];
		context.fillRect(MARGIN.left, y, width - MARGIN.left - MARGIN.right, 1);
		drawAxisLabel(context, theme, y, bytesText(2 ** exponent));
	}
	drawTimeAxis(context, theme, width, POINTS_PX);
	clipPlot(context, width, POINTS_PX);
	const nr = drawDots(context, theme, width);
	context.restore();
	drawDrag(context, theme, canvas, POINTS_PX);
	drawRing();
	if (!nr) {
		context.fillStyle = theme["--soft"];
		context.textAlign = "center";
		context.fillText(data.summary.held_blocks ? "No block matches the filters." : "Nothing is held.", width / 2, POINTS_PX / 2);
	}
	$("points-count").textContent = selection.site < 0 ? plural(nr, "block") :
		`${countText(rangeBlocks[selection.site])} of ${plural(nr, "block")}`;
	$("points-legend").replaceChildren(...data.verdicts.filter((v, i) => charts.drawn[i]).map((v) => badge(v)));
}

/*
 * Stores in charts.picks the leak to show at each pixel: of the selected stack, else of the worst verdict. So
 * neither drawing nor pointing has more to look at than there are pixels. Returns the number of blocks.
 */
function pickPoints(width) {
	const picks = new Int32Array(width * POINTS_PX).fill(-1);
	const rank = (i) => isSelected(leaks.site[i]) ? -1 : leaks.verdict[i];
	let nr = 0;

	charts.drawn = data.verdicts.map(() => 0);
	for (let i = 0; i < nrLeaks; i++) {
		if (!pointShown(i))
			continue;
		const at = Math.round(sizeToY(leaks.size[i])) * width + Math.floor(timeToX(leaks.time_us[i], width));

		nr += leaks.count[i];
		charts.drawn[leaks.verdict[i]]++;
		if (picks[at] < 0 || rank(i) <= rank(picks[at]))
			picks[at] = i;
	}
	charts.picks = picks;
	return nr;
}

/* Draws blocks by verdict, the least important first. The selected stack stands out. */
function drawDots(context, theme, width) {
	const nr = pickPoints(width);
	const lists = data.verdicts.map(() => []);
	const chosen = [];

	for (const i of charts.picks)
		if (i >= 0)
			(isSelected(leaks.site[i]) ? chosen : lists[leaks.verdict[i]]).push(i);
	const nrDots = lists.reduce((sum, list) => sum + list.length, chosen.length);
	const many = Math.min(Math.max((nrDots - 500) / 20000, 0), 1); /* density instead of points */
	const size = 11 - 6 * many;
	const places = (list) => list.map((i) => [timeToX(leaks.time_us[i], width), sizeToY(leaks.size[i])]);

	for (let v = lists.length - 1; v >= 0; v--) {
		context.fillStyle = theme["--" + data.verdicts[v]];
		context.globalAlpha = selection.site >= 0 ? 0.13 : 0.8 - 0.4 * many;
		drawShapes(context, data.verdicts[v], size, places(lists[v]));
	}
	context.globalAlpha = 1;
	for (const i of chosen) {
		context.fillStyle = theme["--" + data.verdicts[leaks.verdict[i]]];
		drawShapes(context, data.verdicts[leaks.verdict[i]], 12, places([i]));
	}
	return nr;
}

/* Moves the ring around the point under the pointer. It is an element, so that nothing is drawn again. */
function drawRing() {
	const ring = $("point-ring");
	const i = charts.point;

	ring.hidden = i < 0 || !pointShown(i);
	if (ring.hidden)
		return;
	ring.style.left = timeToX(leaks.time_us[i], $("points").clientWidth) + "px";
	ring.style.top = sizeToY(leaks.size[i]) + "px";
}

function pointWords(i) {
	const doubts = doubtsOf(leaks.doubts[i]);

	return [siteName(leaks.site[i]), `${leaks.count[i] > 1 ? leaks.count[i] + " × " : ""}${bytesText(leaks.size[i])}, ` +
		`${timeText(leaks.time_us[i])} after the start, by ${threadName(leaks.thread[i])}`,
		data.verdicts[leaks.verdict[i]] + (doubts.length ? ", doubtful: " + doubts.join(", ") : ", firm") +
			(data.reach.length ? ", " + data.reach[leaks.reach[i]] : ""),
		framesOf(leaks.site[i]).slice(0, 7).map((f) => functionName(frames.function[f])).join(" ‹ ")];
}

function pointAt(event) {
	const width = event.target.clientWidth;
	const [x, y] = [Math.floor(event.offsetX), Math.floor(event.offsetY)];
	let [best, found] = [NEAR_PX * NEAR_PX, -1];

	for (let dy = Math.max(-NEAR_PX, -y); dy <= NEAR_PX && y + dy < POINTS_PX; dy++) {
		for (let dx = Math.max(-NEAR_PX, -x); dx <= NEAR_PX && x + dx < width; dx++) {
			const distance = dx * dx + dy * dy;

			if (distance < best && charts.picks[(y + dy) * width + x + dx] >= 0)
				[best, found] = [distance, charts.picks[(y + dy) * width + x + dx]];
		}
	}
	return found;
}

/* The next shown leak in time, or the previous one. */
function stepPoint(step) {
	let [best, found] = [Infinity, charts.point];
	const now = charts.point < 0 ? -1 : leaks.time_us[charts.point];

	for (let i = 0; i < nrLeaks; i++) {
		const distance = (leaks.time_us[i] - now) * step || (i - charts.point) * step * 1e-6;

		if (distance > 0 && distance < best && pointShown(i))
			[best, found] = [distance, i];
	}
	return found;
}

/* --- Held bytes over time --- */

const staysWords = `still held ${data.summary.moment}` + (leaks.exit_us.some(Boolean) ? " or when their process exited" : "");

/*
 * Computes two series of the selected sites: the bytes allocated so far and never freed, which are exact (those of
 * a process that has exited count until then), and the held bytes, estimated from the sites' histories (blocks by
 * period, times the mean size).
 */
function updateHeld() {
	if (!data.held)
		return;
	const { span_us: bucket, end } = data.held;
	const everything = selection.site < 0 && selection.node < 0 && selection.verdict < 0 &&
		selection.reach < 0 && !selection.search;
	const stays = new Float64Array(end.length + 1);
	const held = new Float64Array(end.length + 1);
	const slotOf = (us) => Math.min(Math.floor(us / bucket), end.length);
	const addLeak = (series, i) => {
		series[slotOf(leaks.time_us[i])] += leaks.size[i] * leaks.count[i];
		if (leaks.exit_us[i])
			series[slotOf(leaks.exit_us[i])] -= leaks.size[i] * leaks.count[i];
	};
	let known = true;

	for (let i = 0; i < nrLeaks; i++)
		if (leakPasses(i) && shown(leaks.site[i], "held"))
			addLeak(stays, i);
	for (let i = 1; i < stays.length; i++)
		stays[i] += stays[i - 1];
	/* What a scan has said, it said of blocks that are held to the end. */
	for (let s = 0; s < nrSites && !everything && selection.reach < 0; s++) {
		const history = data.histories[s];

		if (!shown(s, "held"))
			continue;
		if (history) {
			const mean = sites.allocated_bytes[s] / Math.max(sites.allocations[s], 1);
			/* [length of a period in µs, period, change of blocks, period, ...] */
			for (let i = 1; i < history.length; i += 2)
				held[Math.min(Math.round((history[i] + 0.5) * history[0] / bucket), end.length)] += history[i + 1] * mean;
		} else if (sites.frees[s] === 0) {
			for (let i = firstLeak[s]; i < firstLeak[s + 1]; i++)
				addLeak(held, i);
		} else {
			known = false;
		}
	}
	for (let i = 1; i < held.length; i++)
		held[i] += held[i - 1];
	for (let i = 0; i < held.length; i++)
		held[i] = Math.max(held[i], stays[i]);
	charts.selected = { stays, held: everything ? null : known ? held : undefined, everything };
}

function drawHeld() {
	if (!data.held)
		return;
	const theme = readTheme();
	const canvas = $("held").firstElementChild;
	const [context, width] = prepareCanvas(canvas, HELD_PX);
	const { stays, held, everything } = charts.selected;
	const bucket = data.held.span_us;
	const upper = everything ? data.held.end : held || stays;
	const [first, last] = [Math.max(Math.floor(charts.from / bucket) - 1, 0), Math.ceil(charts.to / bucket) + 1];
	const showsPeak = everything && data.held.peak_us >= charts.from && data.held.peak_us <= charts.to;
	let max = showsPeak ? data.held.peak : 1;

	for (let i = first; i <= Math.min(last, upper.length - 1); i++)
		max = Math.max(max, upper[i], i < stays.length ? stays[i] : 0);
	/* Steps that are round in the displayed unit. */
	const unit = 1024 ** Math.floor(Math.log2(max) / 10);
	const rough = max / unit / 4;
	const power = 10 ** Math.floor(Math.log10(rough));
	const step = Math.max(power * [1, 2, 5, 10].find((m) => m * power >= rough) * unit, 1);
	max = Math.ceil(max * 1.1 / step) * step;
	const toY = (bytes) => HELD_PX - MARGIN.bottom - bytes / max * (HELD_PX - MARGIN.top - MARGIN.bottom);
	context.font = "12px " + theme.font;
	for (let v = 0; v <= max; v += step) {
		context.fillStyle = theme["--faint"];
		context.fillRect(MARGIN.left, Math.round(toY(v)), width - MARGIN.left - MARGIN.right, 1);
		drawAxisLabel(context, theme, toY(v), v ? bytesText(v) : "0");
	}
	drawTimeAxis(context, theme, width, HELD_PX);
	clipPlot(context, width, HELD_PX);
	const line = (series) => {
		context.beginPath();
		context.moveTo(timeToX(first * bucket, width), toY(first ? series[first - 1] : 0));
		for (let i = first; i <= last && i < series.length; i++) {
			if (showsPeak && series === data.held.end && i === Math.floor(data.held.peak_us / bucket))
				context.lineTo(timeToX(data.held.peak_us, width), toY(data.held.peak));
			context.lineTo(timeToX(Math.min((i + 1) * bucket, duration), width), toY(series[i]));
		}
	};
	line(stays);
	context.lineTo(timeToX(Math.min(stays.length * bucket, duration), width), toY(0));
	context.lineTo(timeToX(first * bucket, width), toY(0));
	context.fillStyle = theme["--growth"];
	context.globalAlpha = 0.3;
	context.fill();
	context.globalAlpha = 1;
	const series = everything ? data.held.end : held;
	if (series) {
		line(series);
		context.strokeStyle = theme["--accent"];
		context.lineWidth = 1.6;
		context.lineJoin = "round";
		context.stroke();
	}
	if (showsPeak && data.held.peak) {
		const [x, y] = [timeToX(data.held.peak_us, width), toY(data.held.peak)];

		context.fillStyle = theme["--accent"];
		context.beginPath();
		context.arc(x, y, 3.5, 0, 7);
		context.fill();
		context.fillStyle = theme["--soft"];
		context.textAlign = x > width / 2 ? "right" : "left";
		context.textBaseline = "bottom";
		context.fillText(`peak ${bytesText(data.held.peak)}`, x + (x > width / 2 ? -8 : 8), y - 2);
	}
	if (charts.cursor >= 0) {
		context.fillStyle = theme["--text"];
		context.fillRect(timeToX(charts.cursor, width), MARGIN.top, 1, HELD_PX - MARGIN.top - MARGIN.bottom);
	}
	context.restore();
	drawDrag(context, theme, canvas, HELD_PX);
	drawHeldLegend(everything, series);
}

function drawHeldLegend(everything, series) {
	const keys = [];

	if (series)
		keys.push(["line", everything ? "held" : "held by the selection (estimated)"]);
	keys.push(["area", "of these, " + staysWords]);
	$("held-legend").replaceChildren(...keys.flatMap(([colour, words]) => [element("span", "key " + colour), words]));
	if (charts.cursor < 0) {
		$("held-status").textContent = "";
		return;
	}
	const at = Math.min(Math.floor(charts.cursor / data.held.span_us), data.held.end.length - 1);
	$("held-status").textContent = `${timeText(charts.cursor)} after the start: ` +
		(series ? `${bytesText(series[at] || 0)} held, ` : "") + `${bytesText(charts.selected.stays[at] || 0)} of these ` + staysWords;
}

/* --- Zooming and pointing --- */

function zoomTime(from, to) {
	[from, to] = [Math.max(from, 0), Math.min(to, duration)];
	if (to - from < 2)
		return;
	[charts.from, charts.to] = [from, to];
	const whole = from <= 0 && to >= duration;
	[selection.from, selection.to, selection.interval] = whole ? [0, 0, -1] : [from, to, -1];
	selectionChanged();
}

function onChartKey(event, canvas, isPoints) {
	const span = charts.to - charts.from;
	const middle = (charts.from + charts.to) / 2;

	if (event.key === "+" || event.key === "=")
		zoomTime(middle - span / 4, middle + span / 4);
	else if (event.key === "-")
		zoomTime(middle - span, middle + span);
	else if (event.shiftKey && event.key === "ArrowLeft")
		zoomTime(Math.max(charts.from - span / 4, 0), Math.max(charts.from - span / 4, 0) + span);
	else if (event.shiftKey && event.key === "ArrowRight")
		zoomTime(Math.min(charts.to + span / 4, duration) - span, Math.min(charts.to + span / 4, duration));
	else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && isPoints)
		pointTo(stepPoint(event.key === "ArrowLeft" ? -1 : 1));
	else if (event.key === "ArrowLeft" || event.key === "ArrowRight")
		cursorTo(Math.min(Math.max((charts.cursor < 0 ? charts.from : charts.cursor) +
			(event.key === "ArrowLeft" ? -1 : 1) * span / 100, 0), duration));
	else if (event.key === "Enter" && isPoints && charts.point >= 0)
		selectSite(leaks.site[charts.point]);
	else
		return;
	event.preventDefault();
}

function pointTo(i) {
	if (i === charts.point)
		return;
	charts.point = i;
	drawRing();
	$("points-status").textContent = i < 0 ? "" : pointWords(i).slice(0, 3).join("  ·  ");
}

function cursorTo(us) {
	charts.cursor = us;
	drawHeld();
}

function makeChart(id, isPoints) {
	const canvas = $(id).firstElementChild;
	let down = null;

	canvas.addEventListener("mousedown", (event) => {
		down = event.offsetX;
	});
	canvas.addEventListener("mousemove", (event) => {
		if (down !== null && Math.abs(event.offsetX - down) > 4) {
			charts.drag = { canvas, from: Math.min(down, event.offsetX), to: Math.max(down, event.offsetX) };
			showTip(null);
			(isPoints ? drawPoints : drawHeld)();
		} else if (isPoints) {
			const i = pointAt(event);

			pointTo(i);
			showTip(event, i < 0 ? null : pointWords(i));
		} else {
			cursorTo(Math.min(Math.max(xToTime(event.offsetX, canvas.clientWidth), 0), duration));
		}
	});
	addEventListener("mouseup", (event) => {
		const drag = charts.drag;

		if (drag && drag.canvas === canvas) {
			charts.drag = null;
			zoomTime(xToTime(drag.from, canvas.clientWidth), xToTime(drag.to, canvas.clientWidth));
		} else if (down !== null && isPoints && event.target === canvas) {
			const i = pointAt(event);

			if (i >= 0)
				selectSite(leaks.site[i]);
		}
		down = null;
	});
	canvas.addEventListener("mouseleave", () => {
		showTip(null);
		if (!isPoints)
			cursorTo(-1);
	});
	canvas.addEventListener("dblclick", () => zoomTime(0, duration));
	/* Only with Ctrl or when focused, so that scrolling the page does not zoom by accident. */
	canvas.addEventListener("wheel", (event) => {
		if (!event.ctrlKey && document.activeElement !== canvas)
			return;
		const at = xToTime(event.offsetX, canvas.clientWidth);
		const factor = event.deltaY < 0 ? 0.75 : 1 / 0.75;

		event.preventDefault();
		zoomTime(at - (at - charts.from) * factor, at + (charts.to - at) * factor);
	}, { passive: false });
	canvas.addEventListener("keydown", (event) => onChartKey(event, canvas, isPoints));
}
