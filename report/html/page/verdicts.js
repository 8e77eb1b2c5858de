/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verdicts.js: what verdicts mean, and how they look. Each has a shape besides its colour (report.css), so that
 * they can be told apart without colours. A shape is an SVG path within 6 units around 0.
 */
const VERDICTS = {
	"growth": { shape: "M0-6 6 5H-6Z", words: "Blocks keep accumulating." },
	"overdue": { shape: "M-5-6H5L-5 6H5Z", words: "Held far longer than other blocks of this stack." },
	"burst": { shape: "M0-7 2-2 7 0 2 2 0 7-2 2-7 0-2-2Z", words: "Allocated all at once after the start, and kept." },
	"unclear": { shape: "M-6 0a6 6 0 1 1 12 0a6 6 0 1 1-12 0ZM-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0Z",
		words: "Too few or too recent blocks to tell." },
	"plateau": { shape: "M-5-5H5V5H-5Z", words: "Grew for a while, then stopped: perhaps a cache that is full." },
	"start-up": { shape: "M-5 0a5 5 0 1 1 10 0a5 5 0 1 1-10 0Z", words: "Allocated at the start and kept, perhaps on purpose." },
	"not-yet": { shape: "M-6-5H6L0 6Z", words: "Not older than other blocks of this stack." },
	"at-exit": { shape: "M-6-4-4-6 0-2 4-6 6-4 2 0 6 4 4 6 0 2-4 6-6 4-2 0Z", words: "Held by a process that exited early." },
	"released": { shape: "M-5-1H5V1H-5Z", words: "Holds nothing." },
};
const DOUBTS = {
	"lost": "events were lost, possibly frees",
	"truncated": "the recording was cut off",
	"unpaired": "only half of the allocating call was recorded",
	"unseen-free": "frees of this stack's blocks were not recorded",
	"unobserved": "they may have been freed after their window",
};
const SUSPECTS = ["growth", "overdue", "burst"];

function icon(verdict) {
	const [svg, path] = ["svg", "path"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));

	svg.setAttribute("viewBox", "-7 -7 14 14");
	svg.setAttribute("class", "icon v-" + verdict);
	svg.setAttribute("aria-hidden", "true");
	path.setAttribute("d", VERDICTS[verdict].shape);
	svg.append(path);
	return svg;
}

/* A verdict's icon and name; doubts are a question mark. */
function badge(verdict, doubts = []) {
	const e = element("span", "badge", icon(verdict), verdict + (doubts.length ? " ?" : ""));

	if (doubts.length)
		e.title = "doubtful: " + doubts.join(", ");
	return e;
}

/* Draws shapes of a verdict at points of a canvas, @size pixels high. */
function drawShapes(context, verdict, size, points) {
	const shape = new Path2D(VERDICTS[verdict].shape);
	const transform = context.getTransform();

	for (const [x, y] of points) {
		context.translate(x, y);
		context.scale(size / 12, size / 12);
		context.fill(shape);
		context.setTransform(transform);
	}
}
