"""Finds and changes libc10's device names in the memory of this process.

Two things are located: the static table of ``{const char*, DeviceType}`` pairs that the parser
walks, in read-only data after relocation, and the ``std::string`` with the name of the out-of-tree
backend, in writable data. Both are recognised by content and checked before anything is written.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from cuda_morph.frozen_record import frozen_record

Undo = Callable[[], None]

_MAPS = Path("/proc/self/maps")
_PROT_READ, _PROT_WRITE = 1, 2
_PAIR = struct.Struct("<Qi")
_PAIR_SIZE = 16
_ENTRY = struct.Struct("<Qi4x")  # with its padding
_CUDA = b"cuda\0"
_POINTER_SIZE = 8
_STRING_HEADER = 16  # of libstdc++: pointer and length, then the characters of a short string
_DEVICE_TYPES = 32  # more than c10::DeviceType has
_PATH_COLUMN = 5  # of /proc/self/maps
_SHORT_STRING_CAPACITY = 15


@frozen_record
class Segment:
    """One mapped range of libc10 with its permissions and bytes."""

    start: int
    end: int
    permissions: str

    def read(self) -> bytes:
        """Returns the bytes of the range."""
        return ctypes.string_at(self.start, self.end - self.start)


def obstacle() -> str:
    """Returns why libc10's memory cannot be changed here, or an empty string."""
    if not sys.platform.startswith("linux") or not _MAPS.exists():
        return "memory maps are only known on Linux"
    if sys.byteorder != "little" or struct.calcsize("P") != _POINTER_SIZE:
        return "the table layout is only known on 64-bit little-endian machines"
    return ""


@cache
def _segments() -> tuple[Segment, ...]:
    """Returns libc10's mapped ranges and the anonymous one that follows (its .bss).

    A loaded library stays where it is, so the long list of mappings is read once.
    """
    found: list[Segment] = []
    for line in _MAPS.read_text().splitlines():
        # Of a thousand lines a dozen are looked into.
        ours = "/libc10.so" in line
        if not ours and (not found or "/" in line):
            continue
        fields = line.split()
        start, end = (int(part, 16) for part in fields[0].split("-"))
        if ours or (len(fields) == _PATH_COLUMN and start == found[-1].end):
            found.append(Segment(start=start, end=end, permissions=fields[1]))
    if not found:
        raise LookupError("libc10 is not loaded")
    return tuple(found)


def _occurrences(data: bytes, pattern: bytes) -> Iterator[int]:
    position = data.find(pattern)
    while position >= 0:
        yield position
        position = data.find(pattern, position + 1)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _protect(address: int, size: int, protection: int) -> None:
    page = address & ~(mmap.PAGESIZE - 1)
    length = ctypes.c_size_t(address + size - page)
    if _libc().mprotect(ctypes.c_void_p(page), length, protection) != 0:
        raise OSError(ctypes.get_errno(), "mprotect failed")


def _write(address: int, data: bytes, permissions: str) -> Undo:
    """Writes bytes, through a read-only page if need be; returns how to put them back."""
    before = ctypes.string_at(address, len(data))
    guarded = "w" not in permissions

    def put(value: bytes) -> None:
        if guarded:
            _protect(address, len(value), _PROT_READ | _PROT_WRITE)
        ctypes.memmove(address, value, len(value))
        if guarded:
            _protect(address, len(value), _PROT_READ)

    put(data)
    return lambda: put(before)


@frozen_record
class DeviceTable:
    """The parser's table: address of each entry by name, and the permissions of its page."""

    entries: dict[str, int]
    permissions: str
    kept_alive: list[ctypes.Array[ctypes.c_char]]

    def set_type(self, name: str, type_id: int) -> Undo:
        """Makes `name` parse as another device type; returns the way back."""
        return _write(self.entries[name] + 8, struct.pack("<b", type_id), self.permissions)

    def rename(self, name: str, new_name: str, type_id: int) -> Undo:
        """Makes the entry of `name` answer to `new_name` instead; returns the way back."""
        text = ctypes.create_string_buffer(new_name.encode())
        self.kept_alive.append(text)
        data = struct.pack("<Qb", ctypes.addressof(text), type_id)
        return _write(self.entries[name], data, self.permissions)


_located: DeviceTable | None = None


def locate() -> DeviceTable:
    """Returns the table, searched once per process.

    Raises:
        LookupError: It is not where it was in any version seen.
    """
    global _located
    if _located is None:
        _located = _search()
    return _located


def _search() -> DeviceTable:
    """Looks for an entry of type 0 that an entry of type 1 named ``cuda`` follows.

    Only the few pages of data are read; the names are among a megabyte of code and constants.
    """
    for segment in _segments():
        if "r" not in segment.permissions or "x" in segment.permissions:
            continue
        data = segment.read()
        for start in (0, _POINTER_SIZE):
            for position in _places_of_cuda(data, start):
                entries = _read_entries(segment, data, position)
                if entries is not None:
                    return DeviceTable(
                        entries=entries, permissions=segment.permissions, kept_alive=[]
                    )
    raise LookupError("libc10 has no device table of the known form")


def _places_of_cuda(data: bytes, start: int) -> Iterator[int]:
    end = start + (len(data) - start) // _PAIR_SIZE * _PAIR_SIZE
    previous = -1
    for number, (pointer, type_id) in enumerate(_ENTRY.iter_unpack(data[start:end])):
        follows, previous = previous == 0, type_id
        named = follows and type_id == 1 and segment_of(pointer)
        if named and ctypes.string_at(pointer, len(_CUDA)) == _CUDA:
            yield start + number * _PAIR_SIZE


def _read_entries(segment: Segment, data: bytes, cuda: int) -> dict[str, int] | None:
    """Reads the table around its ``cuda`` entry; ``cpu`` must come right before."""
    first = cuda - _PAIR_SIZE
    entries: dict[str, int] = {}
    end = min(first + _DEVICE_TYPES * _PAIR_SIZE, len(data) - _PAIR_SIZE)
    for position in range(first, end, _PAIR_SIZE):
        pointer, type_id = _PAIR.unpack_from(data, position)
        if not 0 <= type_id < _DEVICE_TYPES or not segment_of(pointer):
            break
        name = ctypes.string_at(pointer).decode("ascii", "replace")
        if not name.isidentifier():
            break
        entries[name] = segment.start + position
    return entries if "cpu" in entries and "cuda" in entries else None


def segment_of(address: int) -> bool:
    """Returns whether an address lies in libc10's mapped memory."""
    return any(segment.start <= address < segment.end for segment in _segments())


def rename_backend(name: str, new_name: str) -> Undo:
    """Exchanges the name of the out-of-tree backend; returns the way back.

    Args:
        name: The present name, at most 15 characters.
        new_name: The name to print instead, at most 15 characters.

    Raises:
        LookupError: The string is not found, or not found exactly once.
    """
    if max(len(name), len(new_name)) > _SHORT_STRING_CAPACITY:
        raise LookupError(f"the name {name!r} is too long to be exchanged in place")
    hits: list[tuple[int, Segment]] = []
    for segment in _segments():
        if "w" not in segment.permissions:
            continue
        data = segment.read()
        for position in _occurrences(data, name.encode() + b"\0"):
            local = segment.start + position
            if position < _STRING_HEADER:
                continue
            pointer, length = struct.unpack_from("<QQ", data, position - _STRING_HEADER)
            if pointer == local and length == len(name):
                hits.append((local - _STRING_HEADER, segment))
    if len(hits) != 1:
        raise LookupError(f"the backend name {name!r} was found {len(hits)} times in libc10")
    address, segment = hits[0]
    text = new_name.encode().ljust(_SHORT_STRING_CAPACITY + 1, b"\0")
    # Length and characters in one go: a thread that prints a device in between would read one of
    # the old and the other of the new name.
    data = struct.pack("<Q", len(new_name)) + text
    return _write(address + _POINTER_SIZE, data, segment.permissions)
