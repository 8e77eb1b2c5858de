# SPDX-License-Identifier: GPL-2.0-or-later
"""reuse_pid.py LEAKREC [OPTION...]: while leakrec sets up the recording of a process by its id, the process ends, and
another one gets the id. Prints what leakrec says, and exits with leakrec's status."""
import os
import signal
import subprocess
import sys
import time

from sleepers import sleeper

MAX_ATTEMPTS = 20


def text_of(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def has_watchdog(pid):
    """True when leakrec has forked its watchdog: it has looked at the process, and has attached nothing yet."""
    children = text_of(f"/proc/{pid}/task/{pid}/children").split()
    return any(text_of(f"/proc/{child}/comm") == "leak-watchdog\n" for child in children)


def state(pid):
    return text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def attempt(command):
    """Returns leakrec's status and messages, or None if it was too fast."""
    target = sleeper()
    while text_of(f"/proc/{target}/comm") != "sleep\n" or state(target) != "S":
        time.sleep(0.001)
    began = time.monotonic()
    recorder = subprocess.Popen(command + ["-p", str(target)], stderr=subprocess.PIPE, text=True)
    while recorder.poll() is None and not has_watchdog(recorder.pid):
        pass
    os.kill(recorder.pid, signal.SIGSTOP)
    while state(recorder.pid) not in "TZ":
        time.sleep(0.001)
    # The times at which processes began are told apart by 0.01 s.
    time.sleep(max(0, began + 0.02 - time.monotonic()))
    end(target)
    sleeper(target)
    os.kill(recorder.pid, signal.SIGCONT)
    messages = recorder.communicate()[1]
    end(target)
    is_late = "recording process" in messages
    return None if is_late else (recorder.returncode, messages)


for _ in range(MAX_ATTEMPTS):
    result = attempt(sys.argv[1:])
    if result:
        sys.stderr.write(result[1])
        sys.exit(result[0])
sys.exit("leakrec has recorded the other process, or was too fast each time")
