# SPDX-License-Identifier: GPL-2.0-or-later
# cmake -D SOURCE_DIR=report/html -D OUTPUT=FILE.c -P embed.cmake: the page that html_page.c fills, as two
# arrays of bytes, before and behind the data. The style and the scripts go into the page, and their
# hashes into its Content-Security-Policy, so that a browser runs them and nothing else.
cmake_minimum_required(VERSION 3.25)

# SHA-256 in base64, as the policy has it. CMake only knows hex: three of its digits are two of base64.
function(sha256_base64 text ret)
	set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
	string(SHA256 hex "${text}")
	string(APPEND hex 00) # 66 digits: 22 groups
	foreach(at RANGE 0 63 3)
		string(SUBSTRING ${hex} ${at} 3 group)
		math(EXPR high "0x${group} >> 6")
		math(EXPR low "0x${group} & 63")
		string(SUBSTRING ${digits} ${high} 1 first)
		string(SUBSTRING ${digits} ${low} 1 second)
		string(APPEND base64 ${first}${second})
	endforeach()
	string(SUBSTRING ${base64} 0 43 base64) # 256 bits; the rest is padding
	set(${ret} ${base64}= PARENT_SCOPE)
endfunction()

function(byte_array name text)
	file(WRITE ${OUTPUT}.text "${text}")
	file(READ ${OUTPUT}.text bytes HEX)
	file(REMOVE ${OUTPUT}.text)
	string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
	string(REGEX REPLACE "(................................................................................)"
		"\\1\n" bytes "${bytes}")
	file(APPEND ${OUTPUT} "const unsigned char ${name}[] = {\n${bytes}\n};\n"
		"const unsigned long ${name}_bytes = sizeof(${name});\n")
endfunction()

file(READ ${SOURCE_DIR}/template.html page)
file(READ ${SOURCE_DIR}/report.css style)
set(script "\"use strict\";\n{\n")
foreach(part model table flame charts page)
	file(READ ${SOURCE_DIR}/${part}.js text)
	string(APPEND script "${text}")
endforeach()
string(APPEND script "}\n")
sha256_base64("${script}" script_hash)
sha256_base64("${style}" style_hash)
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
string(FIND "${page}" "@DATA@" at)
string(SUBSTRING "${page}" 0 ${at} before)
math(EXPR at "${at} + 6")
string(SUBSTRING "${page}" ${at} -1 behind)
file(WRITE ${OUTPUT} "/* Made by embed.cmake. */\n#include \"report/html/html_page.h\"\n\n")
byte_array(html_page_before "${before}")
byte_array(html_page_behind "${behind}")
