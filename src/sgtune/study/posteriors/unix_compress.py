"""Files ``.Z`` of Unix's compress (Welch 1984), which UCI's old archives hold and Python's library cannot read."""

from sgtune.study.posteriors.sources import LARGEST, SourceError

__all__ = ["uncompress"]

MAGIC = b"\x1f\x9d"
FIRST_WIDTH, WIDEST = 9, 16
"""Programs differ on files whose codes never grow beyond 9 bits."""

CLEAR = 256


def uncompress(content: bytes) -> bytes:
    """What a ``.Z`` file holds.

    Codes are little-endian, 9 bits wide at first, one more each time the table is full. They come in groups of 8, and
    where the width changes the rest of a group is padding. The format has no sum and no length of its own.

    Raises:
        SourceError: no such file, or a code that no table has, or more than 256 MiB.
    """
    if content[:2] != MAGIC or len(content) < 3:
        raise SourceError("not a file of Unix's compress; expected it to begin with 1f 9d")
    widest, has_clear = content[2] & 0x1F, bool(content[2] & 0x80)
    if not FIRST_WIDTH < widest <= WIDEST:
        raise SourceError(f"codes of up to {widest} bits; expected {FIRST_WIDTH + 1} to {WIDEST}")
    # Where there is a code that clears the table, it has a place in the table.
    first = [bytes([byte]) for byte in range(256)] + [b""] * has_clear
    table, width, previous = list(first), FIRST_WIDTH, b""
    bits, group, n_bits = 24, 24, 8 * len(content)
    out, size = [], 0
    while bits + width <= n_bits:
        code = int.from_bytes(content[bits // 8 : bits // 8 + 3], "little") >> bits % 8 & (1 << width) - 1
        bits += width
        if has_clear and code == CLEAR:
            group = bits = _end_of_group(bits, group, width)
            table, width, previous = list(first), FIRST_WIDTH, b""
            continue
        if code < len(table):
            entry = table[code]
        elif code == len(table) and previous and len(table) < 1 << widest:
            entry = previous + previous[:1]
        else:
            raise SourceError(f"code {code} at bit {bits - width} stands for nothing")
        out.append(entry)
        size += len(entry)
        if size > LARGEST:
            raise SourceError(f"larger than {LARGEST} bytes")
        if previous and len(table) < 1 << widest:
            table.append(previous + entry[:1])
            if len(table) == 1 << width and width < widest:
                group = bits = _end_of_group(bits, group, width)
                width += 1
        previous = entry
    return b"".join(out)


def _end_of_group(bits: int, group: int, width: int) -> int:
    """Where the 8 codes that ``bits`` is among end, if ``group`` began with codes of ``width``."""
    return group + -(-(bits - group) // (8 * width)) * 8 * width
