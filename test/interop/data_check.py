#!/usr/bin/env python3
"""data_check.py - whether rows.libsvm, rows.libffm, rows.vw or rows.tfrecord, read by another's reader, hold the rows of
rows.csv; or whether model/dense.safetensors and model/dict.tsv give the logits of predictions.tsv. One word says which."""
import csv
import math
import sys

SLOTS = ["s0", "s1", "s2", "s3"]
NUMBERS = ["x0", "x1"]


def csv_rows():
    """label, {slot: [id, ..]}, {number: x}, of each row"""
    with open("rows.csv", encoding="ascii") as file:
        for row in csv.DictReader(file):
            ids = {slot: [int(text) for text in row[slot].split("|") if text] for slot in SLOTS}
            yield int(row["label"]), ids, {name: float(row[name]) for name in NUMBERS}


def same(name, i, found, wanted):
    if found != wanted:
        sys.exit(f"row {i}: {name} {found}, not {wanted}")


def libsvm():
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file("rows.libsvm", zero_based=True)
    rows = list(csv_rows())
    same("rows", "all", x.shape[0], len(rows))
    for i, (label, ids, _) in enumerate(rows):
        same("label", i, y[i], label)
        found = {int(k): v for k, v in zip(x[i].indices, x[i].data)}
        same("indices", i, found, {k: 1 for slot in SLOTS[:3] for k in ids[slot]})
    return f"scikit-learn reads {len(rows)} rows of libsvm, {x.nnz} indices"


def libffm():
    """xLearn keeps what it has read to itself: its predictions of the file are those of its weights on the rows of the csv."""
    import xlearn

    machine = xlearn.create_ffm()
    machine.setTrain("rows.libffm")
    machine.setTXTModel("ffm.txt")
    machine.setQuiet()
    machine.disableLockFree()
    machine.fit({"task": "binary", "lr": 0.2, "lambda": 0.0002, "k": 2, "epoch": 2, "nthread": 1}, "ffm.model")
    machine.setTest("rows.libffm")
    machine.predict("ffm.model", "ffm.pred")
    with open("ffm.txt", encoding="ascii") as lines:
        weights = {name: [float(x) for x in values.split()] for name, values in (line.split(":") for line in lines)}
    with open("ffm.pred", encoding="ascii") as lines:
        logits = [float(line) for line in lines]
    rows = list(csv_rows())
    same("rows", "all", len(logits), len(rows))
    worst = 0
    for logit, (_, ids, numbers) in zip(logits, rows):
        pairs = [(field, k, 1.0) for field, slot in enumerate(SLOTS) for k in ids[slot]]
        pairs += [(len(SLOTS) + i, 0, numbers[name]) for i, name in enumerate(NUMBERS) if numbers[name] != 0]
        norm = 1 / sum(x * x for _, _, x in pairs)
        own = weights["bias"][0] + math.sqrt(norm) * sum(weights[f"i_{k}"][0] * x for _, k, x in pairs)
        for at, (f, k, x) in enumerate(pairs):
            for g, l, y in pairs[at + 1 :]:
                own += norm * x * y * sum(v * w for v, w in zip(weights[f"v_{k}_{g}"], weights[f"v_{l}_{f}"]))
        worst = max(worst, abs(own - logit))
    if math.isnan(worst) or worst > 1e-4:
        sys.exit(f"logits differ by {worst}")
    return f"xLearn reads {len(logits)} rows of libffm: its logits are those of its weights on the rows of the csv, to {worst:.1e}"


def vw():
    import vowpalwabbit

    machine = vowpalwabbit.Workspace("--noconstant --quiet -b 24")
    n, features = 0, 0
    with open("rows.vw", encoding="ascii") as lines:
        for i, ((label, ids, numbers), line) in enumerate(zip(csv_rows(), lines, strict=True)):
            example = machine.parse(line.rstrip("\n"))
            same("label", i, example.get_simplelabel_label(), 1 if label else -1)
            wanted = {(slot, machine.hash_feature(str(k), machine.hash_space(slot)), 1) for slot in SLOTS for k in ids[slot]}
            # a name that is not there stands at the place of the namespace
            wanted |= {(name, machine.hash_space(name), x) for name, x in numbers.items() if x != 0}
            found = set()
            spaces = {slot: space for slot, space in zip(SLOTS + NUMBERS, names_of(line))}
            at = 0
            for c in dict.fromkeys(name[0] for name in spaces.values()):  # VW keeps namespaces by their first letter
                for k in range(example.num_features_in(c)):
                    found.add((example.feature(c, k), round(example.feature_weight(c, k), 3)))
                    at += 1
            mask = (1 << 24) - 1
            same("features", i, {(h & mask, x) for h, x in found}, {(h & mask, round(x, 3)) for _, h, x in wanted})
            n, features = n + 1, features + at
            machine.finish_example(example)
    machine.finish()
    trained = vowpalwabbit.Workspace("-d rows.vw --noconstant --loss_function logistic --quiet")
    same("examples", "all", int(trained.get_weighted_examples()), n)
    trained.finish()
    return f"VW reads {n} examples, {features} features"


def names_of(line):
    return [piece.split()[0] for piece in line.split("|")[1:]]


def tfrecord():
    import numpy as np
    import tensorflow as tf

    spec = {slot: tf.io.VarLenFeature(tf.int64) for slot in SLOTS}
    spec |= {name: tf.io.FixedLenFeature([], tf.float32) for name in ["label"] + NUMBERS}
    records = list(tf.data.TFRecordDataset("rows.tfrecord").as_numpy_iterator())
    batch = tf.io.parse_example(records, spec)
    values = {slot: [[] for _ in records] for slot in SLOTS}
    for slot in SLOTS:
        for (row, _), value in zip(batch[slot].indices.numpy(), batch[slot].values.numpy()):
            values[slot][row].append(int(value))
    n = 0
    for i, (label, ids, numbers) in enumerate(csv_rows()):
        same("label", i, float(batch["label"][i]), label)
        same("ids", i, {slot: values[slot][i] for slot in SLOTS}, ids)
        same("numbers", i, {name: float(batch[name][i]) for name in NUMBERS}, {k: float(np.float32(x)) for k, x in numbers.items()})
        n += 1
    same("rows", "all", len(records), n)
    return f"TensorFlow {tf.__version__} parses {n} tf.Examples"


def model():
    import numpy as np
    from safetensors.numpy import load_file

    dense = load_file("model/dense.safetensors")
    with open("model/dict.tsv", encoding="ascii") as lines:
        table = [line.rstrip("\n").split("\t") for line in lines][3:]
    wide = {(row[0], int(row[1])): float(row[5]) for row in table}
    deep = {(row[0], int(row[1])): np.array(row[6].split(), dtype=np.float64) for row in table}
    with open("predictions.tsv", encoding="ascii") as lines:
        logits = [float(line.split("\t")[3]) for line in list(lines)[1:]]
    worst = 0
    for logit, (_, ids, _) in zip(logits, csv_rows(), strict=True):
        keys = {slot: [(slot, k) for k in ids[slot]] for slot in SLOTS}
        x = np.concatenate([sum((deep[k] for k in keys[slot]), np.zeros(4)) for slot in SLOTS])
        hidden = np.maximum(x @ dense["deep.1.W"] + dense["deep.1.b"][0], 0)
        own = sum(wide[k] for slot in SLOTS for k in keys[slot]) + float(hidden @ dense["deep.2.W"][:, 0] + dense["deep.2.b"][0, 0])
        worst = max(worst, abs(own - logit))
    if math.isnan(worst) or worst > 1e-5:
        sys.exit(f"logits differ by {worst}")
    return f"safetensors and dict.tsv give the logits of {len(logits)} rows, to {worst:.1e}"


print({"libsvm": libsvm, "libffm": libffm, "vw": vw, "tfrecord": tfrecord, "model": model}[sys.argv[1]]())
