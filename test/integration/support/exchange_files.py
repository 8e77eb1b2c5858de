#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""exchange_files.py A B: has the two names change their files, as fast as it can, until it is killed."""

import ctypes
import os
import sys

AT_FDCWD = -100
RENAME_EXCHANGE = 2

libc = ctypes.CDLL(None, use_errno=True)
a, b = (os.fsencode(name) for name in sys.argv[1:])
while libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0:
    pass
sys.exit(f"renameat2: {os.strerror(ctypes.get_errno())}")
