// SPDX-License-Identifier: GPL-2.0-or-later
// Blocks held by C++ objects.
#include "reach.h"

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <sys/prctl.h>
#include <unordered_map>
#include <vector>

namespace reach
{
struct base {
	virtual ~base() = default;
	long number = 1;
};
struct other {
	virtual ~other() = default;
	long other_number = 2;
};
struct derived : base, other {
	void *child = nullptr;
};
struct left : virtual base {
	long l = 3;
};
struct element {
	~element() { number = 0; }
	long number = 4, more = 5;
};
template <typename T> struct holder {
	virtual ~holder() = default;
	T *value = nullptr;
};
// The type's name has quotes, which are syntax to JSON.
static base *operator""_quoted(unsigned long long number)
{
	struct quoted : base {
		char more[200] = {};
	};
	base *b = new quoted;
	b->number = (long)number;
	return b;
}
} // namespace reach

static reach::base *volatile object;
static reach::other *volatile second_base;
static reach::base *volatile virtual_base;
static reach::element *volatile elements;
static std::vector<void *> vector;
static std::string text;
static std::map<int, void *> map;
static std::unordered_map<int, void *> hash;
static std::list<void *> list;
static std::deque<void *> deque;
static std::shared_ptr<reach::derived> shared;
static std::unique_ptr<reach::derived> unique;
static std::function<void *()> function;
static char *volatile iterator;

static REACH_CASE void containers()
{
	vector.assign(100, nullptr);
	expect("vector-element", "held", vector[50] = block_of(24));
	expect("vector-storage", "held", vector.data());
	text.assign(500, 'x');
	expect("string", "held", text.data());
	expect("map-value", "held", map[7] = block_of(24));
	for (int i = 0; i < 1000; i++)
		map[i + 10] = nullptr;
	expect("map-value-deep", "held", map[700] = block_of(24));
	expect("hash-value", "held", hash[7] = block_of(24));
	list.push_back(block_of(24));
	expect("list-value", "held", list.back());
	for (int i = 0; i < 1000; i++)
		deque.push_back(nullptr);
	expect("deque-value", "held", deque[800] = block_of(24));
}

static REACH_CASE void objects()
{
	object = new reach::derived;
	expect("object", "held", object);
	reach::derived *d = new reach::derived;
	second_base = d;
	expect("second-base", "held", d);
	reach::left *l = new reach::left;
	virtual_base = l;
	expect("virtual-base", "held", l);
	elements = new reach::element[10];
	expect("array-with-cookie", "held", (char *)elements - 8);
	shared = std::make_shared<reach::derived>();
	expect("shared-child", "held", shared->child = block_of(24));
	unique = std::make_unique<reach::derived>();
	expect("unique-child", "held", unique->child = block_of(24));
	void *captured = block_of(24), *more = block_of(24), *most = block_of(24);
	function = [=] { return captured < more ? most : captured; };
	expect("captured", "held", most);
	char *numbers = new char[400];
	memset(numbers, 'x', 400);
	iterator = numbers + 200;
	expect("iterator", "possible", numbers);
}

static REACH_CASE void lost()
{
	using reach::operator""_quoted;
	expect("quoted-type", "lost", 7_quoted);
	auto *h = new reach::holder<reach::derived>;
	h->value = new reach::derived;
	expect("lost-object", "lost", h);
	expect("lost-object-child", "lost-through", h->value);
	auto *v = new std::vector<void *>(100);
	(*v)[3] = block_of(24);
	expect("lost-vector", "lost", v);
	expect("lost-vector-storage", "lost-through", v->data());
	expect("lost-vector-element", "lost-through", (*v)[3]);
	auto *s = new std::string(200, 'x');
	expect("lost-string", "lost", s);
	expect("lost-string-text", "lost-through", s->data());
	auto *m = new std::map<int, int>;
	(*m)[1] = 2;
	(*m)[2] = 3;
	// Its first node points back into the map object.
	expect("lost-map", "cycle", m);
	struct cyclic {
		std::shared_ptr<cyclic> next;
		long number = 0;
	};
	auto a = std::make_shared<cyclic>(), b = std::make_shared<cyclic>();
	a->next = b;
	b->next = a;
	expect("shared-cycle", "cycle", (char *)a.get() - 16);
	expect("shared-cycle-second", "cycle", (char *)b.get() - 16);
}

int main()
{
	prctl(PR_SET_NAME, "\"\\<\x1b\xff\xe2\x80\xa8");
	containers();
	objects();
	lost();
	wait_for_line();
	return 0;
}
