"""arrow_check.py - pyarrow's arrays of every type, through io/arrow, beside what pyarrow itself says of them.

    arrow_check.py LIBRARY [TABLES [SEED]]

LIBRARY has tn_arrow_cells_new, .._head and .._rows. Tables are random: types, nulls, slices of columns and of whole
tables, dictionaries, lists, runs. Each cell must be what to_pylist gives, as a CSV file would write it.
"""
import ctypes
import datetime
import decimal
import math
import random
import struct
import sys

import pyarrow as pa
import pyarrow.compute as pc

TIME_ZONES = {None: 0, "UTC": 0, "+05:30": 19800, "-08:00": -28800}


class Text(ctypes.Structure):  # base/core/text.h
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("capacity", ctypes.c_size_t),
                ("size_max", ctypes.c_size_t), ("failed", ctypes.c_bool), ("over_max", ctypes.c_bool)]


class Error(ctypes.Structure):  # base/core/error.h
    _fields_ = [("code", ctypes.c_int), ("text", ctypes.c_char * 1500)]


class Rows(ctypes.Structure):  # io/arrow/arrow_cells.h
    _fields_ = [("first", ctypes.c_uint64), ("to", ctypes.c_uint64), ("number", ctypes.c_uint64)]


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.tn_arrow_cells_new.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.lib.tn_arrow_cells_head.argtypes = [ctypes.c_void_p] * 3
        self.lib.tn_arrow_cells_rows.argtypes = [ctypes.c_void_p, ctypes.c_void_p, Rows, ctypes.c_void_p, ctypes.c_void_p]
        self.lib.tn_arrow_cells_free.argtypes = [ctypes.c_void_p]

    def cells(self, batch):
        """The bytes of a batch's rows."""
        schema = ctypes.create_string_buffer(72)
        array = ctypes.create_string_buffer(80)
        batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
        cells, text, err = ctypes.c_void_p(), Text(), Error()

        def good(status):
            if status != 0:
                raise SystemExit("refused: %s: %s" % (err.text.decode(), batch.schema))

        good(self.lib.tn_arrow_cells_new(ctypes.byref(cells), schema, b"t", ctypes.byref(err)))
        good(self.lib.tn_arrow_cells_head(cells, ctypes.byref(text), ctypes.byref(err)))
        head = text.size
        for first in range(0, batch.num_rows, 7):  # in pieces, as streams are read
            rows = Rows(first, min(first + 7, batch.num_rows), first)
            good(self.lib.tn_arrow_cells_rows(cells, array, rows, ctypes.byref(text), ctypes.byref(err)))
        self.lib.tn_arrow_cells_free(cells)
        self.lib.tn_text_done.argtypes = [ctypes.c_void_p]
        out = ctypes.string_at(text.data, text.size)[head:]
        self.lib.tn_text_done(ctypes.byref(text))
        # The array's and the schema's own `release`, by importing them again.
        pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))
        return out


def take(data, at):
    """A cell, and where the next begins."""
    kind = data[at]
    at += 1
    if kind == 0:
        return None, at
    if kind == 1:
        size = struct.unpack_from("<I", data, at)[0]
        return ("text", data[at + 4:at + 4 + size]), at + 4 + size
    if kind in (2, 3):
        return ("int" if kind == 2 else "real", struct.unpack_from("<q" if kind == 2 else "<d", data, at)[0]), at + 8
    if kind == 4:
        return ("single", struct.unpack_from("<f", data, at)[0]), at + 4
    n, size = struct.unpack_from("<II", data, at)
    items, end = [], at + 8 + size
    at += 8
    while at < end:
        item, at = take(data, at)
        items.append(item)
    assert n == len(items) and at == end
    return ("list", items), at


def fraction(text):
    """Without zeros at the end of a second's fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def value_type(t):
    while pa.types.is_dictionary(t) or pa.types.is_run_end_encoded(t):
        t = t.value_type
    return t


def wanted(value, t):
    """The cell that a value of pyarrow should be."""
    t = value_type(t)
    if value is None:
        return None
    if isinstance(value, list):
        return ("list", [wanted(v, t.value_type) for v in value])
    if isinstance(value, bool):
        return ("text", str(value).encode())
    if isinstance(value, int):
        return ("int", value) if value < 2 ** 63 else ("text", str(value).encode())
    if isinstance(value, float):
        return ("real" if pa.types.is_float64(t) else "single", value)
    if isinstance(value, bytes):
        return ("text", value)
    if isinstance(value, decimal.Decimal):
        return ("text", format(value, "f").encode())
    if isinstance(value, datetime.datetime):
        return ("text", fraction(value.replace(tzinfo=None).isoformat(" ", "microseconds")).encode())
    if isinstance(value, datetime.date):
        return ("text", value.isoformat().encode())
    if isinstance(value, datetime.time):
        return ("text", fraction(value.isoformat("microseconds")).encode())
    return ("text", value.encode())


def same(found, cell, t):
    if found is None or cell is None:
        return found is cell
    if cell[0] == "list":
        item = value_type(t).value_type
        return found[0] == "list" and len(found[1]) == len(cell[1]) and all(
            same(f, c, item) for f, c in zip(found[1], cell[1]))
    if isinstance(cell[1], float):
        return found[0] == cell[0] and (found[1] == cell[1] or math.isnan(found[1]) and math.isnan(cell[1]))
    if found[0] == "text" and (pa.types.is_temporal(value_type(t))):
        return fraction(found[1].decode()).encode() == cell[1]
    return found == cell


# ---- random columns ----

def text_value(r):
    return "".join(r.choice("aöß→🙂|,\n\"") for _ in range(r.choice([0, 1, 3, 7, 8, 12, 13, 20, 40])))


def scalar_types(r):
    unit = r.choice(["s", "ms", "us", "ns"])
    zone = r.choice(list(TIME_ZONES))
    digits = r.randrange(1, 39)
    types = [pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
             pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.binary(),
             pa.large_binary(), pa.binary(r.randrange(1, 9)), pa.date32(), pa.date64(), pa.time32(r.choice(["s", "ms"])),
             pa.time64(r.choice(["us", "ns"])), pa.timestamp(unit, zone), pa.decimal128(digits, r.randrange(0, digits + 1)),
             pa.decimal256(r.randrange(39, 77), r.randrange(0, 40)), pa.string_view(), pa.binary_view()]
    if hasattr(pa, "decimal32"):
        types += [pa.decimal32(r.randrange(2, 10), r.randrange(0, 3)), pa.decimal64(r.randrange(2, 19), r.randrange(0, 3))]
    return types


def scalar(t, r):
    """A value of a type."""
    kind = pa.types
    if kind.is_boolean(t):
        return r.random() < .5
    if kind.is_integer(t):
        low = 0 if kind.is_unsigned_integer(t) else -2 ** (t.bit_width - 1)
        high = low + 2 ** t.bit_width - 1
        return r.choice([low, high, r.randint(low, high), r.randint(0, 100)])
    if kind.is_float16(t):
        return struct.unpack("<e", struct.pack("<H", r.randrange(65536)))[0]
    if kind.is_float32(t):
        return struct.unpack("<f", struct.pack("<I", r.randrange(2 ** 32)))[0]
    if kind.is_float64(t):
        return r.choice([r.gauss(0, 1), math.nan, math.inf, -0.0, 1e300 * r.random()])
    if kind.is_fixed_size_binary(t):
        return r.randbytes(t.byte_width)
    if kind.is_binary(t) or kind.is_large_binary(t) or kind.is_binary_view(t):
        return r.randbytes(r.choice([0, 1, 12, 13, 30]))
    if kind.is_date32(t) or kind.is_date64(t):
        return datetime.date(1, 1, 1) + datetime.timedelta(r.randrange(3652059))
    if kind.is_time(t):
        step = {"s": 1000000, "ms": 1000, "us": 1, "ns": 1}[t.unit]
        us = r.randrange(86400000000) // step * step
        return datetime.time(us // 3600000000, us // 60000000 % 60, us // 1000000 % 60, us % 1000000)
    if kind.is_timestamp(t):
        step = {"s": 1000000, "ms": 1000, "us": 1, "ns": 1}[t.unit]
        years = (1700, 2200) if t.unit == "ns" else (3, 9990)
        start, end = (datetime.datetime(y, 1, 1) for y in years)
        us = r.randrange((end - start) // datetime.timedelta(microseconds=1))
        moment = start + datetime.timedelta(microseconds=us // step * step)
        zone = datetime.timezone(datetime.timedelta(seconds=TIME_ZONES[t.tz]))
        return moment if t.tz is None else moment.replace(tzinfo=datetime.timezone.utc).astimezone(zone)
    if kind.is_decimal(t):
        digits = r.randrange(0, t.precision + 1)
        whole = r.choice([-1, 1]) * r.randrange(10 ** digits)
        return decimal.Decimal(whole).scaleb(-t.scale, decimal.Context(prec=80))
    return text_value(r)


def scalars(t, n, r):
    nulls = r.choice([0, 0, .3, 1])
    if pa.types.is_null(t):
        return pa.nulls(n)
    return pa.array([None if r.random() < nulls else scalar(t, r) for _ in range(n)], t)


def sliced(make, n, r):
    """An array of n values, often the middle of a longer one."""
    before, after = r.choice([0, 0, 1, 9]), r.choice([0, 3])
    return make(before + n + after).slice(before, n)


def column(n, r, in_list=False):
    how = r.choice(["scalar"] * 3 + ["dictionary", "runs"] + ([] if in_list else ["list", "list", "views"]))
    t = r.choice(scalar_types(r))
    if how == "dictionary" and not pa.types.is_null(t):
        words = sliced(lambda m: scalars(t, m, r), r.randrange(1, 9), r)
        index = r.choice([pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64()])
        codes = sliced(lambda m: pa.array([None if r.random() < .2 else r.randrange(len(words)) for _ in range(m)], index), n, r)
        return pa.DictionaryArray.from_arrays(codes, words)
    if how == "runs":
        ends, last = [], 0
        while last < n + 20:
            last += r.randrange(1, 5)
            ends.append(last)
        index = r.choice([pa.int16(), pa.int32(), pa.int64()])
        values = sliced(lambda m: scalars(t, m, r), len(ends), r)
        return pa.RunEndEncodedArray.from_arrays(pa.array(ends, index), values).slice(r.randrange(20), n)
    if how == "list":
        return lists(n, r)
    if how == "views":
        length = [r.choice([0, 1, 4]) for _ in range(n)]
        items = column(20, r, True)
        kind = r.choice([pa.ListViewArray, pa.LargeListViewArray])
        index = pa.int32() if kind is pa.ListViewArray else pa.int64()
        starts = [r.randrange(20 - m) for m in length]
        return kind.from_arrays(pa.array(starts, index), pa.array(length, index), items)
    return sliced(lambda m: scalars(t, m, r), n, r)


def lists(n, r):
    if r.random() < .3:
        width = r.randrange(0, 4)
        make = lambda m: pa.FixedSizeListArray.from_arrays(column(m * width, r, True), width) if width > 0 else scalars(
            pa.string(), m, r)
        return sliced(make, n, r)

    def make(m):
        kind = r.choice([pa.ListArray, pa.LargeListArray])
        offsets = [0]
        for _ in range(m):
            offsets.append(offsets[-1] + r.choice([0, 0, 1, 2, 5]))
        items = column(offsets[-1], r, True)
        starts = [None if r.random() < .2 and i < m else o for i, o in enumerate(offsets)]
        return kind.from_arrays(pa.array(starts, pa.int32() if kind is pa.ListArray else pa.int64()), items)
    return sliced(make, n, r)


def check(library, number, seed):
    r = random.Random(seed * 1000003 + number)
    n = r.choice([0, 1, 8, 30, 100])
    columns = [column(n, r) for _ in range(r.randrange(1, 9))]
    batch = pa.RecordBatch.from_arrays(columns, ["c%d" % i for i in range(len(columns))])
    if n > 8:
        batch = batch.slice(r.randrange(5), n - 5)
    data, at = library.cells(batch), 0
    values = [c.to_pylist() for c in batch.columns]
    for row in range(batch.num_rows):
        size, index = struct.unpack_from("<IQ", data, at)
        end = at + 4 + size
        at += 12
        assert index == row
        for i, c in enumerate(batch.columns):
            found, at = take(data, at)
            cell = wanted(values[i][row], c.type)
            if not same(found, cell, c.type):
                raise SystemExit("seed %d, table %d, row %d: a %s is %r, pyarrow has %r" % (
                    seed, number, row, c.type, found, cell))
        assert at == end
    assert at == len(data)
    return batch.num_rows * batch.num_columns, {str(c.type).split("[")[0].split("<")[0] for c in batch.columns}


def main():
    library = Library(sys.argv[1])
    tables = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    cells, types = 0, set()
    for number in range(tables):
        more, seen = check(library, number, seed)
        cells += more
        types |= seen
    print("pyarrow %s: %d tables, %d cells, %d kinds of types agree" % (pa.__version__, tables, cells, len(types)))


main()
