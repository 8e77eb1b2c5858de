# SPDX-License-Identifier: GPL-2.0-or-later
"""A program on a pseudo-terminal: keys go in, and what a vt100 would show is read."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

CSI = re.compile(rb"\x1b\[([?>0-9;]*)([@-~])")


class Screen:
    """As much of a vt100 as ncurses uses of one."""

    def __init__(self, lines, columns):
        self.resize(lines, columns)
        self.pending = b""
        self.raw = b""

    def resize(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.cells = [[" "] * columns for _ in range(lines)]
        self.y = self.x = 0
        self.top, self.bottom = 0, lines - 1

    def feed(self, data):
        self.raw += data
        self.pending += data
        while self.pending:
            used = self.take()
            if not used:
                return
            self.pending = self.pending[used:]

    def take(self):
        """Takes one character or sequence; returns its length, 0 where it is not whole."""
        data = self.pending
        if data[0] == 0x1B:
            if len(data) < 2:
                return 0
            if data[1:2] == b"[":
                match = CSI.match(data)
                if not match:
                    return 0
                self.control(match.group(1).decode(), match.group(2).decode())
                return match.end()
            if data[1:2] in b"()":
                return 3 if len(data) >= 3 else 0
            if data[1:2] == b"M":
                self.index(-1)
            elif data[1:2] == b"D":
                self.index(1)
            elif data[1:2] not in (b"7", b"8", b"=", b">", b"H", b"c"):
                raise ValueError(f"escape sequence {data[:8]!r}")
            return 2
        if data[0] < 0x20:
            if data[0] == 0x0D:
                self.x = 0
            elif data[0] == 0x0A:
                self.index(1)
            elif data[0] == 0x08:
                self.x = max(0, self.x - 1)
            elif data[0] not in (0, 7, 0x0E, 0x0F, 9):
                raise ValueError(f"control character {data[:8]!r}")
            return 1
        size = 1 if data[0] < 0x80 else 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
        if len(data) < size:
            return 0
        if self.x >= self.columns:
            self.x = 0
            self.index(1)
        self.cells[self.y][self.x] = data[:size].decode("utf-8", "replace")
        self.x += 1
        return size

    def index(self, by):
        self.y += by
        if self.y > self.bottom:
            self.cells[self.top : self.bottom + 1] = self.cells[self.top + 1 : self.bottom + 1] + [
                [" "] * self.columns
            ]
            self.y = self.bottom
        elif self.y < self.top:
            self.cells[self.top : self.bottom + 1] = [[" "] * self.columns] + self.cells[
                self.top : self.bottom
            ]
            self.y = self.top

    def control(self, arguments, name):
        numbers = [int(n) if n else 0 for n in arguments.lstrip("?>").split(";")]
        first = numbers[0] if numbers else 0
        if name == "H":
            self.y = min(max(first, 1), self.lines) - 1
            column = numbers[1] if len(numbers) > 1 else 1
            self.x = min(max(column, 1), self.columns) - 1
        elif name in "ABCD":
            by = max(first, 1)
            self.y += {"A": -by, "B": by}.get(name, 0)
            self.x += {"C": by, "D": -by}.get(name, 0)
            self.y = min(max(self.y, 0), self.lines - 1)
            self.x = min(max(self.x, 0), self.columns - 1)
        elif name == "J":
            if first == 0:
                self.cells[self.y][self.x :] = [" "] * (self.columns - self.x)
            start = self.y + 1 if first == 0 else 0
            for y in range(start, self.lines):
                self.cells[y] = [" "] * self.columns
        elif name == "K":
            if first == 0:
                self.cells[self.y][self.x :] = [" "] * (self.columns - self.x)
            else:
                self.cells[self.y][: self.x + 1] = [" "] * (self.x + 1)
        elif name == "r":
            # This output may be meant for the previous size of the screen.
            bottom = numbers[1] if len(numbers) > 1 and numbers[1] else self.lines
            self.bottom = min(bottom, self.lines) - 1
            self.top = min(max(first, 1) - 1, self.bottom)
            self.y = self.x = 0
        elif name not in "mhlgcnq":
            raise ValueError(f"control sequence {arguments}{name}")

    def text(self):
        return [("".join(line)).rstrip() for line in self.cells]

    def written_last(self):
        """What came after the cursor was last moved, also what has scrolled away; unwrapped."""
        last = re.split(rb"\x1b\[[0-9;]*[HJ]", self.raw)[-1]
        return CSI.sub(b"", last).replace(b"\r", b"").decode("utf-8", "replace")


def run_first():
    """However busy the machine is: as prefer() of helpers.bash."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        os.setpriority(os.PRIO_PROCESS, 0, -20)


class Terminal:
    """A program on it."""

    def __init__(self, command, lines=24, columns=80, environment=None, stderr=None):
        self.screen = Screen(lines, columns)
        self.master, slave = pty.openpty()
        self.slave = slave
        self.set_size(lines, columns)
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1):
                os.dup2(slave, fd)
            os.dup2(stderr if stderr is not None else slave, 2)
            os.closerange(3, 64)
            os.environ.update({"TERM": "vt100", "LC_ALL": "C.UTF-8"} | (environment or {}))
            os.environ.pop("LINES", None)
            os.environ.pop("COLUMNS", None)
            os.execvp(command[0], command)

    def set_size(self, lines, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, lines, columns):
        self.screen.resize(lines, columns)
        self.set_size(lines, columns)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds):
        """Takes what there is within that time. False: nothing, or the program has ended."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.screen.feed(data)
        return bool(data)

    def wait_for(self, pattern, seconds=60):
        """Until a line of the screen matches; returns the match."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for line in self.screen.text():
                match = re.search(pattern, line)
                if match:
                    return match
            self.read(0.1)
        raise AssertionError(f"waited in vain for {pattern!r}:\n" + "\n".join(self.screen.text()))

    def wait_for_last(self, pattern, seconds=60):
        """Until the last line of the screen matches."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.screen.text()[-1]):
            if time.monotonic() > deadline:
                raise AssertionError(f"the last line is not {pattern!r}:\n" + "\n".join(self.screen.text()))
            self.read(0.1)

    def wait_for_text(self, pattern, seconds=60):
        """Until what was written last matches, be it on the screen still or not."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.screen.written_last()):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {pattern!r}:\n{self.screen.written_last()}")
            self.read(0.1)

    def settle(self, seconds=60):
        """Until the program writes nothing more."""
        deadline = time.monotonic() + seconds
        while self.read(0.5):
            if time.monotonic() > deadline:
                raise AssertionError("it does not stop writing:\n" + "\n".join(self.screen.text()))

    def wait_without(self, pattern, seconds=60):
        """Until no line of the screen matches."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not any(re.search(pattern, line) for line in self.screen.text()):
                return
            self.read(0.1)
        raise AssertionError(f"{pattern!r} stays:\n" + "\n".join(self.screen.text()))

    def finish(self, seconds=60):
        """Waits for the program's end. Returns its status as a shell has it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.read(0.1):
                    pass
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            self.read(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("it does not end:\n" + "\n".join(self.screen.text()))

    def wait_until_restored(self, seconds=60):
        deadline = time.monotonic() + seconds
        while not self.is_restored() and time.monotonic() < deadline:
            self.read(0.1)

    def is_restored(self):
        """True if the terminal's modes are what they were."""
        return termios.tcgetattr(self.slave) == self.before
