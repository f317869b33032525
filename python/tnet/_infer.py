"""What the columns of data are: slots for a configuration, as `tnet-data infer` chooses them."""

import ctypes
import itertools
import re

import numpy as np

from ._arrow import source_of
from ._library import ArrowArray, ArrowArrayStream, ArrowSchema, DataError, UsageError

ROWS = 50000  # rows that are looked at

_NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8",
            "e": "f2", "f": "f4", "g": "f8"}
_LABELS = ("label", "click", "clicked", "is_click", "target", "y")
_MISSING = {"", "NA", "na", "N/A", "n/a", "NULL", "null", "None", "NaN", "nan", "?", "\\N"}
_GOOD = re.compile(r"[A-Za-z0-9_.-]{1,48}\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T t]\d\d(:\d\d)?|\Z)")


class Column:
    """A column as it looks in the first rows: texts, numbers, lists of either, dates."""

    def __init__(self, name, kind, values, is_list=False):
        self.name, self.kind, self.values, self.is_list = name, kind, values, is_list


def _bytes_at(address, size):
    return (ctypes.c_char * size).from_address(address) if address and size > 0 else b""


def _array_at(address, dtype, n):
    size = np.dtype(dtype).itemsize * n
    return np.frombuffer(_bytes_at(address, size), dtype=dtype, count=n) if n else np.empty(0, dtype)


def _valid(array, n):
    if array.null_count == 0 or array.n_buffers == 0 or not array.buffers[0]:
        return None
    first = array.offset
    bits = _array_at(array.buffers[0], "u1", (first + n + 7) // 8)
    return np.unpackbits(bits, bitorder="little")[first:first + n].astype(bool)


def _texts(fmt, array, n):
    first = array.offset
    if fmt in ("vu", "vz"):
        views = _array_at(array.buffers[1], "u1", (first + n) * 16).reshape(-1, 16)[first:]
        out = []
        for view in views:
            size = int(view[:4].view("i4")[0])
            if size <= 12:
                out.append(bytes(view[4:4 + size]))
            else:
                where = array.buffers[2 + int(view[8:12].view("i4")[0])]
                out.append(bytes(_bytes_at(where + int(view[12:].view("i4")[0]), size)))
        return out
    offsets = _array_at(array.buffers[1], "i8" if fmt in "UZ" else "i4", first + n + 1)[first:]
    data = bytes(_bytes_at(array.buffers[2], int(offsets[-1]))) if n and offsets[-1] else b""
    return [data[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist())]


def _read(schema, array, n):
    """(kind, values, is_list): values are a numpy array of numbers, or a list of texts; those that
    are missing are NaN or None."""
    fmt = (schema.format or b"").decode()
    valid = _valid(array, n)
    if schema.dictionary:
        kind, words, _ = _read(schema.dictionary.contents, array.dictionary.contents,
                               array.dictionary.contents.length)
        codes = _array_at(array.buffers[1], _NUMBERS[fmt], array.offset + n)[array.offset:]
        values = [None if valid is not None and not valid[i] else words[int(c)]
                  for i, c in enumerate(codes)]
        return kind, values if kind == "text" else np.array(values, dtype=float), False
    if fmt in _NUMBERS:
        values = _array_at(array.buffers[1], _NUMBERS[fmt], array.offset + n)[array.offset:]
        if valid is not None:
            values = np.where(valid, values.astype(float), np.nan)
        return "number", values, False
    if fmt == "b":
        bits = _array_at(array.buffers[1], "u1", (array.offset + n + 7) // 8)
        on = np.unpackbits(bits, bitorder="little")[array.offset:array.offset + n]
        return "text", [None if valid is not None and not valid[i] else str(bool(b))
                        for i, b in enumerate(on)], False
    if fmt in ("u", "U", "z", "Z", "vu", "vz"):
        texts = _texts(fmt, array, n)
        return "text", [None if valid is not None and not valid[i] else t.decode("utf-8", "replace")
                        for i, t in enumerate(texts)], False
    if fmt in ("+l", "+L"):
        offsets = _array_at(array.buffers[1], "i8" if fmt == "+L" else "i4",
                            array.offset + n + 1)[array.offset:]
        child = array.children[0].contents
        kind, values, _ = _read(schema.children[0].contents, child,
                                min(child.length, int(offsets[-1]) if n else 0))
        return kind, values[int(offsets[0]) if n else 0:], True
    if fmt.startswith("d:"):
        return "decimal", [], False
    if fmt.startswith(("td", "ts")):
        return "date", [], False
    return "text", [], False


def look(source):
    """The columns of a source by its first rows, and how many rows were looked at."""
    stream, schema = ArrowArrayStream(), ArrowSchema()
    source.fill(stream)
    parts, n_rows = [], 0
    try:
        if stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) != 0:
            raise DataError("the data have no Arrow schema")
        try:
            n = schema.n_children
            while n_rows < ROWS:
                batch = ArrowArray()
                if stream.get_next(ctypes.byref(stream), ctypes.byref(batch)) != 0:
                    raise DataError("the data could not be read")
                if not batch.release:
                    break
                rows = min(batch.length, ROWS - n_rows)
                parts.append([_copied(_read(schema.children[i].contents,
                                            batch.children[i].contents, rows)) for i in range(n)])
                n_rows += rows
                batch.release(ctypes.byref(batch))
            names = [(schema.children[i].contents.name or b"").decode("utf-8", "replace")
                     for i in range(n)]
        finally:
            schema.release(ctypes.byref(schema))
    finally:
        stream.release(ctypes.byref(stream))
    return [_joined(name, [p[i] for p in parts]) for i, name in enumerate(names)], n_rows


def _copied(read):
    kind, values, is_list = read
    return kind, values.copy() if isinstance(values, np.ndarray) else values, is_list


def _joined(name, parts):
    if not parts:
        return Column(name, "text", [])
    kind, first, is_list = parts[0]
    if isinstance(first, np.ndarray):
        return Column(name, kind, np.concatenate([p[1] for p in parts]), is_list)
    return Column(name, kind, list(itertools.chain.from_iterable(p[1] for p in parts)), is_list)


def _as_numbers(texts):
    """The numbers that all texts are, but for words for missing values; None: they are others."""
    there = [t.strip() for t in texts if t is not None and t not in _MISSING]
    if not there or any(t[:1] == "0" and t[1:2].isdigit() for t in there):
        return None
    try:
        return np.array(there, dtype=float)
    except ValueError:
        return None


def _slot_name(column, place):
    if _GOOD.match(column.name):
        return {"name": column.name}
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", column.name)[:48]
    return {"name": f"c{place + 1}{'_' if plain else ''}{plain}", "column": column.name}


def _number_type(column, values, rows):
    """The type of a column of numbers, or a reason why it is none."""
    values = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if len(values) == 0:
        return None, "no value"
    different = len(np.unique(values))
    whole = bool(np.all(np.isfinite(values)) and np.all(values == np.floor(values)))
    if different == 1 and not column.is_list:
        return None, "one value in all rows"
    if whole and different == len(values) and rows >= 20 and not column.is_list:
        return None, "another value in every row"
    few = different <= 1000 and (different * 20 <= rows or column.is_list)
    if whole and (few or column.is_list or column.name.lower().endswith("id")):
        return ("int" if np.min(values) < 0 else "id"), None
    return "float", None


def _text_type(column, rows):
    texts = [t for t in column.values if t is not None and t != ""]
    different = set(texts)
    if not texts:
        return None, "no value"
    if len(different) == 1 and not column.is_list:
        return None, "one value in all rows"
    if len(different) == len(texts) and rows >= 20 and not column.is_list:
        return None, "another value in every row"
    if all(_DATE.match(t) for t in list(different)[:100]):
        return None, "dates, which later rows do not repeat: 'transform: hour' or weekday reads one"
    if all(len(t) == 8 and set(t) <= set("0123456789abcdefABCDEF") for t in different):
        return "hex", None
    return "str", None


def type_of(column, rows, categorical=()):
    """(type of a slot, None), or (None, why no slot is made of the column)."""
    if column.kind == "date":
        return None, "dates, which later rows do not repeat: 'transform: hour' or weekday reads one"
    if column.kind == "decimal":
        return "float", None
    numbers = column.values if column.kind == "number" else _as_numbers(column.values)
    if column.name in categorical:
        whole = column.kind == "number" and column.values.dtype.kind in "iu"
        return ("id" if whole and (len(numbers) == 0 or np.min(numbers) >= 0) else "str"), None
    if numbers is not None:
        return _number_type(column, np.asarray(numbers), rows)
    return _text_type(column, rows)


def slots_of(columns, rows, leave_out=(), categorical=()):
    """The list of slots, and a dictionary of the columns that are none, with the reason."""
    slots, unused = [], {}
    unknown = [c for c in categorical if c not in {x.name for x in columns}]
    if unknown:
        raise UsageError(f"categorical names the column '{unknown[0]}', which the data lack")
    for place, column in enumerate(columns):
        if column.name in leave_out:
            continue
        kind, why = type_of(column, rows, categorical)
        if kind is None:
            unused[column.name] = why
            continue
        slots.append({**_slot_name(column, place), "type": kind})
    return slots, unused


def label_rule(column):
    """What data.label says for a column, by the values in it: a name, or values that are clicks."""
    if column.kind == "number":
        return column.name
    words = sorted({t for t in column.values if t is not None and t != ""})
    if not words or all(w in ("0", "1", "-1", "True", "False", "0.0", "1.0") for w in words):
        return column.name
    if len(words) != 2:
        raise DataError(f"the label '{column.name}' has {len(words)} different texts, such as "
                        f"'{words[0]}': a click is one of two")
    counts = {w: sum(t == w for t in column.values) for w in words}
    positive = next((w for w in words if w.lower() in ("yes", "true", "y", "t", "click", "1")),
                    min(words, key=lambda w: (counts[w], w)))
    return {"column": column.name, "values": {w: int(w == positive) for w in words}}


def find_label(columns):
    """The only column of two values that is called as labels are."""
    found = [c.name for c in columns if c.name.lower() in _LABELS]
    if len(found) != 1:
        raise UsageError("which column is the label? label='NAME' says so" if not found else
                         f"{' and '.join(found)} may be the label: label='NAME' says which")
    return found[0]


class Inferred(dict):
    """The sections `data` and `slots` of a configuration; `unused` says which columns are no slots
    and why; printed, it is YAML."""

    unused = {}

    def __str__(self):
        from ._yaml import dump
        notes = "".join(f"# not a slot: {name}: {why}\n" for name, why in self.unused.items())
        return dump(self) + notes


def infer(data, label=None, *, weight=None, group=None, categorical=()):
    """What the columns of `data` are.

    data: what Model.fit takes. label: the name of its column; None: the one that is called label,
    click, target or the like. Returns a dictionary {"data": .., "slots": [..]}, whose text is YAML.
    """
    columns, rows = look(source_of(data))
    if rows == 0:
        raise DataError("the data hold no rows")
    label = find_label(columns) if label is None else label
    by_name = {c.name: c for c in columns}
    if label not in by_name:
        raise UsageError(f"there is no column '{label}', which label names; the columns are "
                         + ", ".join(by_name))
    slots, unused = slots_of(columns, rows, {label, weight, group}, categorical)
    section = {"label": label_rule(by_name[label])}
    section.update({k: v for k, v in (("weight", weight), ("group", group)) if v is not None})
    out = Inferred(data=section, slots=slots)
    out.unused = unused
    return out
