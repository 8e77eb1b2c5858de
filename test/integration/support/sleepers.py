# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes that have a chosen id. sleepers.py PID COMMAND...: runs the command with that id, until it ends."""
import ctypes
import os
import signal
import sys

SYS_CLONE3 = 435
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def sleeper(pid=0, command=("sleep", "1000"), **variables):
    """A child that runs the command until its parent ends, with the id pid if that is not 0, and these variables."""
    ids = (ctypes.c_int * 1)(pid)
    # struct clone_args, linux/sched.h: the fifth field is exit_signal, the last ones are set_tid and set_tid_size.
    args = (ctypes.c_uint64 * 10)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(ids) if pid else 0,
                                  1 if pid else 0)
    child = libc.syscall(SYS_CLONE3, args, ctypes.sizeof(args))
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execvpe(command[0], command, {**os.environ, **variables})
    if child < 0:
        sys.exit("clone3: " + os.strerror(ctypes.get_errno()))
    return child


if __name__ == "__main__":
    os.waitpid(sleeper(int(sys.argv[1]), sys.argv[2:]), 0)
