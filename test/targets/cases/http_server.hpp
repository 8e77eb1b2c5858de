/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The least of an HTTP server, for the programs that scripts/cases records: a thread for each connection of the
 * loopback interface, keep-alive, requests of one packet each.
 */
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace http
{

/* The path of "GET /path HTTP/1.1". */
inline std::string path_of(const std::string &request)
{
	size_t begin = request.find(' ') + 1;

	return request.substr(begin, request.find(' ', begin) - begin);
}

template <typename Handler> void serve_connection(int fd, Handler handle)
{
	char buffer[4096];
	ssize_t len;

	while ((len = read(fd, buffer, sizeof(buffer))) > 0) {
		std::string body = handle(path_of(std::string(buffer, len)));
		std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
				     "\r\n\r\n" + body;

		if (write(fd, answer.data(), answer.size()) < 0)
			break;
	}
	close(fd);
}

/* Prints the port that the kernel chose, then serves until a signal ends the process. */
template <typename Handler> [[noreturn]] void serve(Handler handle)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
	sockaddr_in address{};
	socklen_t len = sizeof(address);

	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, reinterpret_cast<sockaddr *>(&address), len) || listen(listener, 128) ||
	    getsockname(listener, reinterpret_cast<sockaddr *>(&address), &len)) {
		perror("listen");
		exit(1);
	}
	printf("ready %d\n", ntohs(address.sin_port));
	fflush(stdout);
	for (;;) {
		int fd = accept(listener, nullptr, nullptr);

		if (fd < 0)
			continue;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
		std::thread(serve_connection<Handler>, fd, handle).detach();
	}
}

} // namespace http
