#!/usr/bin/env python3
"""gather.py - puts the dictionary of an export into its graph.onnx, as matrices that Gather reads.

    python3 gather.py runs/widedeep/export/ID whole.onnx

The new model takes for each slot the number of a row, `row.<slot>` [N] int64, in place of vectors; a key that the
dictionary does not hold has the last one, of zeros. For slots of one value each; needs the packages onnx and numpy.
"""
import json
import struct
import sys

import numpy
import onnx
from onnx import helper, numpy_helper

from tnd import Dictionary, mix


class Rows:
    """Numbers of the rows of a dictionary, and their vectors as a matrix for each segment."""

    def __init__(self, dictionary):
        self.d = dictionary
        self.number = {}
        found = {}
        for table, segments in self.d.tables:
            for i in range(table[0]):
                key = struct.unpack_from("<Q", self.d.data, table[2] + 8 * i)[0]
                group = struct.unpack_from("<H", self.d.data, table[4] + 2 * i)[0] if table[4] else 0
                number = self.number[group, key] = len(self.number)
                for name, vector in self.d.row(table[3] + i * table[7], segments).items():
                    found.setdefault(name, {})[number] = vector
        self.matrix = {}
        for name, vectors in found.items():
            dims = {len(v) for v in vectors.values()}
            if len(dims) > 1:
                sys.exit(f"segment {name} has vectors of different widths: {sorted(dims)}")
            self.matrix[name] = numpy.zeros((len(self.number) + 1, dims.pop()), numpy.float32)
            self.matrix[name][list(vectors)] = list(vectors.values())

    def of(self, group, sign):
        """The number of a sign's row; of none, that of the zeros."""
        number, salt, _ = self.d.groups[group]
        return self.number.get((number, mix(sign ^ salt)), len(self.number))


def build(folder, rows):
    model = onnx.load(f"{folder}/graph.onnx")
    with open(f"{folder}/model.json") as file:
        inputs = [i for i in json.load(file)["inputs"] if "from" in i]
    slots = {}
    nodes = []
    for value in inputs:
        segment = value["name"].removeprefix("in.")
        table = rows.matrix[segment]
        model.graph.initializer.append(numpy_helper.from_array(table, f"table.{segment}"))
        parts = []
        for slot, _, cols in value["from"]:
            if cols != table.shape[1]:
                sys.exit(f"slot {slot} takes several vectors side by side")
            slots[f"row.{slot}"] = None
            parts.append(f"{segment}.{slot}:row")
            nodes.append(helper.make_node("Gather", [f"table.{segment}", f"row.{slot}"], parts[-1:], axis=0))
        nodes.append(helper.make_node("Concat", parts, [value["name"]], axis=1))
    taken = {value["name"] for value in inputs}
    kept = [i for i in model.graph.input if i.name not in taken]
    rest = list(model.graph.node)
    del model.graph.node[:], model.graph.input[:]
    model.graph.node.extend(nodes + rest)
    model.graph.input.extend([helper.make_tensor_value_info(s, onnx.TensorProto.INT64, ["N"]) for s in slots] + kept)
    onnx.checker.check_model(model, full_check=True)
    return model


def main(words):
    if len(words) != 3:
        sys.exit("usage: gather.py EXPORT_DIR OUT.onnx")
    rows = Rows(Dictionary(f"{words[1]}/dict.tnd"))
    model = build(words[1], rows)
    onnx.save(model, words[2])
    print(f"{len(rows.number)} rows;", *(i.name for i in model.graph.input))


if __name__ == "__main__":
    main(sys.argv)
