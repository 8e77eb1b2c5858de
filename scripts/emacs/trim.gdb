# SPDX-License-Identifier: GPL-2.0-or-later
# Calls malloc_trim(0) in the process that gdb is attached to, unless a thread is inside malloc: the
# allocator's locks are not recursive, so the call would never return.
python
import re

# What glibc 2.36's malloc/malloc.c calls its functions.
ALLOCATOR = re.compile(
    r"_*(int_|libc_)?(malloc|calloc|realloc|free|memalign|sysmalloc|systrim|tcache)\w*")

def frames(thread):
    thread.switch()
    frame = gdb.newest_frame()
    while frame is not None:
        yield frame.name() or ""
        try:
            frame = frame.older()
        except gdb.error:
            return

def busy():
    for thread in gdb.selected_inferior().threads():
        for depth, name in enumerate(frames(thread)):
            # The allocator's own call chains are short; Emacs has Lisp functions of such names too.
            if depth < 8 and ALLOCATOR.fullmatch(name):
                return name
    return None

inside = busy()
if inside:
    print("a thread is inside " + inside + ": try again")
else:
    gdb.execute("call (int)malloc_trim(0)")
    print("trimmed")
end
