# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes that have a chosen id."""
import ctypes
import os
import signal
import sys

SYS_CLONE3 = 435
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def sleeper(pid=0, **variables):
    """A child that sleeps until its parent ends, with the id pid if that is not 0, and these variables in its environment."""
    ids = (ctypes.c_int * 1)(pid)
    # struct clone_args, linux/sched.h: the fifth field is exit_signal, the last ones are set_tid and set_tid_size.
    args = (ctypes.c_uint64 * 10)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(ids) if pid else 0,
                                  1 if pid else 0)
    child = libc.syscall(SYS_CLONE3, args, ctypes.sizeof(args))
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execvpe("sleep", ["sleep", "1000"], {**os.environ, **variables})
    if child < 0:
        sys.exit("clone3: " + os.strerror(ctypes.get_errno()))
    return child
