"""What a compiler leaves behind.

XLA frees hundreds of megabytes once a program is compiled. The C library of Linux keeps a free page for the process
unless it lies at the end of a heap, so that they would count to the end of the fit; `give_back` returns the others.
"""

import ctypes
import sys
import time
from typing import TypeVar

T = TypeVar("T")
EVERY, SHARE = 0.1, 0.05  # seconds, and share of the time: a look through all heaps takes milliseconds
_next = 0.0


def give_back() -> None:
    """Free pages go back to the system, unless they just did; nothing happens where the C library cannot do it."""
    global _next
    began = time.monotonic()
    if _trim is not None and began >= _next:
        _trim(0)
        ended = time.monotonic()
        _next = ended + max(EVERY, (ended - began) / SHARE)


def kept(value: T) -> T:
    """The value; what making it has left behind goes back."""
    give_back()
    return value


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
