/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server in which one session of ten refers to its connection and the connection to the session, so that
 * neither is ever freed. A registry of clients grows, too, but more slowly.
 */
#include "http_server.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace
{

struct Connection;

struct Session {
	std::shared_ptr<Connection> connection;
	std::vector<std::string> headers;
	std::string body;
};

struct Connection {
	std::shared_ptr<Session> session;
	char buffer[256];
};

std::mutex mutex;
std::map<std::string, std::string> clients;
unsigned long nr_requests, lost_blocks, lost_bytes;

/* libstdc++'s make_shared() puts a pointer and two counts before the object. */
constexpr size_t shared_header = 16;

void count_lost(const Session &session)
{
	lost_blocks += 4 + session.headers.size();
	lost_bytes += 2 * shared_header + sizeof(Session) + sizeof(Connection) +
		      session.headers.capacity() * sizeof(std::string) + session.body.capacity() + 1;
	for (const auto &header : session.headers)
		lost_bytes += header.capacity() + 1;
}

std::shared_ptr<Session> open_session(const std::string &path)
{
	auto session = std::make_shared<Session>();

	session->connection = std::make_shared<Connection>();
	for (int i = 0; i < 20; i++)
		session->headers.push_back("X-Header-" + std::to_string(i) + ": a value of some length");
	session->body.assign(path.size() + 100, '.');
	return session;
}

void remember_client(unsigned long number)
{
	clients["/path/to/client/" + std::to_string(number)] = "last seen a long time ago, by nobody";
}

std::string handle_request(const std::string &path)
{
	auto session = open_session(path);
	std::lock_guard<std::mutex> lock(mutex);

	if (path == "/truth")
		return std::to_string(lost_blocks) + " " + std::to_string(lost_bytes) + "\n";
	nr_requests++;
	if (nr_requests % 10 == 0) {
		session->connection->session = session;
		count_lost(*session);
	}
	if (nr_requests % 50 == 0)
		remember_client(nr_requests);
	return "hello " + session->headers[nr_requests % 20] + "\n";
}

} // namespace

int main()
{
	http::serve(handle_request);
}
