"""What a compiler leaves behind.

XLA frees hundreds of megabytes once a program is compiled. The C library of Linux keeps a free page for the process
unless it lies at the end of a heap, so that they would count to the end of the fit; `give_back` returns the others.
"""

import ctypes
import sys
import time

EVERY = 0.5  # seconds: a look through all heaps takes milliseconds
_last = -EVERY


def give_back() -> None:
    """Free pages go back to the system, once in `EVERY` at most; nothing happens where the C library cannot do it."""
    global _last
    if _trim is not None and time.monotonic() - _last >= EVERY:
        _trim(0)
        _last = time.monotonic()


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
