/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names as demanglers, perf and maps of generated code write them; most are of real programs. */
#include "common/schema/wrapper_names.h"

#include "common/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *const *names, size_t nr, enum wrapper_kind kind)
{
	for (size_t i = 0; i < nr; i++)
		if (wrapper_names_find(names[i], "/usr/bin/program") != kind)
			fail_msg("\"%s\" is not of kind %d", names[i], kind);
}

#define EXPECT(kind, ...)                                                                          \
	do {                                                                                       \
		static const char *const names[] = {__VA_ARGS__};                                  \
                                                                                                   \
		expect(names, ARRAY_SIZE(names), kind);                                            \
	} while (0)

static void c_names_are_whole(void **state)
{
	EXPECT(WRAPPER_ANYWHERE, "malloc", "posix_memalign", "strdup", "__libc_calloc",
	       "__GI___mmap64", "mmap64", "__sbrk", "malloc(unsigned long)", "zmalloc.part.0",
	       "palloc0.constprop.0.isra.0", "palloc [clone .cold]");
	EXPECT(WRAPPER_NONE, "main", "my_malloc_test", "standard", "allocate", "", "demalloc",
	       "xmallocate", "_zmalloc", "x", "xtry", "pallocate", "palloc.go", "apr_palloc_",
	       "malloc.Init", "stdlib::f", "corelib", ".", "(", "<", "operator", " ", "\xff");
}

static void libraries_of_c(void **state)
{
	EXPECT(WRAPPER_ANYWHERE, "xstrdup", "xmalloc", "xzalloc", "xreallocarray", "x2nrealloc",
	       "CRYPTO_zalloc", "kmalloc64", "lrealloc");
	/* GLib */
	EXPECT(WRAPPER_ANYWHERE, "g_malloc0", "g_malloc0_n", "g_slice_alloc0", "g_slice_copy",
	       "g_strdup_vprintf", "g_strndup", "g_memdup2", "g_ptr_array_maybe_expand");
	EXPECT(WRAPPER_NONE, "g_object_new", "g_array_new", "g_hash_table_insert", "g_list_append",
	       "g_main_loop_run");
	/* APR, nginx */
	EXPECT(WRAPPER_ANYWHERE, "apr_palloc", "apr_pcalloc", "apr_pool_create_ex", "apr_pstrdup",
	       "apr_pvsprintf", "ngx_palloc_large", "ngx_pnalloc", "ngx_alloc");
	EXPECT(WRAPPER_NONE, "ap_run_handler", "apr_table_make", "apr_file_open",
	       "ngx_http_create_request", "ngx_array_push");
	/* PostgreSQL */
	EXPECT(WRAPPER_ANYWHERE, "palloc", "palloc0", "palloc_extended", "repalloc", "psprintf",
	       "MemoryContextAllocZeroAligned", "MemoryContextStrdup", "AllocSetAlloc",
	       "AllocSetAllocFromNewBlock", "AllocSetRealloc", "AllocSetContextCreateInternal",
	       "GenerationAlloc", "SlabAlloc", "pnstrdup", "guc_strdup");
	EXPECT(WRAPPER_NONE, "MemoryContextDelete", "CreateCachedPlan", "lappend", "copyObjectImpl",
	       "exec_simple_query");
	/* redis, valkey */
	EXPECT(WRAPPER_ANYWHERE, "zmalloc_usable", "ztrymalloc_usable", "zcalloc_num",
	       "ztryrealloc", "_sdsnewlen", "sdsnewlen", "sdstrynewlen", "sdsdup", "sdsMakeRoomFor",
	       "sdscatvprintf", "_sdsMakeRoomFor");
	EXPECT(WRAPPER_NONE, "createObject", "createStringObject", "dictAddRaw", "sdssplitlen",
	       "addReply", "sds");
	/* Perl: its arenas hold values of any kind. */
	EXPECT(WRAPPER_ANYWHERE, "Perl_safesysmalloc", "Perl_more_sv", "Perl_more_bodies");
	EXPECT(WRAPPER_NONE, "Perl_newSV", "Perl_pp_anonhash", "Perl_hv_common");
	/* CPython: objects say what the memory is for, memory and the allocation of a type do not.
	 */
	EXPECT(WRAPPER_ANYWHERE, "PyMem_RawMalloc", "_PyMem_DebugRawAlloc", "PyObject_Malloc",
	       "_PyObject_GC_NewVar", "_PyObject_New", "PyType_GenericAlloc");
	EXPECT(WRAPPER_NONE, "PyList_New", "PyUnicode_New", "PyObject_Call", "list_append",
	       "_PyEval_EvalFrameDefault", "py::<module>:/srv/app.py", "PyType_Ready");
}

static void cplusplus(void **state)
{
	EXPECT(WRAPPER_ANYWHERE, "operator new", "operator new[]", "operator new(unsigned long)",
	       "std::vector<int>", "std::__new_allocator<int>::allocate",
	       "std::allocator_traits<std::allocator<app::T> >::allocate",
	       "__gnu_cxx::new_allocator<app::T>::allocate", "__cxa_allocate_exception",
	       ("std::__shared_count<(__gnu_cxx::_Lock_policy)2>::__shared_count<app::T, "
		"std::allocator<void>>"),
	       ("void std::vector<app::T, std::allocator<app::T> >::_M_realloc_insert<char const "
		"(&) [4]>(__gnu_cxx::__normal_iterator<app::T*, std::vector<app::T> >, char const "
		"(&) [4])"),
	       ("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> "
		">::_M_create"),
	       "void* std::allocate", "app::T* std::__uninitialized_copy<false>::__uninit_copy<>()",
	       "std::function<int* (std::vector<int>)>::operator()(std::vector<int>) const",
	       "std::enable_if<true, void>::type std::swap<int>(int&, int&)",
	       "std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
	       "non-virtual thunk to std::stringbuf::overflow(int)", "_ZNSt6vectorIiSaIiEE4growEv",
	       "decltype(auto) std::get<int>(int)", "std::f() const volatile [clone .cold]");
	EXPECT(WRAPPER_NONE, "operator newer", "app::cache<std::string>::insert",
	       "app::run(std::vector<int>)", "app::run(std::vector<int, std::allocator<int> >)",
	       "std::vector<app::T, std::allocator<app::T> > app::make<app::T>(int)",
	       "std::vector<int> const app::make<int>(std::string const&)",
	       "std::string app::name<int>", "app::C::operator std::string() const",
	       "app::lam::{lambda(std::vector<int, std::allocator<int> >)#1}::operator()",
	       "(anonymous namespace)::fill(std::string)",
	       "void (anonymous namespace)::fill<std::string>(std::string)",
	       "decltype(std::f()) app::f<int>(int)", "auto app::f<int>(int)::{lambda()#1}",
	       "app::std::f", "app::operator<(std::string, std::string)",
	       "app::a<&app::b::operator-> >", "app::f [clone std::g]", "app::f() const std::");
	/* Qt */
	EXPECT(WRAPPER_ANYWHERE, "QArrayData::allocate", "QArrayData::reallocateUnaligned",
	       "QListData::detach_grow", "QTypedArrayData<char16_t>::allocate",
	       "QString::reallocData", "QList<QString>::append", "QVector<int>::realloc");
	EXPECT(WRAPPER_NONE, "QObject::QObject", "QWidget::create", "QListWidget::addItem",
	       "QStringList_app", "app::QString::f", "QMapper::map");
}

static void rust(void **state)
{
	EXPECT(WRAPPER_OF_RUST, "__rust_alloc", "__rdl_alloc", "__rustc::__rust_alloc_zeroed",
	       "alloc::alloc::alloc", "alloc::raw_vec::RawVec<T,A>::grow_one",
	       "alloc::raw_vec::finish_grow", "<alloc::alloc::Global>::alloc_impl_runtime",
	       "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
	       "<alloc::raw_vec::RawVec<std::ffi::os_str::OsString>>::grow_one",
	       "<alloc::string::String as core::clone::Clone>::clone",
	       "<core::iter::adapters::map::Map<I,F> as core::iter::Iterator>::fold",
	       "<T as alloc::slice::hack::ConvertVec>::to_vec",
	       "<str as alloc::borrow::ToOwned>::to_owned", "<[app::X]>::to_vec",
	       "<u8 as <[_]>::to_vec_in::ConvertVec>::to_vec::<alloc::alloc::Global>",
	       "<&mut I as core::iter::traits::iterator::Iterator>::next",
	       ("<<std::sync::once::Once>::call_once<app::f>::{closure#0} as "
		"core::ops::function::FnOnce<()>>::call_once"),
	       "hashbrown::raw::RawTable<T,A>::reserve_rehash",
	       "<hashbrown::raw::RawTableInner>::prepare_resize",
	       "<jemallocator::Jemalloc as core::alloc::global::GlobalAlloc>::alloc");
	EXPECT(WRAPPER_ANYWHERE, "std::collections::hash::map::HashMap<K,V,S>::insert",
	       "std::thread::local::LocalKey<T>::with");
	EXPECT(WRAPPER_IN_RUST, "core::ops::function::FnOnce::call_once",
	       "core::iter::traits::iterator::Iterator::collect", "core::alloc_node");
	EXPECT(WRAPPER_NONE, "app::main", "app::main::{{closure}}", "app::make::{closure#0}",
	       "<app::Node>::new", "<app::Node as core::clone::Clone>::clone",
	       "<alloc::vec::Vec<u8> as app::Encode>::encode",
	       "<alloc::boxed::Box<dyn core::ops::Fn()> as app::Run>::run",
	       "<app::run::{closure#0} as core::ops::function::FnOnce<()>>::call_once",
	       "app::cache<alloc::string::String>::put", "allocator::f",
	       "bytes::Bytes::copy_from_slice", "<module>", "<main>", "<anonymous> /srv/app.js:1",
	       "<T", "<T as ", "<>");
}

static void other_runtimes(void **state)
{
	/* Go */
	EXPECT(WRAPPER_OF_CGO, "runtime.asmcgocall", "runtime.asmcgocall.abi0");
	EXPECT(WRAPPER_ANYWHERE, "runtime.cgocall", "_cgo_6d0ba2ddbf1d_Cfunc__Cmalloc",
	       "main._Cfunc__CMalloc", "main._Cfunc_CString");
	EXPECT(WRAPPER_NONE, "main._Cfunc_open_session", "main.main", "runtime.main",
	       "github.com/x/core.(*std).f", "main.std");
	/* V8, Node */
	EXPECT(WRAPPER_ANYWHERE, "v8::internal::Malloced::operator new",
	       "v8::base::AlignedAlloc(unsigned long, unsigned long)",
	       "v8::ArrayBuffer::Allocator::Reallocate", "v8::internal::BackingStore::Allocate",
	       "v8::internal::Heap::AllocateExternalBackingStore",
	       "v8::internal::(anonymous namespace)::ConstructBuffer",
	       "v8::internal::Builtin_ArrayBufferConstructor", "Builtins_CreateTypedArray",
	       "node::NodeArrayBufferAllocator::AllocateUninitialized",
	       "node::Buffer::(anonymous namespace)::CreateUnsafeArrayBuffer",
	       "char* node::UncheckedMalloc<char>(unsigned long)");
	/* Between JavaScript and native functions. */
	EXPECT(WRAPPER_ANYWHERE, "v8::internal::FunctionCallbackArguments::Call",
	       "v8::internal::(anonymous namespace)::HandleApiCallHelper<false>",
	       "v8::internal::GlobalHandles::Create", "v8::api_internal::GlobalizeReference",
	       "node::BaseObject::BaseObject", "node::AsyncWrap::AsyncWrap",
	       "node::crypto::Hash::New", "node::(anonymous namespace)::ZlibStream::New",
	       "node::TCPWrap::New(v8::FunctionCallbackInfo<v8::Value> const&)");
	/* Node's own JavaScript */
	EXPECT(WRAPPER_ANYWHERE, "JS:^allocate node:buffer:429:18",
	       "JS: node:internal/timers:524:25", "LazyCompile:*Zlib node:zlib:607:14");
	EXPECT(WRAPPER_NONE, "v8::internal::Compiler::Compile", "node::LoadEnvironment",
	       "LazyCompile:*handle /srv/std::app.js:12:3", "JS:~handle /srv/app.js:3:1",
	       "JS:node /srv/node:app.js:3:1", "app::New", "node::Renewed", "read node:fs:1:1");
}

static void some_names_are_of_one_module(void **state)
{
	assert_int_equal(wrapper_names_find("allocator_alloc", "/usr/lib/libapr-1.so.0"),
			 WRAPPER_ANYWHERE);
	assert_int_equal(wrapper_names_find("allocator_alloc", "libapr-1.so.0"), WRAPPER_ANYWHERE);
	assert_int_equal(wrapper_names_find("allocator_alloc", "/libapr-1/server"), WRAPPER_NONE);
	assert_int_equal(wrapper_names_find("allocator_alloc", NULL), WRAPPER_NONE);
}

/* The tables are searched by halves. */
static void tables_are_in_order(void **state)
{
	size_t nr;
	const struct wrapper_row *rows = wrapper_table_exact(&nr);

	for (size_t i = 1; i < nr; i++)
		if (strcmp(rows[i - 1].name, rows[i].name) >= 0)
			fail_msg("%s is not after %s", rows[i].name, rows[i - 1].name);
	rows = wrapper_table_beginnings(&nr);
	for (size_t i = 1; i < nr; i++)
		if (strcmp(rows[i - 1].name, rows[i].name) >= 0 ||
		    strncmp(rows[i - 1].name, rows[i].name, strlen(rows[i - 1].name)) == 0)
			fail_msg("%s is not after %s", rows[i].name, rows[i - 1].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c_names_are_whole),
		cmocka_unit_test(libraries_of_c),
		cmocka_unit_test(cplusplus),
		cmocka_unit_test(rust),
		cmocka_unit_test(other_runtimes),
		cmocka_unit_test(some_names_are_of_one_module),
		cmocka_unit_test(tables_are_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
