# SPDX-License-Identifier: GPL-2.0-or-later
# Compiler flags for everything that is built.

include(CheckCCompilerFlag)
include(CheckCSourceCompiles)

# Links take the ordinary code of objects. Targets that use link-time optimisation turn it on (tools/CMakeLists.txt).
add_link_options(-fno-lto)
add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
	-Wformat=2 -Wundef -Wpointer-arith -Wwrite-strings -Wno-unused-parameter
	-Wformat-security -fno-strict-aliasing -fno-omit-frame-pointer -fstack-protector-strong)
if(LEAKTOOLS_WERROR)
	add_compile_options(-Werror)
endif()
add_compile_definitions(_GNU_SOURCE LEAKTOOLS_VERSION="${PROJECT_VERSION}")
if(LEAKTOOLS_SANITIZE)
	add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
	add_link_options(-fsanitize=address,undefined)
	if(LEAKTOOLS_FUZZ)
		add_compile_options(-fsanitize=fuzzer-no-link)
	endif()
elseif(CMAKE_BUILD_TYPE MATCHES "Rel")
	# The C library's headers show which level they support with this compiler.
	set(CMAKE_REQUIRED_FLAGS "-O2 -D_FORTIFY_SOURCE=3 -Werror")
	check_c_source_compiles("#include <stdio.h>
		#if __USE_FORTIFY_LEVEL != 3
		#error
		#endif
		int main(void) { return 0; }" LEAKTOOLS_HAS_FORTIFY_3)
	unset(CMAKE_REQUIRED_FLAGS)
	if(LEAKTOOLS_HAS_FORTIFY_3)
		add_compile_definitions(_FORTIFY_SOURCE=3)
	else()
		add_compile_definitions(_FORTIFY_SOURCE=2)
	endif()
endif()

# The hardening flags of Debian's packages (dpkg-buildflags(1), hardening=+all), for the tools and their libraries. The
# programs that tests record are compiled without them.
set(LEAKTOOLS_HARDENING -fPIE)
foreach(flag -fstack-clash-protection -fcf-protection)
	string(MAKE_C_IDENTIFIER "LEAKTOOLS_HAS${flag}" name)
	check_c_compiler_flag("-Werror ${flag}" ${name})
	if(${name})
		list(APPEND LEAKTOOLS_HARDENING ${flag})
	endif()
endforeach()
set(LEAKTOOLS_TOOL_FLAGS -include ${PROJECT_SOURCE_DIR}/common/banned.h ${LEAKTOOLS_HARDENING})
