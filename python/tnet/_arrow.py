"""Data of many kinds as Arrow streams, without pyarrow.

A `Source` gives a fresh ArrowArrayStream for each pass over its rows. What has
`__arrow_c_stream__` (polars, pyarrow, pandas with pyarrow, DuckDB, datasets) is asked for it;
dictionaries of arrays, numpy arrays, pandas without pyarrow and sparse matrices become Arrow arrays
here: numbers without a copy, texts once encoded.
"""

import ctypes
import itertools
import threading

import numpy as np

from ._library import (ARRAY_RELEASE, SCHEMA_RELEASE, STREAM_GET_NEXT, STREAM_GET_SCHEMA,
                       STREAM_LAST_ERROR, STREAM_RELEASE, ArrowArray, ArrowArrayStream, ArrowSchema,
                       DataError, UsageError)

_FORMATS = {"b": b"c", "B": b"C", "h": b"s", "H": b"S", "i": b"i", "I": b"I", "l": b"l", "L": b"L",
            "q": b"l", "Q": b"L", "e": b"e", "f": b"f", "d": b"g"}

# Structs that were given away live until their release is called, on whichever thread.
_alive = {}
_lock = threading.Lock()
_tickets = itertools.count(1)


def _keep(*things):
    ticket = next(_tickets)
    with _lock:
        _alive[ticket] = things
    return ticket


def _release_schema_struct(struct):
    _release_struct(struct.contents, SCHEMA_RELEASE())


def _release_array_struct(struct):
    _release_struct(struct.contents, ARRAY_RELEASE())


def _release_struct(contents, none):
    """Releases the children that a consumer has not moved, then the struct."""
    for i in range(contents.n_children):
        child = contents.children[i]
        if child and child.contents.release:
            child.contents.release(child)
    if contents.dictionary and contents.dictionary.contents.release:
        contents.dictionary.contents.release(contents.dictionary)
    contents.release = none
    with _lock:
        _alive.pop(contents.private_data, None)


_release_schema = SCHEMA_RELEASE(_release_schema_struct)
_release_array = ARRAY_RELEASE(_release_array_struct)


class _Node:
    """An Arrow array: format, length, buffers (numpy arrays or None), children, and its name."""

    def __init__(self, fmt, length, buffers, children=(), name=b"", nulls=0, dictionary=None):
        self.format, self.length, self.buffers = fmt, length, buffers
        self.children, self.name, self.nulls, self.dictionary = children, name, nulls, dictionary

    def fill_schema(self, out):
        structs = [ArrowSchema() for _ in self.children]
        for child, struct in zip(self.children, structs):
            child.fill_schema(struct)
        pointers = (ctypes.POINTER(ArrowSchema) * max(1, len(structs)))(
            *[ctypes.pointer(s) for s in structs])
        values = ArrowSchema() if self.dictionary is not None else None
        if values is not None:
            self.dictionary.fill_schema(values)
        out.format, out.name, out.metadata, out.flags = self.format, self.name, None, 2
        out.n_children, out.children = len(structs), pointers
        out.dictionary = ctypes.pointer(values) if values is not None else None
        out.release = _release_schema
        out.private_data = _keep(self, structs, pointers, values)

    def fill_array(self, out):
        structs = [ArrowArray() for _ in self.children]
        for child, struct in zip(self.children, structs):
            child.fill_array(struct)
        pointers = (ctypes.POINTER(ArrowArray) * max(1, len(structs)))(
            *[ctypes.pointer(s) for s in structs])
        addresses = [b.ctypes.data if b is not None else None for b in self.buffers]
        buffers = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        values = ArrowArray() if self.dictionary is not None else None
        if values is not None:
            self.dictionary.fill_array(values)
        out.length, out.null_count, out.offset = self.length, self.nulls, 0
        out.n_buffers, out.n_children = len(addresses), len(structs)
        out.buffers, out.children = buffers, pointers
        out.dictionary = ctypes.pointer(values) if values is not None else None
        out.release = _release_array
        out.private_data = _keep(self, structs, pointers, buffers, values)


def _bits(mask):
    return np.packbits(np.ascontiguousarray(mask, dtype=bool), bitorder="little")


def _text_node(values, valid):
    """Texts as large_utf8; `valid` is a mask, or None."""
    texts = [v.encode("utf-8", "surrogateescape") if isinstance(v, str) else v for v in values]
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)), out=offsets[1:])
    data = np.frombuffer(b"".join(texts) or b"\0", dtype=np.uint8)
    nulls = 0 if valid is None else int(len(texts) - np.count_nonzero(valid))
    return _Node(b"U", len(texts), [_bits(valid) if nulls else None, offsets, data], nulls=nulls)


def _is_missing(value):
    return value is None or value is _pandas_na() or (isinstance(value, float) and value != value)


def _pandas_na():
    import sys
    pandas = sys.modules.get("pandas")
    return pandas.NA if pandas is not None else None


def _object_node(values):
    """Python objects: texts, numbers as their text, lists."""
    items = values.tolist()
    if any(isinstance(v, (list, tuple, set, np.ndarray)) for v in items):
        return _list_node(items)
    missing = [_is_missing(v) for v in items]
    there = [v for v, m in zip(items, missing) if not m]
    if there and all(isinstance(v, (bool, np.bool_)) for v in there) and len(there) == len(items):
        return _node_of(np.array(items, dtype=bool))
    if there and all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool)
                     for v in there):
        whole = all(isinstance(v, (int, np.integer)) for v in there)
        if not (whole and any(missing)) and not (whole and any(abs(int(v)) >> 63 for v in there)):
            return _node_of(np.array([np.nan if m else v for v, m in zip(items, missing)],
                                     dtype=np.int64 if whole else np.float64))
    texts = ["" if m else v if isinstance(v, (str, bytes)) else str(v)
             for v, m in zip(items, missing)]
    return _text_node(texts, ~np.array(missing, dtype=bool) if any(missing) else None)


def _list_node(items):
    lists = [() if _is_missing_list(v) else
             list(v) if isinstance(v, (list, tuple, set, np.ndarray)) else [v] for v in items]
    offsets = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(v) for v in lists], out=offsets[1:])
    flat = [x for v in lists for x in v]
    values = np.empty(len(flat), dtype=object)
    values[:] = flat
    return _Node(b"+L", len(lists), [None, offsets], [_object_node(values)])


def _is_missing_list(value):
    return not isinstance(value, (list, tuple, set, np.ndarray)) and _is_missing(value)


def _date_node(values):
    unit, count = np.datetime_data(values.dtype)
    missing = np.isnat(values)
    if unit == "D" and count == 1:
        fmt, numbers = b"tdD", values.astype(np.int64).astype(np.int32)
    else:
        numbers = values.astype("datetime64[us]").astype(np.int64)
        fmt = b"tsu:"
    nulls = int(np.count_nonzero(missing))
    return _Node(fmt, len(values), [_bits(~missing) if nulls else None, numbers], nulls=nulls)


def _node_of(values):
    """One column: a one-dimensional array, or what numpy makes one of."""
    if hasattr(values, "categories") and hasattr(values, "codes"):  # pandas' Categorical
        return _category_node(values)
    if isinstance(values, (list, tuple)) and any(
            isinstance(v, (list, tuple, set, np.ndarray)) for v in values):
        return _list_node(list(values))
    array = np.asarray(values)
    if array.ndim != 1:
        if array.ndim != 2:
            raise UsageError(f"a column has one or two dimensions, not shape {array.shape}")
        if array.shape[1] != 1:  # a list for each row
            offsets = np.arange(len(array) + 1, dtype=np.int64) * array.shape[1]
            return _Node(b"+L", len(array), [None, offsets], [_node_of(array.reshape(-1))])
        array = array[:, 0]
    if array.dtype.kind == "b":
        return _Node(b"b", len(array), [None, _bits(array)])
    if array.dtype.kind == "U":
        return _text_node(array.tolist(), None)
    if array.dtype.kind == "S":
        return _text_node(array.tolist(), None)
    if array.dtype.kind == "M":
        return _date_node(array)
    if array.dtype.kind == "O":
        return _object_node(array)
    if array.dtype.kind in "iuf" and array.dtype.itemsize <= 8:
        native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        return _Node(_FORMATS[native.dtype.char], len(native), [None, native])
    raise UsageError(f"a column of {array.dtype} is not read: cast it to numbers or texts")


def _category_node(values):
    codes = np.ascontiguousarray(values.codes, dtype=np.int32)
    missing = codes < 0
    nulls = int(np.count_nonzero(missing))
    categories = np.asarray(values.categories)
    return _Node(b"i", len(codes),
                 [_bits(~missing) if nulls else None, np.where(missing, 0, codes).astype(np.int32)],
                 nulls=nulls, dictionary=_node_of(categories))


# The functions of streams that are made here. They are never freed, since a function may not go
# while it runs; private_data leads to the object.

_FAILED = 5  # EIO


def _object_of(stream):
    return _alive[stream.contents.private_data][0]


def _answer(stream, call):
    made = _object_of(stream)
    try:
        call(made)
        return 0
    except BaseException as error:  # noqa: BLE001: the consumer gets its text
        made.error = ctypes.create_string_buffer(str(error).encode("utf-8", "replace"))
        return _FAILED


def _close(stream):
    made, contents = _object_of(stream), stream.contents
    made.close()
    contents.release = STREAM_RELEASE()
    with _lock:
        _alive.pop(contents.private_data, None)


_get_schema = STREAM_GET_SCHEMA(lambda s, out: _answer(s, lambda m: m.schema(out.contents)))
_get_next = STREAM_GET_NEXT(lambda s, out: _answer(s, lambda m: m.next(out)))
_last_error = STREAM_LAST_ERROR(lambda s: ctypes.addressof(_object_of(s).error))
_close_stream = STREAM_RELEASE(_close)


def _give(made, out):
    """Fills a stream whose functions are those of `made`: schema, next, close."""
    out.get_schema, out.get_next = _get_schema, _get_next
    out.get_last_error, out.release = _last_error, _close_stream
    out.private_data = _keep(made)


class _TableStream:
    """A stream of one batch."""

    def __init__(self, table):
        self.table, self.given = table, False
        self.error = ctypes.create_string_buffer(b"")

    def schema(self, out):
        self.table.fill_schema(out)

    def next(self, out):
        if self.given:
            out.contents.release = ARRAY_RELEASE()
        else:
            self.table.fill_array(out.contents)
            self.given = True

    def close(self):
        pass


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def move_capsule(capsule, out):
    """Moves the stream of a capsule into a struct; the capsule's own is then released."""
    address = _capsule_pointer(capsule, b"arrow_array_stream")
    inner = ArrowArrayStream.from_address(address)
    ctypes.memmove(ctypes.byref(out), address, ctypes.sizeof(ArrowArrayStream))
    inner.release = STREAM_RELEASE()


class Source:
    """Rows that can be read: `fill(out)` begins a pass; `once`: there is a single one."""

    def __init__(self, fill, once=False, columns=None):
        self._fill, self.once, self.columns = fill, once, columns

    def fill(self, out):
        self._fill(out)

    def schema(self):
        """Names and Arrow formats of the columns, as [(name, format, format of the items)]."""
        stream = ArrowArrayStream()
        self._fill(stream)
        schema = ArrowSchema()
        try:
            if stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) != 0:
                raise UsageError("the data have no Arrow schema")
            try:
                return [_described(schema.children[i].contents) for i in range(schema.n_children)]
            finally:
                schema.release(ctypes.byref(schema))
        finally:
            stream.release(ctypes.byref(stream))


def _described(schema):
    name = (schema.name or b"").decode("utf-8", "replace")
    fmt = (schema.format or b"").decode()
    if schema.dictionary:
        return name, "dictionary", None
    item = None
    if fmt.startswith("+") and schema.n_children:
        item = _described(schema.children[0].contents)[1]
    return name, fmt, item


def _table(columns):
    """A source of a dictionary of columns of one length."""
    nodes = []
    for name, values in columns.items():
        node = _node_of(values)
        node.name = str(name).encode("utf-8", "surrogateescape")
        nodes.append(node)
    lengths = {node.length for node in nodes}
    if len(lengths) > 1:
        raise UsageError("columns differ in length: " + ", ".join(
            f"{node.name.decode('utf-8', 'replace')} {node.length}" for node in nodes))
    root = _Node(b"+s", lengths.pop() if lengths else 0, [None], nodes)
    return Source(lambda out: _give(_TableStream(root), out), columns=columns)


def _sparse(matrix, names):
    """A sparse matrix: a list of the indices of its columns, and one of their values."""
    csr = matrix.tocsr()
    csr.sum_duplicates()
    offsets = np.asarray(csr.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(csr.indices, dtype=np.int64)
    values = np.ascontiguousarray(csr.data, dtype=np.float64)
    node = _Node(b"+L", csr.shape[0], [None, offsets], [_node_of(indices)], name=names[0].encode())
    weights = _Node(b"+L", csr.shape[0], [None, offsets], [_node_of(values)],
                    name=names[1].encode())
    return [node, weights]


def is_sparse(data):
    return hasattr(data, "tocsr") and hasattr(data, "nnz")


def source_of(data, extra=None):
    """A Source of any data; `extra`: further columns by name, as label and weight."""
    if isinstance(data, Source):
        return data
    extra = {k: v for k, v in (extra or {}).items() if v is not None}
    if is_sparse(data):
        nodes = _sparse(data, ("x", "x_value"))
        for name, values in extra.items():
            node = _node_of(values)
            node.name = name.encode()
            nodes.append(node)
        root = _Node(b"+s", data.shape[0], [None], nodes)
        return Source(lambda out: _give(_TableStream(root), out))
    if isinstance(data, dict):
        return _table({**data, **extra})
    if isinstance(data, np.ndarray):
        if data.dtype.names:
            return _table({**{n: data[n] for n in data.dtype.names}, **extra})
        matrix = data if data.ndim == 2 else data.reshape(-1, 1)
        return _table({**{f"x{i}": matrix[:, i] for i in range(matrix.shape[1])}, **extra})
    if _is_pandas(data) and (extra or not _has_pyarrow()):
        return _table({**{str(name): _pandas_column(data.iloc[:, i])
                          for i, name in enumerate(data.columns)}, **extra})
    if extra:
        raise UsageError("labels and weights beside the data want arrays or data frames of pandas; "
                         "elsewhere they are columns, and are named")
    if hasattr(data, "__arrow_c_stream__"):
        once = hasattr(data, "read_next_batch")
        return Source(lambda out: move_capsule(data.__arrow_c_stream__(), out), once=once)
    if callable(data):
        return Source(lambda out: source_of(data()).fill(out))
    if hasattr(data, "__next__"):
        return Source(_Chained(data).fill, once=True)
    if _is_pandas(data):
        return _table({str(name): _pandas_column(data[name]) for name in data.columns})
    raise UsageError(f"data of type {type(data).__name__} are not read: give a path, a data frame, "
                     "a dictionary of arrays, an array, or anything with __arrow_c_stream__")


def _is_pandas(data):
    return hasattr(data, "iloc") and hasattr(data, "columns")


def _has_pyarrow():
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def _pandas_column(series):
    if hasattr(series, "cat"):
        return series.array  # its texts, not its codes
    if series.dtype.kind in "iufb" and not hasattr(series.dtype, "numpy_dtype"):
        return series.to_numpy()
    if series.dtype.kind == "M":
        if getattr(series.dtype, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return series.to_numpy()
    return series.to_numpy(dtype=object)


class _Chained:
    """One stream of several pieces of data, each of any kind, of the same columns."""

    def __init__(self, pieces):
        self.pieces, self.stream = pieces, ArrowArrayStream()
        self.error = ctypes.create_string_buffer(b"")

    def fill(self, out):
        if not self._begin():
            raise UsageError("the iterator holds no data")
        _give(self, out)

    def _begin(self):
        """Begins the next piece; False: there is none."""
        piece = next(self.pieces, None)
        if piece is None:
            return False
        source_of(piece).fill(self.stream)
        return True

    def schema(self, out):
        _checked(self.stream, self.stream.get_schema(ctypes.byref(self.stream), ctypes.byref(out)))

    def next(self, out):
        while True:
            _checked(self.stream, self.stream.get_next(ctypes.byref(self.stream), out))
            if out.contents.release:
                return
            self.close()
            if not self._begin():
                return

    def close(self):
        if self.stream.release:
            self.stream.release(ctypes.byref(self.stream))


def _checked(stream, code):
    if code != 0:
        text = stream.get_last_error(ctypes.byref(stream))
        raise DataError(ctypes.string_at(text).decode("utf-8", "replace") if text else
                        "a stream of data failed")
