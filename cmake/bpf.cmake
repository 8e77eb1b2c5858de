# SPDX-License-Identifier: GPL-2.0-or-later
# BPF programs: built by clang, turned into a C header (a libbpf skeleton) by bpftool.
find_program(BPF_CLANG NAMES clang REQUIRED)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
	set(BPF_TARGET_ARCH arm64)
else()
	set(BPF_TARGET_ARCH x86)
endif()
find_program(BPFTOOL bpftool PATHS /usr/sbin /sbin REQUIRED)

# leaktools_bpf(TARGET FOLDER/NAME): FOLDER/NAME.bpf.c becomes NAME.skel.h, which TARGET includes.
function(leaktools_bpf target path)
	set(source ${CMAKE_CURRENT_SOURCE_DIR}/${path}.bpf.c)
	cmake_path(GET path FILENAME name)
	set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
	set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/skeletons/${name}.skel.h)
	# -mcpu=v3: for compare-and-swap, Linux 5.12. The multiarch directory is for asm/types.h. -ffile-prefix-map: the
	# tool contains the programs' BTF, which must not show the path of the build.
	add_custom_command(OUTPUT ${skeleton}
		COMMAND ${BPF_CLANG} -target bpf -mcpu=v3 -O2 -g -Wall -Werror
			-Wno-unused-parameter -D__TARGET_ARCH_${BPF_TARGET_ARCH}
			-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
			-I${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -I${PROJECT_SOURCE_DIR}
			-MD -MF ${object}.d -c ${source} -o ${object}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/skeletons
		COMMAND ${BPFTOOL} gen skeleton ${object} name ${name}_bpf > ${skeleton}
		DEPENDS ${source} DEPFILE ${object}.d VERBATIM)
	target_sources(${target} PRIVATE ${skeleton})
	target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/skeletons)
	target_link_libraries(${target} PUBLIC PkgConfig::LIBBPF)
endfunction()
