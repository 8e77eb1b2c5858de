/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server that allocates twenty records for each request, and forgets one record of a thousand. */
#include "../targets/cases/http_server.hpp"

#include <atomic>
#include <cstring>

namespace
{

constexpr unsigned long kept_every = 1000;
constexpr int records_per_request = 20;

std::atomic<unsigned long> nr_records, nr_lost;

struct Record {
	char text[200];
};

__attribute__((noinline)) Record *make_record(const std::string &path)
{
	auto *record = new Record;

	strncpy(record->text, path.c_str(), sizeof(record->text) - 1);
	return record;
}

/* All others are freed at once. */
__attribute__((noinline)) void forget_record(const std::string &path)
{
	auto *volatile record = make_record(path);

	(void)record;
	nr_lost++;
}

std::string handle_request(const std::string &path)
{
	size_t sum = 0;

	if (path == "/truth")
		return std::to_string(nr_lost) + " " + std::to_string(nr_lost * sizeof(Record)) + "\n";
	for (int i = 0; i < records_per_request; i++) {
		if (++nr_records % kept_every == 0) {
			forget_record(path);
			continue;
		}
		Record *record = make_record(path);

		sum += strlen(record->text);
		delete record;
	}
	return "hello " + std::to_string(sum) + "\n";
}

} // namespace

int main()
{
	http::serve(handle_request);
}
