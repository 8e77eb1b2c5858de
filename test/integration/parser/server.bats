#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A real server whose allocator is not libc's: redis, which Debian links with jemalloc, under load. redis and jemalloc
# both count the memory; leakparse's held bytes must agree with both.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program redis-check-rdb # redis-tools has the server, but not by its name
	require_program redis-benchmark
	ln -s "$(command -v redis-check-rdb)" redis-server
}

teardown() {
	common_teardown
}

ask() {
	redis-cli -s redis.sock "$@" | tr -d '\r'
}

answers() {
	[[ $(ask ping 2>/dev/null) == PONG ]]
}

# memory KEY: prints a value of the server's INFO memory.
memory() {
	sed -n "s/^$1://p" info
}

# The bytes that jemalloc reports as allocated, without its caches for threads.
allocated() {
	awk '/^Allocated:/ { all = $2 } /^tcache_bytes:/ && !cached { cached = $2 }
		END { printf "%d\n", all - cached }' malloc-stats
}

has_one_client() {
	[[ $(ask info clients | sed -n 's/^connected_clients://p') == 1 ]]
}

# The bytes that jemalloc uses for the held blocks: it rounds up to size classes, four for each doubling.
class_bytes() {
	awk '$1 == "leak" {
		size = $2
		if (size <= 8) class = 8
		else if (size <= 128) class = int((size + 15) / 16) * 16
		else {
			for (power = 128; power * 2 < size; power *= 2);
			step = power / 4
			class = int((size + step - 1) / step) * step
		}
		sum += class
	} END { printf "%d\n", sum }' leaks
}

# assert_near WHAT A B PERCENT
assert_near() {
	local difference=$(($2 > $3 ? $2 - $3 : $3 - $2))

	((difference * 100 <= $3 * $4)) || fail "$1: $2, but $3, which is more than $4 % off"
}

@test "server: redis with jemalloc under load, nothing lost, held bytes agree with redis" {
	local server

	"$BIN/leakrec" -z -o perf.data -- ./redis-server --port 0 --unixsocket "$PWD/redis.sock" --save "" \
		>redis.log 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 answers
	server=$(pgrep -P "$LEAKREC_PID" redis-server)
	STARTED_PIDS+=("$server")
	redis-benchmark -s redis.sock -q -n 5000 -r 20000 -d 200 -t set,lpush,rpop,sadd,hset,zadd,mset >/dev/null
	# The server notices a moment later that the clients have gone, and then frees their memory.
	wait_until 60 has_one_client
	ask info memory >info
	ask memory malloc-stats >malloc-stats
	grep -q '^mem_allocator:jemalloc' info
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	kill_now "$server"
	parse
	assert_summary lost 0
	for key in free_unknown double_free still_held realloc_unknown; do
		assert_summary "$key" 0
	done
	(($(summary held_blocks) > 50000))
	# jemalloc counts blocks in thread caches as allocated; redis does not count Lua's blocks.
	assert_near "jemalloc's count" "$(class_bytes)" "$(allocated)" 3
	assert_near "redis's count" "$(class_bytes)" "$(memory used_memory)" 10
}
