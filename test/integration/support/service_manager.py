#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""service_manager.py LOG SECONDS COMMAND...: what systemd does with leakrec@.service. Starts the command, and again
whenever it ends with another status than 2, until SIGTERM, which it passes on. Nobody reads the command's standard
output. LOG gets a line for each start, message and end. After SECONDS without WATCHDOG=1, the command is killed."""
import ctypes
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

log_path, watchdog_s, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
stopping = False
child = None


def log(text):
    with open(log_path, "a", encoding="utf-8") as out:
        out.write(text + "\n")


def stop(_number, _frame):
    global stopping
    stopping = True
    if child:
        child.send_signal(signal.SIGTERM)


def hear(heard):
    """Logs a message. Returns its lines."""
    text, ancillary, _flags, _address = heard.recvmsg(4096, 128)
    sender = struct.unpack("3i", ancillary[0][2])[0]
    lines = text.decode().split("\n")
    log(("" if sender == child.pid else "foreign ") + ", ".join(lines))
    return lines


def end_with_manager():
    """Whoever kills the manager ends the command, too."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def run(heard):
    """Runs the command once. Returns its status."""
    global child
    environment = dict(os.environ, NOTIFY_SOCKET=heard.getsockname(), WATCHDOG_USEC=str(int(watchdog_s * 1e6)))
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, preexec_fn=end_with_manager)
    if stopping:
        child.send_signal(signal.SIGTERM)
    log("start")
    last = time.monotonic()
    ready = stopping_said = False
    while child.poll() is None:
        if not select.select([heard], [], [], 0.05)[0]:
            if ready and not stopping_said and time.monotonic() - last > watchdog_s:
                log("silent")
                child.kill()
                child.wait()
            continue
        lines = hear(heard)
        if "WATCHDOG=1" in lines:
            last = time.monotonic()
        # As systemd's: a service that starts or ends has another time.
        ready = ready or "READY=1" in lines
        stopping_said = stopping_said or "STOPPING=1" in lines
    # What it said before it ended.
    while select.select([heard], [], [], 0)[0]:
        hear(heard)
    child.stdout.close()
    return child.returncode


signal.signal(signal.SIGTERM, stop)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
    manager.bind(log_path + ".socket")
    manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    while not stopping:
        status = run(manager)
        log(f"end {status}")
        if status == 2:
            break
