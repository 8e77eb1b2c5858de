# SPDX-License-Identifier: GPL-2.0-or-later
# Libraries whose ABI changes without notice, or that distributions have in different versions. Release builds link
# their archives, so that a tool that was built on one system starts on another. libperf is always an archive.
set(static OFF)
if(CMAKE_BUILD_TYPE MATCHES "Rel")
	set(static ON)
endif()
option(LEAKTOOLS_STATIC "Link libbpf, libtraceevent and libtracefs statically" ${static})

# leaktools_unstable(PREFIX MODULE [LIBRARY...]): makes the target PkgConfig::PREFIX of the pkg-config module. LIBRARY
# is what the archive needs besides: the module's pkg-config file names that only in Requires.private.
function(leaktools_unstable prefix module)
	pkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET ${module})
	if(LEAKTOOLS_STATIC)
		find_library(${prefix}_ARCHIVE ${module}.a HINTS ${${prefix}_LIBRARY_DIRS} ${${prefix}_LIBDIR})
		if(${prefix}_ARCHIVE)
			# A target, so that the archive stands before what it needs.
			add_library(${prefix}_archive STATIC IMPORTED)
			set_target_properties(${prefix}_archive PROPERTIES
				IMPORTED_LOCATION ${${prefix}_ARCHIVE} INTERFACE_LINK_LIBRARIES "${ARGN}")
			set_target_properties(PkgConfig::${prefix} PROPERTIES
				INTERFACE_LINK_LIBRARIES ${prefix}_archive)
		else()
			message(WARNING "${module}.a is not installed: the tools will need this system's ${module}.so")
		endif()
	endif()
endfunction()
