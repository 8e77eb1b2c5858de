# SPDX-License-Identifier: GPL-2.0-or-later
# A server that calls a module in C for each request.
import http.server
import json
import socketserver

import leaky_extension


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def answer(self):
        if self.path == "/truth":
            return leaky_extension.truth()
        encoded = leaky_extension.encode(self.path)
        return json.dumps({"path": encoded, "numbers": list(range(50))})

    def do_GET(self):
        body = self.answer().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Handler)
print("ready", server.server_address[1], flush=True)
server.serve_forever()
