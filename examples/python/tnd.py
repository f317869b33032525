#!/usr/bin/env python3
"""tnd.py - reads TNet's dictionary dict.tnd, with nothing but the standard library.

    python3 tnd.py dict.tnd user 17         the vectors of sign 17 in share group "user"

Bytes: docs/formats.md 6.6. The header's checksum is looked at, those of the rows are not.
"""
import json
import mmap
import struct
import sys

MASK = (1 << 64) - 1
MAGIC = b"TND1\r\n\x1a\n"
HEADER = struct.Struct("<8sHHI16s16sQQQQQQIIIIIHHHHI")
GROUP = struct.Struct("<QIHBB8H")
TABLE = struct.Struct("<QQQQQQIIBBHI")
SEGMENT = struct.Struct("<IIHBBI")
NONE = 0xFFFFFFFF


def mix(z):
    """A bijection of 64 bits: the key of a row is mix(sign ^ salt of its group)."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def half(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def decode(data, dtype, dim, scale):
    """The floats of a segment: f32, bf16, fp16, int8, int4 or 1bit."""
    if dtype == 0:
        return list(struct.unpack_from(f"<{dim}f", data))
    if dtype == 1:
        return [struct.unpack("<f", struct.pack("<I", x << 16))[0] for x in struct.unpack_from(f"<{dim}H", data)]
    if dtype == 2:
        return [half(x) for x in struct.unpack_from(f"<{dim}H", data)]
    if dtype == 3:
        return [q * scale for q in struct.unpack_from(f"<{dim}b", data)]
    if dtype == 4:
        nibbles = [data[i // 2] >> i % 2 * 4 & 15 for i in range(dim)]
        return [((q ^ 8) - 8) * scale for q in nibbles]
    if dtype == 5:
        return [-scale if data[i // 8] >> i % 8 & 1 else scale for i in range(dim)]
    raise ValueError(f"values of kind {dtype}, which this reader does not know")


class Dictionary:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        head = HEADER.unpack_from(self.data)
        if head[0] != MAGIC or head[1] != 1 or crc32c(self.data[:124]) != head[21] or head[6] != len(self.data):
            raise ValueError(f"{path}: no dictionary of version 1, or damaged")
        if head[16] & 1:
            raise ValueError(f"{path}: a delta, which needs the dictionary that it stands on")
        groups_at, names_at, json_at, (n_groups, n_tables, json_bytes) = head[8], head[9], head[10], head[12:15]
        self.groups, self.tables = {}, []
        for at in range(groups_at, groups_at + n_groups * GROUP.size, GROUP.size):
            salt, name, size, n, _, *tables = GROUP.unpack_from(self.data, at)
            name = self.data[names_at + name : names_at + name + size].decode()
            self.groups[name] = (len(self.groups), salt, tables[:n])
        at = groups_at + n_groups * GROUP.size
        for at in range(at, at + n_tables * 320, 320):
            table = TABLE.unpack_from(self.data, at)
            self.tables.append((table, [SEGMENT.unpack_from(self.data, at + 64 + i * 16) for i in range(table[9])]))
        self.segments = json.loads(self.data[json_at : json_at + json_bytes])["segments"]

    def find(self, group, sign):
        """{segment: [float, ..]} of a sign; None where there is no row."""
        number, salt, tables = self.groups[group]
        key = mix(sign ^ salt)
        for table, segments in (self.tables[t] for t in tables):
            rows, start_at, key_at, rows_at, group_at, base, buckets, stride, shift = table[:9]
            bucket = 0 if shift == 64 else (key - base) >> shift
            if key < base or bucket >= buckets:
                continue
            first, end = struct.unpack_from("<2I", self.data, start_at + 4 * bucket)
            for i in range(first, end):
                if struct.unpack_from("<Q", self.data, key_at + 8 * i)[0] != key:
                    continue
                if group_at == 0 or struct.unpack_from("<H", self.data, group_at + 2 * i)[0] == number:
                    return self.row(rows_at + i * stride, segments)
        return None

    def row(self, at, segments):
        out = {}
        for offset, scale_at, dim, dtype, segment, _ in segments:
            scale = 1 if scale_at == NONE else struct.unpack_from("<f", self.data, at + scale_at)[0]
            out[self.segments[segment]] = decode(self.data[at + offset : at + offset + 4 * dim], dtype, dim, scale)
        return out


def main(words):
    if len(words) != 4:
        sys.exit("usage: tnd.py dict.tnd GROUP SIGN")
    try:
        row = Dictionary(words[1]).find(words[2], int(words[3]))
    except (OSError, ValueError, KeyError, struct.error) as error:
        sys.exit(f"tnd.py: {error!r}")
    if row is None:
        sys.exit(f"tnd.py: no row of sign {words[3]} in group {words[2]}")
    for name, vector in row.items():
        print(name, *(f"{x:.9g}" for x in vector))


if __name__ == "__main__":
    main(sys.argv)
