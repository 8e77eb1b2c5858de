/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flame.js: the call tree as a flame graph on a canvas: callers above their callees, or, inverted, callers below
 * what they call, from all that asked for memory or from one function. It skips boxes narrower than half a pixel, so
 * the drawing time depends on the number of pixels.
 */
const FRAME_PX = 19;

const flame = {
	modes: [
		{ name: "held bytes", value: (s) => rangeBytes[s], text: bytesText },
		{ name: "held blocks", value: (s) => rangeBlocks[s], text: (n) => plural(n, "block") },
		{ name: "all allocations", value: (s) => sites.allocations[s], text: (n) => plural(n, "allocation") },
		{ name: "all bytes", value: (s) => sites.allocated_bytes[s], text: bytesText },
		/* freed before the thread allocated anything else */
		{ name: "temporaries", value: (s) => sites.temporaries[s], text: (n) => plural(n, "temporary allocation") },
	],
	mode: 0,
	views: [
		{ name: "from the start", tree: () => callTree },
		{ name: "inverted", tree: () => buildCallerTree(-1) },
		{ name: "callers of the selection", tree: () => buildCallerTree(flame.focus) },
	],
	view: 0,
	focus: -1,   /* the function that was selected last */
	zoom: -1,    /* a node of the tree; -1: all */
	current: -1, /* under the pointer, or chosen with the keyboard */
	boxes: [],   /* {id, x, width, depth} of the last layout */
	depth: 1,
	total: 0,
	hues: new Map(), /* by module */
};

function makeFlame() {
	const box = $("flame");
	const canvas = box.querySelector("canvas");

	addChoices("flame-views", flame.views, (i) => {
		flame.view = i;
		tree = flame.views[i].tree();
		[selection.node, flame.current] = [-1, -1];
		selectionChanged();
	});
	addChoices("flame-modes", flame.modes, (i) => {
		flame.mode = i;
		updateFlame();
	});
	box.addEventListener("scroll", drawFlame, { passive: true });
	canvas.addEventListener("mousemove", (event) => {
		const id = boxAt(event);

		if (id !== flame.current) {
			flame.current = id;
			drawFlame();
		}
		showTip(event, id < 0 ? null : boxWords(id));
	});
	canvas.addEventListener("mouseleave", () => showTip(null));
	canvas.addEventListener("click", (event) => zoomFlame(boxAt(event)));
	canvas.addEventListener("keydown", onFlameKey);
}

/* Adds a button for each choice to a group, of which one is always chosen. */
function addChoices(id, choices, choose) {
	choices.forEach((choice, i) => {
		const button = element("button", "", choice.name);

		button.type = "button";
		button.setAttribute("role", "radio");
		button.addEventListener("click", () => choose(i));
		$(id).append(button);
	});
}

function showChoice(id, chosen) {
	[...$(id).children].forEach((button, i) => button.setAttribute("aria-checked", i === chosen));
}

/* Zooms into a box and selects it. The outermost or the zoomed box resets the zoom. */
function zoomFlame(id) {
	if (id === flame.zoom || id >= tree.size)
		id = -1;
	flame.current = id;
	selection.node = id;
	if (id >= 0 && flame.view < 2)
		flame.focus = tree.func[id];
	selectionChanged();
}

function childrenOf(id) {
	const list = [];

	for (let c = tree.child[id < 0 ? tree.size : id]; c >= 0; c = tree.next[c])
		if (tree.value[c] > 0)
			list.push(c);
	return list.sort((a, b) => tree.value[b] - tree.value[a]);
}

function onFlameKey(event) {
	const id = flame.current < 0 || flame.current >= tree.size ? flame.zoom : flame.current;
	const siblings = id < 0 ? [] : childrenOf(tree.parent[id]);
	const place = siblings.indexOf(id);
	let to = id;

	if (event.key === "ArrowDown")
		to = childrenOf(id)[0] ?? id;
	else if (event.key === "ArrowUp")
		to = id < 0 ? id : tree.parent[id];
	else if (event.key === "ArrowLeft")
		to = siblings[place - 1] ?? id;
	else if (event.key === "ArrowRight")
		to = siblings[place + 1] ?? id;
	else if (event.key === "Enter" || event.key === " ")
		zoomFlame(id);
	else
		return;
	event.preventDefault();
	flame.current = event.key.startsWith("Arrow") ? to : flame.current;
	const found = flame.boxes.find((b) => b.id === flame.current);
	const box = $("flame");
	if (found && (found.depth * FRAME_PX < box.scrollTop || (found.depth + 1) * FRAME_PX > box.scrollTop + box.clientHeight))
		box.scrollTop = (found.depth - 3) * FRAME_PX;
	drawFlame();
}

function updateFlame() {
	const mode = flame.modes[flame.mode];

	showChoice("flame-modes", flame.mode);
	showChoice("flame-views", flame.view);
	const callers = $("flame-views").lastElementChild;
	callers.hidden = flame.focus < 0;
	callers.textContent = flame.focus < 0 ? "" : "callers of " + functionName(flame.focus);
	flame.total = sumTree((s) => shown(s, "flame") ? mode.value(s) : 0);
	flame.zoom = selection.node;
	if (flame.zoom >= 0 && !tree.value[flame.zoom])
		flame.zoom = -1; /* the filters of other views have emptied it */
	layoutFlame();
	drawFlame();
}

/* Callers of the zoomed box take the whole width; boxes below it are scaled by value. */
function layoutFlame() {
	const width = $("flame").clientWidth;
	const boxes = [{ id: tree.size, x: 0, width, depth: 0 }];
	const callers = [];
	let deepest = 0;

	for (let id = flame.zoom; id >= 0; id = tree.parent[id])
		callers.unshift(id);
	callers.forEach((id, i) => boxes.push({ id, x: 0, width, depth: i + 1 }));
	const pending = [boxes[boxes.length - 1]];
	while (pending.length) {
		const box = pending.pop();
		const scale = box.width / (tree.value[box.id] || 1);
		let x = box.x;

		deepest = Math.max(deepest, box.depth);
		for (const id of childrenOf(box.id === tree.size ? -1 : box.id)) {
			const child = { id, x, width: tree.value[id] * scale, depth: box.depth + 1 };

			if (child.width < 0.5)
				break; /* the rest is smaller */
			boxes.push(child);
			pending.push(child);
			x += child.width;
		}
	}
	flame.boxes = boxes;
	flame.depth = deepest + 1;
}

function boxName(id) {
	return id >= tree.size ? "all" : functionName(tree.func[id]);
}

function boxWords(id) {
	const value = tree.value[id];
	const text = flame.modes[flame.mode].text(value);

	return [boxName(id), `${text}, ${shareText(value, flame.total)} of the shown total`,
		id >= tree.size ? "" : moduleName(tree.func[id])];
}

/* Each module has a hue; system libraries are grey. */
function boxColour(id, theme) {
	if (id >= tree.size)
		return theme["--faint"];
	const module = moduleName(tree.func[id]);
	let hue = flame.hues.get(module);

	if (hue === undefined) {
		hue = /\/(libc|ld-linux|libpthread)[-.]/.test(module) || !module ? -1 : (flame.hues.size * 47 + 28) % 360;
		flame.hues.set(module, hue);
	}
	/* Slightly different shades tell neighbours apart. */
	const light = parseFloat(theme["--flame-light"]) + (tree.func[id] * 7 % 5 - 2) * 1.6;
	return hue < 0 ? `hsl(215 8% ${light}%)` : `hsl(${hue} ${theme["--flame-own"]} ${light}%)`;
}

function drawFlame() {
	const box = $("flame");
	const theme = readTheme();
	const height = Math.min(flame.depth * FRAME_PX + 2, printing ? 4000 : 460);
	const [context, width] = prepareCanvas(box.querySelector("canvas"), height);
	const top = printing ? 0 : box.scrollTop;

	box.querySelector(".room").style.height = flame.depth * FRAME_PX + 2 + "px";
	context.font = "12px " + theme.font;
	context.textBaseline = "middle";
	for (const { id, x, width: w, depth } of flame.boxes) {
		const y = depth * FRAME_PX - top;

		if (y < -FRAME_PX || y > height)
			continue;
		const found = foundFunctions && id < tree.size && foundFunctions[tree.func[id]];
		const isCaller = depth > 0 && flame.zoom >= 0 && id <= flame.zoom && w === width && id !== flame.zoom;
		context.globalAlpha = isCaller ? 0.55 : 1;
		context.fillStyle = found ? theme["--mark"] : boxColour(id, theme);
		context.fillRect(x, y, Math.max(w - 0.6, 0.4), FRAME_PX - 1);
		context.globalAlpha = 1;
		if (id === flame.current) {
			context.strokeStyle = theme["--text"];
			context.lineWidth = 2;
			context.strokeRect(x + 1, y + 1, Math.max(w - 2.6, 1), FRAME_PX - 3);
		}
		if (w < 28)
			continue;
		context.fillStyle = found ? "#1c2128" : theme["--flame-text"];
		context.fillText(fitText(context, depth ? boxName(id) :
			`all: ${flame.modes[flame.mode].text(flame.total)}`, w - 8), x + 4, y + FRAME_PX / 2);
	}
	$("flame-status").textContent = flame.current < 0 ? (flame.total ? "" : "Nothing to show here.") :
		boxWords(flame.current).filter(Boolean).join("  ·  ");
}

/* The beginning of the text that fits. */
function fitText(context, text, width) {
	const most = Math.floor(width / 5); /* most characters are wider than 5 pixels */

	if (text.length > most)
		text = text.slice(0, most);
	else if (context.measureText(text).width <= width)
		return text;
	const per = context.measureText(text).width / text.length;
	let nr = Math.min(text.length, Math.floor(width / per));
	while (nr > 0 && context.measureText(text.slice(0, nr) + "…").width > width)
		nr--;
	return nr > 1 ? text.slice(0, nr) + "…" : "";
}

function boxAt(event) {
	const depth = Math.floor((event.offsetY + $("flame").scrollTop) / FRAME_PX);
	const box = flame.boxes.find((b) => b.depth === depth && event.offsetX >= b.x && event.offsetX < b.x + b.width);

	return box ? box.id : -1;
}
