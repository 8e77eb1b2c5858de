# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what comes with the tools: the header, manual pages, the documents that they cite, completions.
include(GNUInstallDirs)
set(tools leakprobe leakrec leakparse leakfollow leakplot leakscan)
set(data_dir ${CMAKE_INSTALL_DATADIR})

install(FILES include/leaktools/leak_probes.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leaktools)

# Manual pages cite these files as docs/NAME.
install(FILES README.md COPYING DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN docs/man EXCLUDE)

find_program(SCDOC scdoc)
if(SCDOC)
	set(pages)
	foreach(tool IN LISTS tools)
		set(source ${PROJECT_SOURCE_DIR}/docs/man/${tool}.1.scd)
		set(page ${PROJECT_BINARY_DIR}/man/${tool}.1)
		add_custom_command(OUTPUT ${page} DEPENDS ${source} VERBATIM
			COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
			COMMAND ${CMAKE_COMMAND} -E echo "'\\\" t" > ${page} # man runs tbl
			COMMAND ${SCDOC} < ${source} >> ${page})
		list(APPEND pages ${page})
	endforeach()
	add_custom_target(man ALL DEPENDS ${pages})
	install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
else()
	message(WARNING "scdoc is not installed: the manual pages are neither built nor installed")
endif()

# bash and fish look for a file with the command's name. The file for zsh lists its commands itself.
foreach(tool IN LISTS tools)
	install(FILES completions/leaktools.bash RENAME ${tool}
		DESTINATION ${data_dir}/bash-completion/completions)
	install(FILES completions/leaktools.fish RENAME ${tool}.fish
		DESTINATION ${data_dir}/fish/vendor_completions.d)
endforeach()
install(FILES completions/_leaktools DESTINATION ${data_dir}/zsh/site-functions)

# leakrec@NAME.service (docs/service.md)
configure_file(packaging/systemd/leakrec@.service.in "${PROJECT_BINARY_DIR}/systemd/leakrec@.service" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/systemd/leakrec@.service" DESTINATION lib/systemd/system)
install(FILES packaging/systemd/leakrec.conf DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/leaktools)

add_custom_target(uninstall
	COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake VERBATIM)
