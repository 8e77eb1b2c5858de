# SPDX-License-Identifier: GPL-2.0-or-later
# Libraries whose ABI changes without notice, or that distributions have in different versions. Release builds link
# their archives, so that a tool that was built on one system starts on another. libperf always is an archive.
set(static OFF)
if(CMAKE_BUILD_TYPE MATCHES "Rel")
	set(static ON)
endif()
option(LEAKTOOLS_STATIC "Link libbpf, libtraceevent and libtracefs statically" ${static})

# leaktools_unstable(PREFIX MODULE [LIBRARY...]): the target PkgConfig::PREFIX of the pkg-config module. LIBRARY is what
# the archive needs, which the module's file names in Requires.private only.
function(leaktools_unstable prefix module)
	pkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET ${module})
	if(LEAKTOOLS_STATIC)
		find_library(${prefix}_ARCHIVE ${module}.a HINTS ${${prefix}_LIBRARY_DIRS} ${${prefix}_LIBDIR})
		if(${prefix}_ARCHIVE)
			set_target_properties(PkgConfig::${prefix} PROPERTIES
				INTERFACE_LINK_LIBRARIES "${${prefix}_ARCHIVE};${ARGN}")
		else()
			message(WARNING "There is no ${module}.a: the tools will need this system's ${module}.so")
		endif()
	endif()
endfunction()
