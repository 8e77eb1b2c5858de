/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server whose leak has 500 stacks: each kind of record has a loader of its own, and whoever loads them
 * forgets one record in 19. Other records, of 500 loaders as well, are cached: as many stay as the cache has room for.
 */
#include "http_server.hpp"

#include <array>
#include <mutex>
#include <utility>

namespace
{

constexpr int nr_kinds = 500;

struct Record {
	unsigned kind;
	char *text;
	size_t bytes;
};

using Loader = Record (*)();

template <int kind> [[gnu::noinline]] Record load_record()
{
	size_t bytes = 40 + kind % 100 * 8;

	return {kind, static_cast<char *>(calloc(1, bytes)), bytes};
}

template <int... kinds>
constexpr std::array<Loader, nr_kinds> make_loaders(std::integer_sequence<int, kinds...>)
{
	return {load_record<kinds>...};
}

constexpr auto loaders = make_loaders(std::make_integer_sequence<int, nr_kinds>());

std::mutex mutex;
std::array<Record, 2000> cache;
unsigned long nr_loaded, lost_blocks, lost_bytes;

[[gnu::noinline]] void render_page()
{
	for (int i = 0; i < 10; i++) {
		Record record = loaders[nr_loaded++ * 7 % nr_kinds]();

		if (nr_loaded % 19) {
			free(record.text);
		} else {
			lost_blocks++;
			lost_bytes += record.bytes;
		}
	}
}

[[gnu::noinline]] void fill_cache()
{
	Record &slot = cache[random() % cache.size()];

	free(slot.text);
	slot = loaders[random() % nr_kinds]();
}

std::string handle_request(const std::string &path)
{
	std::lock_guard<std::mutex> lock(mutex);

	if (path == "/truth")
		return std::to_string(lost_blocks) + " " + std::to_string(lost_bytes) + "\n";
	fill_cache();
	render_page();
	return "hello\n";
}

} // namespace

int main()
{
	http::serve(handle_request);
}
