"""Unix's compress, written for the tests from the description of the format, since the library only unpacks."""

__all__ = ["compress"]


def compress(content: bytes, *, widest: int = 16, clear_after: int | None = None) -> bytes:
    """``content`` as a ``.Z`` file with codes of at most ``widest`` bits; ``clear_after`` codes clear the table."""
    table = {bytes([byte]): byte for byte in range(256)}
    free, width = 257, 9
    out, pending = bytearray([0x1F, 0x9D, 0x80 | widest]), []

    def flush(pad: bool) -> None:
        """Write the codes so far; eight codes take ``width`` bytes, and a group is padded before the width changes."""
        codes = pending + [0] * (-len(pending) % 8 if pad else 0)
        number = sum(code << (width * place) for place, code in enumerate(codes))
        out.extend(number.to_bytes(-(-width * len(codes) // 8), "little"))
        pending.clear()

    word, n_codes = b"", 0
    for byte in content:
        longer = word + bytes([byte])
        if longer in table:
            word = longer
            continue
        pending.append(table[word])
        n_codes += 1
        if free == 1 << width and width < widest:
            flush(pad=True)
            width += 1
        if n_codes == clear_after:
            pending.append(256)
            flush(pad=True)
            table = {bytes([byte]): byte for byte in range(256)}
            free, width, n_codes = 257, 9, 0
        elif free < 1 << widest:
            table[longer] = free
            free += 1
        word = bytes([byte])
    if word:
        pending.append(table[word])
    flush(pad=False)
    return bytes(out)
