# SPDX-License-Identifier: GPL-2.0-or-later
# Rooms: folders that are one static library each (docs/architecture.md has the list and the order).
#
# leaktools_room(FOLDER [SOURCES FILE...] LINK ROOM_OR_LIBRARY...): the library of FOLDER, all its *.c and SOURCES.
# LINK names rooms by their folders. A room finds only the headers of the rooms that it links: each room's include
# directory holds a symbolic link to its folder and nothing else.
function(leaktools_room folder)
	cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
	string(REPLACE "/" "_" name ${folder})
	set(include_dir ${PROJECT_BINARY_DIR}/include/${name})
	cmake_path(GET folder PARENT_PATH parent)
	file(MAKE_DIRECTORY ${include_dir}/${parent})
	if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
		# A room that contains other rooms exposes only its own headers.
		file(MAKE_DIRECTORY ${include_dir}/${folder})
		file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.h)
		foreach(header IN LISTS headers)
			cmake_path(GET header FILENAME file)
			file(CREATE_LINK ${header} ${include_dir}/${folder}/${file} SYMBOLIC)
		endforeach()
	else()
		file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${include_dir}/${folder} SYMBOLIC)
	endif()

	file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
	list(FILTER sources EXCLUDE REGEX "\\.bpf\\.c$")
	list(APPEND sources ${ARG_SOURCES})
	list(TRANSFORM ARG_LINK REPLACE "/" "_" REGEX "^[a-z_]+/")
	if(sources)
		add_library(${name} STATIC ${sources})
		target_include_directories(${name} PUBLIC ${include_dir})
		target_compile_options(${name} PRIVATE ${LEAKTOOLS_TOOL_FLAGS})
		target_link_libraries(${name} PUBLIC ${ARG_LINK})
	else()
		add_library(${name} INTERFACE)
		target_include_directories(${name} INTERFACE ${include_dir})
		target_link_libraries(${name} INTERFACE ${ARG_LINK})
	endif()
	set_property(GLOBAL APPEND PROPERTY LEAKTOOLS_ROOMS ${name})
endfunction()

# leaktools_tool(NAME SOURCES FILE... LINK ROOM...): a tool is a thin main over the rooms.
function(leaktools_tool name)
	cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
	add_executable(${name} ${ARG_SOURCES})
	target_compile_options(${name} PRIVATE ${LEAKTOOLS_TOOL_FLAGS})
	target_link_options(${name} PRIVATE -pie -Wl,-z,relro,-z,now,-z,noexecstack)
	list(TRANSFORM ARG_LINK REPLACE "/" "_" REGEX "^[a-z_]+/")
	target_include_directories(${name} PRIVATE ${PROJECT_BINARY_DIR}/include/tools)
	target_link_libraries(${name} PRIVATE ${ARG_LINK})
	install(TARGETS ${name})
endfunction()
