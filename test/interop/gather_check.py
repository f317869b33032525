"""gather_check.py - the model that examples/python/gather.py makes of an export gives TNet's predictions.

    gather_check.py EXPORT_DIR rows.tsv inputs.npz predictions.tsv     rows of the Criteo form, slots C1 ..
"""
import sys

import numpy
import onnxruntime

from gather import Rows, build
from onnx_check import columns
from tnd import Dictionary


def main(words):
    folder, data, inputs, predictions = words[1:5]
    rows = Rows(Dictionary(f"{folder}/dict.tnd"))
    session = onnxruntime.InferenceSession(build(folder, rows).SerializeToString(), providers=["CPUExecutionProvider"])
    with open(data) as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    given = numpy.load(inputs)
    feed = {}
    for value in session.get_inputs():
        if value.name.startswith("row.C"):
            slot = value.name[4:]
            column = 13 + int(slot[1:])
            feed[value.name] = numpy.array([rows.of(slot, int(line[column], 16)) if line[column] else len(rows.number) for line in lines])
        else:
            feed[value.name] = given[value.name]
    got = session.run(["logit"], feed)[0]
    want = columns(predictions)["logit"]
    worst = numpy.abs(got - want).max() / max(1, numpy.abs(want).max())
    if not worst <= 1e-6:
        sys.exit(f"{folder}: predictions differ by {worst:.3g}")
    print(f"{len(rows.number)} rows of the dictionary by Gather, largest difference {worst:.2g}")


if __name__ == "__main__":
    main(sys.argv)
