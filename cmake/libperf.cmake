# SPDX-License-Identifier: GPL-2.0-or-later
# libperf: the system's if pkg-config finds one. Otherwise scripts/build-libperf builds it from the kernel source
# package (Debian's linux-source), once for all presets.
add_library(libperf INTERFACE)
pkg_check_modules(LIBPERF IMPORTED_TARGET libperf)
if(LIBPERF_FOUND)
	target_link_libraries(libperf INTERFACE PkgConfig::LIBPERF)
else()
	set(LIBPERF_PREFIX ${PROJECT_SOURCE_DIR}/build/deps/libperf)
	if(CMAKE_CROSSCOMPILING)
		string(APPEND LIBPERF_PREFIX -${CMAKE_SYSTEM_PROCESSOR})
	endif()
	execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/build-libperf ${LIBPERF_PREFIX} ${CMAKE_SYSTEM_PROCESSOR}
		COMMAND_ERROR_IS_FATAL ANY)
	target_include_directories(libperf SYSTEM INTERFACE ${LIBPERF_PREFIX}/include)
	target_link_libraries(libperf INTERFACE
		${LIBPERF_PREFIX}/lib/libperf.a ${LIBPERF_PREFIX}/lib/libapi.a)
endif()
