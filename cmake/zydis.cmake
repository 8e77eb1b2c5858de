# SPDX-License-Identifier: GPL-2.0-or-later
# Zydis decodes x86 instructions. Debian's libzydis-dev 4.0 installs no pkg-config file.
find_path(ZYDIS_INCLUDE_DIR Zydis/Zydis.h REQUIRED)
find_library(ZYDIS_LIBRARY Zydis REQUIRED)
add_library(Zydis INTERFACE)
target_include_directories(Zydis INTERFACE ${ZYDIS_INCLUDE_DIR})
target_link_libraries(Zydis INTERFACE ${ZYDIS_LIBRARY})
