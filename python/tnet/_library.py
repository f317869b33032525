"""The C libraries, their structs and errors, by ctypes.

libtnet-train.so trains (src/api/tnet_train.h), libtnet.so scores exports (src/serve/tnet.h). They are
looked for in the folder that the environment variable TNET_LIBRARY_PATH names, beside this file (as
in a wheel), and where the system's loader looks.
"""

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int,
                    c_int64, c_size_t, c_uint, c_uint64, c_void_p)


class TNetError(Exception):
    """A failure of TNet: one sentence, and `code`, the exit code of its programs."""

    code = 1


class UsageError(TNetError, ValueError):
    """A call that makes no sense (code 2)."""


class ConfigError(TNetError, ValueError):
    """Options that are wrong, or are not those of the model (code 3)."""


class DataError(TNetError, ValueError):
    """Data that are missing or cannot be read (codes 4 and 10)."""


class ModelError(TNetError, RuntimeError):
    """A checkpoint or an export that is missing or damaged (code 5)."""


class OutOfMemory(TNetError, MemoryError):
    """There is no memory (code 7)."""


class StorageError(TNetError, OSError):
    """The system refused to read or write (code 8)."""


class Diverged(TNetError, ArithmeticError):
    """A loss or a gradient is not finite (code 9)."""


class Stopped(TNetError):
    """Training was stopped before its end; the model is kept (code 75)."""


ERRORS = {2: UsageError, 3: ConfigError, 4: DataError, 5: ModelError, 7: OutOfMemory,
          8: StorageError, 9: Diverged, 10: DataError, 75: Stopped}


class ErrorStruct(Structure):
    _fields_ = [("code", c_int), ("text", c_char * 1500)]


def raise_for(error):
    """Raises the exception of a tnet_error."""
    kind = ERRORS.get(error.code, TNetError)
    exception = kind(error.text.decode("utf-8", "replace"))
    exception.code = error.code
    raise exception


class ArrowSchema(Structure):
    pass


class ArrowArray(Structure):
    pass


class ArrowArrayStream(Structure):
    pass


SCHEMA_RELEASE = CFUNCTYPE(None, POINTER(ArrowSchema))
ARRAY_RELEASE = CFUNCTYPE(None, POINTER(ArrowArray))
STREAM_GET_SCHEMA = CFUNCTYPE(c_int, POINTER(ArrowArrayStream), POINTER(ArrowSchema))
STREAM_GET_NEXT = CFUNCTYPE(c_int, POINTER(ArrowArrayStream), POINTER(ArrowArray))
STREAM_LAST_ERROR = CFUNCTYPE(c_void_p, POINTER(ArrowArrayStream))
STREAM_RELEASE = CFUNCTYPE(None, POINTER(ArrowArrayStream))

ArrowSchema._fields_ = [
    ("format", c_char_p), ("name", c_char_p), ("metadata", c_char_p), ("flags", c_int64),
    ("n_children", c_int64), ("children", POINTER(POINTER(ArrowSchema))),
    ("dictionary", POINTER(ArrowSchema)), ("release", SCHEMA_RELEASE), ("private_data", c_void_p)]
ArrowArray._fields_ = [
    ("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
    ("n_children", c_int64), ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(ArrowArray))), ("dictionary", POINTER(ArrowArray)),
    ("release", ARRAY_RELEASE), ("private_data", c_void_p)]
ArrowArrayStream._fields_ = [
    ("get_schema", STREAM_GET_SCHEMA), ("get_next", STREAM_GET_NEXT),
    ("get_last_error", STREAM_LAST_ERROR), ("release", STREAM_RELEASE), ("private_data", c_void_p)]


class Progress(Structure):
    """How far a run is: steps, rows, epochs, done (share), seconds, loss."""

    _fields_ = [("size", c_size_t), ("steps", c_uint64), ("rows", c_uint64), ("epochs", c_double),
                ("done", c_double), ("seconds", c_double), ("loss", c_double)]


class Value(Structure):
    _fields_ = [("data", c_char_p), ("metric", c_char_p), ("value", c_double)]


LINE = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_int)
RECORD = CFUNCTYPE(None, c_void_p, POINTER(c_char), c_size_t)
PROGRESS = CFUNCTYPE(c_int, c_void_p, POINTER(Progress))
EVALUATED = CFUNCTYPE(c_int, c_void_p, c_uint64, POINTER(Value), c_size_t)
METRIC = CFUNCTYPE(c_double, c_void_p, POINTER(c_float), POINTER(c_float), POINTER(c_float),
                   c_size_t)
OPEN = CFUNCTYPE(c_int, c_void_p, POINTER(ArrowArrayStream), POINTER(c_char))
TAKE = CFUNCTYPE(c_int, c_void_p, POINTER(c_float), POINTER(c_float), c_size_t)


class Hooks(Structure):
    _fields_ = [("size", c_size_t), ("arg", c_void_p), ("line", LINE), ("record", RECORD),
                ("progress", PROGRESS), ("evaluated", EVALUATED), ("metric", METRIC)]


class RunOptions(Structure):
    _fields_ = [("size", c_size_t), ("config", c_char_p), ("path", c_char_p),
                ("overrides", POINTER(c_char_p)), ("n_overrides", c_size_t),
                ("hooks", POINTER(Hooks))]


class Stream(Structure):
    _fields_ = [("size", c_size_t), ("open", OPEN), ("arg", c_void_p), ("once", c_int)]


def _load(name):
    folders = [os.environ.get("TNET_LIBRARY_PATH"), os.path.dirname(__file__)]
    for folder in folders:
        path = os.path.join(folder, name) if folder else None
        if path and os.path.exists(path):
            return ctypes.CDLL(path)
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(
            f"cannot load {name}: {error}; install the wheel, or name the folder that has it in "
            "TNET_LIBRARY_PATH") from None


def _declare(library, result, name, *arguments):
    function = getattr(library, name)
    function.restype = result
    function.argtypes = arguments
    return function


_E = POINTER(ErrorStruct)
_train = _load("libtnet-train.so.1")
run_new = _declare(_train, c_int, "tnet_run_new", POINTER(RunOptions), POINTER(c_void_p), _E)
run_open = _declare(_train, c_int, "tnet_run_open", POINTER(RunOptions), POINTER(c_void_p), _E)
run_free = _declare(_train, None, "tnet_run_free", c_void_p)
run_set = _declare(_train, c_int, "tnet_run_set", c_void_p, c_char_p, _E)
run_data = _declare(_train, c_int, "tnet_run_data", c_void_p, c_int, POINTER(Stream), _E)
run_train_as = _declare(_train, c_int, "tnet_run_train_as", c_void_p, c_uint, _E)
run_checkpoint = _declare(_train, None, "tnet_run_checkpoint", c_void_p)
run_stop = _declare(_train, None, "tnet_run_stop", c_void_p)
run_evaluate = _declare(_train, c_int, "tnet_run_evaluate", c_void_p, POINTER(Stream),
                        POINTER(c_void_p), _E)
run_importance = _declare(_train, c_int, "tnet_run_importance", c_void_p, POINTER(Stream), c_int,
                          POINTER(c_void_p), _E)
run_predict = _declare(_train, c_int, "tnet_run_predict", c_void_p, POINTER(Stream), TAKE, c_void_p,
                       _E)
run_export = _declare(_train, c_int, "tnet_run_export", c_void_p, c_char_p, POINTER(c_char), _E)
run_save = _declare(_train, c_int, "tnet_run_save", c_void_p, c_char_p, _E)
run_dir = _declare(_train, c_char_p, "tnet_run_dir", c_void_p)
text_free = _declare(_train, None, "tnet_text_free", c_void_p)

_score = _load("libtnet.so.1")
model_open = _declare(_score, c_int, "tnet_open", c_char_p, c_int, POINTER(c_void_p), _E)
model_close = _declare(_score, None, "tnet_close", c_void_p)
model_id = _declare(_score, c_char_p, "tnet_model_id", c_void_p)
model_rows = _declare(_score, c_uint64, "tnet_rows", c_void_p)
n_fields = _declare(_score, c_int, "tnet_n_fields", c_void_p)
field_name = _declare(_score, c_char_p, "tnet_field_name", c_void_p, c_int)
field_of = _declare(_score, c_int, "tnet_field", c_void_p, c_char_p)
field_is_number = _declare(_score, c_int, "tnet_field_is_number", c_void_p, c_int)
clear_rows = _declare(_score, None, "tnet_clear", c_void_p)
begin_shared = _declare(_score, c_int, "tnet_begin_shared", c_void_p, _E)
end_row = _declare(_score, c_int, "tnet_end_row", c_void_p, _E)
add_text = _declare(_score, c_int, "tnet_add_text", c_void_p, c_int, c_char_p, c_size_t, c_float,
                    _E)
add_number = _declare(_score, c_int, "tnet_add_number", c_void_p, c_int, c_double, _E)
scorer_new = _declare(_score, c_int, "tnet_scorer_new", c_void_p, POINTER(c_void_p), _E)
scorer_free = _declare(_score, None, "tnet_scorer_free", c_void_p)
version = _declare(_score, c_char_p, "tnet_version")
score_arrow = _declare(_score, c_int, "tnet_score_arrow", c_void_p, POINTER(ArrowSchema),
                       POINTER(ArrowArray), POINTER(c_float), POINTER(c_float), _E)


def check(code, error):
    """Raises the exception of a call that has failed."""
    if code != 0:
        raise_for(error)
