# SPDX-License-Identifier: GPL-2.0-or-later
"""reuse_pid_in_window.py LEAKREC WAITS_LIBRARY LIBC_DIRECTORY: while leakrec --budget places the probes of its first
window in two processes, the first one ends, and a stranger gets its id. Fails if leakrec records nothing, or if the
stranger has probes in its libc, that of LIBC_DIRECTORY, while the window is open."""
import os
import signal
import subprocess
import sys
import time

from sleepers import sleeper

leakrec, waits, directory = sys.argv[1:]


def text_of(path):
    try:
        with open(path, encoding="utf8") as file:
            return file.read()
    except OSError:
        return ""


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.001)


def sleeping(pid=0):
    child = sleeper(pid, LD_LIBRARY_PATH=directory)
    wait_for(lambda: text_of(f"/proc/{child}/comm") == "sleep\n" and " S " in text_of(f"/proc/{child}/stat"))
    return child


def is_probed(pid):
    for line in text_of(f"/proc/{pid}/maps").splitlines():
        fields = line.split()
        if fields[1] != "r-xp" or not fields[-1].startswith(directory + "/libc.so"):
            continue
        start, end = (int(part, 16) for part in fields[0].split("-"))
        with open(f"/proc/{pid}/mem", "rb") as memory, open(fields[-1], "rb") as file:
            memory.seek(start)
            file.seek(int(fields[2], 16))
            return memory.read(end - start) != file.read(end - start)
    sys.exit("no libc")


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def record(first, second):
    with open("leakrec.err", "w", encoding="utf8") as errors:
        return subprocess.Popen([leakrec, "--budget", "50%", "-p", f"{first},{second}", "-o", "/dev/null"],
                                env={**os.environ, "LD_PRELOAD": waits, "WAITS_AT": "link"}, stderr=errors)


def process_to_link():
    """Waits until a process is about to be linked (libwaits.so)."""
    wait_for(lambda: text_of("waiting").endswith("\n"))
    return int(text_of("waiting"))


def stranger_is_probed(recorder, processes):
    # Its leak-calibrate waits first.
    process_to_link()
    os.unlink("waiting")
    first = process_to_link()
    second, = processes - {first}
    end(first)
    sleeping(first)
    os.unlink("waiting")
    wait_for(lambda: ": recording " in text_of("leakrec.err") or recorder.poll() is not None)
    wait_for(lambda: is_probed(second) or recorder.poll() is not None)
    return is_probed(first)


processes = {sleeping(), sleeping()}
recorder = record(*processes)
try:
    is_wrong = stranger_is_probed(recorder, processes)
    recorder.send_signal(signal.SIGINT)
    status = recorder.wait(60)
finally:
    recorder.kill()
    for process in processes:
        end(process)
if status or is_wrong:
    sys.exit(f"status {status}, the stranger has probes: {is_wrong}, " + text_of("leakrec.err"))
