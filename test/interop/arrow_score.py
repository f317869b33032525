"""arrow_score.py - rows of a CSV file as a pyarrow batch, scored by tnet_score_arrow, beside what tnet-score printed of the same rows.

    arrow_score.py LIBTNET EXPORT ROWS.CSV PREDICTIONS.TSV [COLUMN=TYPE ..]

TYPE is how a column is given: text, dictionary, list (of texts between |). Every logit must have the same bits.
"""
import ctypes
import struct
import sys

import pyarrow as pa
import pyarrow.csv


class Error(ctypes.Structure):  # serve/tnet.h
    _fields_ = [("code", ctypes.c_int), ("text", ctypes.c_char * 1500)]


def batch_of(path, types):
    text = {name: pa.string() for name in types}
    options = pa.csv.ConvertOptions(column_types=text, strings_can_be_null=True)
    table = pa.csv.read_csv(path, convert_options=options).combine_chunks()
    columns = []
    for name, column in zip(table.column_names, table.columns):
        array = column.combine_chunks()
        if types.get(name) == "dictionary":
            array = array.dictionary_encode()
        elif types.get(name) == "list":
            array = pa.array([None if v is None else v.split("|") for v in array.to_pylist()], pa.list_(pa.string()))
        columns.append(array)
    order = sorted(range(len(columns)), key=lambda i: table.column_names[i], reverse=True)
    return pa.RecordBatch.from_arrays([columns[i] for i in order], [table.column_names[i] for i in order])


def main():
    library, export, path, predictions = sys.argv[1:5]
    batch = batch_of(path, dict(word.split("=") for word in sys.argv[5:]))
    lib, model, scorer, err = ctypes.CDLL(library), ctypes.c_void_p(), ctypes.c_void_p(), Error()

    def good(code):
        if code != 0:
            raise SystemExit("code %d: %s" % (code, err.text.decode()))

    good(lib.tnet_open(export.encode(), 0, ctypes.byref(model), ctypes.byref(err)))
    good(lib.tnet_scorer_new(model, ctypes.byref(scorer), ctypes.byref(err)))
    schema, array = ctypes.create_string_buffer(72), ctypes.create_string_buffer(80)
    batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
    logit = (ctypes.c_float * batch.num_rows)()
    lib.tnet_score_arrow.argtypes = [ctypes.c_void_p] * 6
    good(lib.tnet_score_arrow(scorer, schema, array, logit, None, ctypes.byref(err)))
    pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))  # releases both
    with open(predictions) as lines:
        place = next(lines).split().index("logit")
        wanted = [float(line.split("\t")[place]) for line in lines]
    if len(wanted) != batch.num_rows:
        raise SystemExit("%d rows, %d predictions" % (batch.num_rows, len(wanted)))
    for row, (found, was) in enumerate(zip(logit, wanted)):
        if struct.pack("<f", found) != struct.pack("<f", was):
            raise SystemExit("row %d: %r, tnet-score says %r" % (row, found, was))
    print("%d rows of %d columns score as tnet-score does" % (batch.num_rows, batch.num_columns))


main()
