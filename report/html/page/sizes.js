/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sizes.js: what is held by the size of blocks: a row of a table for each power of two. */

function drawSizes() {
	const classes = new Map(); /* by logarithm: { blocks, bytes, of: bytes by verdict } */

	for (let i = 0; i < nrLeaks; i++) {
		if (!pointShown(i) || !shown(leaks.site[i], "sizes"))
			continue;
		const power = leaks.size[i] ? Math.floor(Math.log2(leaks.size[i])) : -1;
		let row = classes.get(power);

		if (!row)
			classes.set(power, row = { blocks: 0, bytes: 0, of: data.verdicts.map(() => 0) });
		row.blocks += leaks.count[i];
		row.bytes += leaks.size[i] * leaks.count[i];
		row.of[leaks.verdict[i]] += leaks.size[i] * leaks.count[i];
	}
	const most = Math.max(...[...classes.values()].map((row) => row.bytes), 1);
	const rows = [...classes].sort((a, b) => a[0] - b[0]).map(([power, row]) => {
		const bar = element("div", "size-bar", ...data.verdicts.map((v, i) => {
			const part = element("i", "fill v-" + v);

			part.style.width = 100 * row.of[i] / most + "%";
			return part;
		}).filter((part, i) => row.of[i]));

		return element("tr", "", element("th", "", power < 0 ? "0" : `${bytesText(2 ** power)} –`),
			element("td", "", plural(row.blocks, "block")), element("td", "", bytesText(row.bytes)), element("td", "", bar));
	});
	$("sizes").replaceChildren(...rows);
	for (const head of $("sizes").querySelectorAll("th"))
		head.scope = "row";
}
