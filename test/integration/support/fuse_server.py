#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
fuse_server.py FILE DIRECTORY [OPEN_FLAGS [silent]]: mounts a file system on DIRECTORY, whose only file, "library", has the
contents of FILE, and serves it until it is ended. OPEN_FLAGS are those of FUSE_OPEN: 1 keeps reads out of memory.
With "silent" it does not answer when the file is read.
The protocol is that of include/uapi/linux/fuse.h (7.31).
"""

import ctypes
import os
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 17, 18, 25, 26, 36, 42
ROOT, LIBRARY = 1, 2
ENOSYS = 38

with open(sys.argv[1], "rb") as source:
    contents = source.read()
open_flags = int(sys.argv[3]) if len(sys.argv) > 3 else 0
is_silent = sys.argv[4:] == ["silent"]
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"leaktools-test", sys.argv[2].encode(), b"fuse", 0, options.encode()):
    sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")


def attributes(node):
    size, mode = (0, 0o40755) if node == ROOT else (len(contents), 0o100755)
    return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(operation, node, body):
    if operation == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, *[0] * 8)
    if operation == LOOKUP:
        return struct.pack("<4Q2I", LIBRARY, 0, 0, 1, 0, 0) + attributes(LIBRARY)
    if operation == GETATTR:
        return struct.pack("<Q2I", 1, 0, 0) + attributes(node)
    if operation == OPEN:
        return struct.pack("<Q2I", 0, open_flags, 0)
    if operation == READ:
        offset, size = struct.unpack_from("<8xQI", body)
        return contents[offset : offset + size]
    if operation == STATFS:  # for an overlay
        return struct.pack("<5Q10I", 0, 0, 0, 0, 0, 4096, 255, 4096, *[0] * 7)
    return b"" if operation in (RELEASE, FLUSH) else None


while True:
    request = os.read(device, 1 << 18)
    operation, unique, node = struct.unpack_from("<4xIQQ", request)
    if operation in (FORGET, BATCH_FORGET, INTERRUPT) or (is_silent and operation == READ):
        continue
    data = answer(operation, node, request[40:])
    error = -ENOSYS if data is None else 0
    os.write(device, struct.pack("<IiQ", 16 + len(data or b""), error, unique) + (data or b""))
