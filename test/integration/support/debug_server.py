#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""debug_server.py DIR [hang | slow]: a debuginfod server for tests.

Serves DIR/BUILD_ID.debug as /buildid/BUILD_ID/debuginfo; with "hang" it takes requests in and never
answers; with "slow" its first file takes 13 s, a byte each second. Prints its port, then each
request's path.
"""
import http.server
import os
import sys
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, flush=True)
        if sys.argv[2:] == ["hang"]:
            threading.Event().wait()
        words = self.path.split("/")
        path = os.path.join(sys.argv[1], words[2] + ".debug") if len(words) == 4 else ""
        if words[1] != "buildid" or words[-1] != "debuginfo" or not os.path.exists(path):
            self.send_error(404)
            return
        with open(path, "rb") as file:
            content = file.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        nr_slow = 13 if sys.argv[2:] == ["slow"] else 0
        sys.argv[2:] = []
        for at in range(nr_slow):
            self.wfile.write(content[at : at + 1])
            time.sleep(1)
        self.wfile.write(content[nr_slow:])

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
