// SPDX-License-Identifier: GPL-2.0-or-later
// A server that keeps a Buffer of each request, or of one in $LEAK_EVERY. A Buffer's memory is outside the JavaScript heap.
'use strict';
const http = require('http');

const BYTES = 8192;
const EVERY = Number(process.env.LEAK_EVERY) || 1;
const uploads = [];
let requests = 0;

function keepUpload(url) {
	uploads.push(Buffer.alloc(BYTES, url));
}

function answer(url) {
	if (url === '/truth')
		return `${uploads.length} ${uploads.length * BYTES}\n`;
	if (requests++ % EVERY === 0)
		keepUpload(url);
	return 'hello\n';
}

const server = http.createServer((request, response) => response.end(answer(request.url)));
server.listen(0, '127.0.0.1', () => console.log(`ready ${server.address().port}`));
