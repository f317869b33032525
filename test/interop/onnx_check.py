"""onnx_check.py - one graph.onnx: the full checker of ONNX, and onnxruntime beside TNet's predictions.

    onnx_check.py graph.onnx inputs.npz predictions.tsv [calibration.json raw.tsv]

inputs.npz holds the model's inputs row by row, as `tnet-eval --fetch` writes nodes. With a calibration whose
map counts unknown slots, their number is what makes the two logits equal; it must be a whole one. One of knots
is steep here and there, so it is compared by itself: of the logits of raw.tsv, the predictions without it, and
of those at its knots and just beside them.
"""
import json
import sys

import numpy
import onnx
import onnxruntime


def columns(path):
    with open(path) as file:
        head = file.readline().rstrip("\n").split("\t")
        rows = [line.rstrip("\n").split("\t") for line in file]
    scores = {"logit": "logit", "pctr": "pctr", "score": "score", "prediction": "score", "given": "given"}
    found = {}
    for i, name in enumerate(head):
        task, _, what = name.rpartition(".")
        if what in scores:
            found[f"{task}:{scores[what]}" if task else scores[what]] = numpy.array([[float(row[i])] for row in rows])
    return found


def unknown_slots(calibration, raw, logit):
    """m of logit = a z + b + c m."""
    m = (logit - calibration["a"] * raw - calibration["b"]) / calibration["c"]
    if numpy.abs(m - numpy.round(m)).max() > 1e-2:
        sys.exit(f"no whole number of unknown slots: {m[:5]}")
    return numpy.round(m).astype(numpy.float32)


def difference(got, want):
    return max((numpy.abs(got[name] - want[name]) / numpy.maximum(1, numpy.abs(want[name]))).max() for name in got)


def knots_differ(model, calibration, raw, want):
    """Of the map alone: TNet's own logits against its predictions, then every knot and the floats about it
    against the formula in double."""
    part = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model)).extract_model(["logit:raw"], ["logit", "pctr"])
    session = onnxruntime.InferenceSession(part.SerializeToString(), providers=["CPUExecutionProvider"])

    def run(z):
        return dict(zip(("logit", "pctr"), session.run(["logit", "pctr"], {"logit:raw": z.astype(numpy.float32)})))

    worst = difference(run(raw), want)
    knots = numpy.array(calibration["z"], numpy.float32)
    beside = [numpy.nextafter(knots, numpy.float32(to)) for to in (-numpy.inf, numpy.inf)]
    between = numpy.linspace(knots[0] - 1, knots[-1] + 1, 100001, dtype=numpy.float32)
    z = numpy.concatenate([knots, *beside, between, [-numpy.inf, -1e30, 0, 1e30, numpy.inf]]).reshape(-1, 1).astype(numpy.float32)
    p = numpy.interp(z.astype(numpy.float64), calibration["z"], calibration["p"])
    with numpy.errstate(divide="ignore"):
        logit = numpy.clip(numpy.log(p) - numpy.log1p(-p), -16, 16)
    return max(worst, difference(run(z), {"logit": logit, "pctr": 1 / (1 + numpy.exp(-logit))}))


def main(words):
    path, inputs, predictions = words[1:4]
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    names = [node.name for node in model.graph.node]
    if len(set(names)) != len(names) or names != [node.output[0] for node in model.graph.node]:
        sys.exit(f"{path}: nodes are not named after their outputs, each once")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given = numpy.load(inputs)
    want = columns(predictions)
    feed = {}
    calibration = {}
    if len(words) > 4:
        with open(words[4]) as file:
            calibration = json.load(file)["calibration"]
    for value in session.get_inputs():
        if value.name == "in.unknown":
            raw = onnx_raw_logit(model, given)
            feed[value.name] = unknown_slots(calibration, raw, want["logit"])
        else:
            feed[value.name] = given[value.name]
    got = dict(zip((o.name for o in session.get_outputs()), session.run(None, feed)))
    if set(got) != set(want):
        sys.exit(f"{path}: outputs {sorted(got)}, predictions {sorted(want)}")
    worst = difference(got, want)
    note = ""
    if "z" in calibration:
        note = f" ({worst:.2g} with what the logits before the map differ by)"
        worst = knots_differ(model, calibration, columns(words[5])["logit"], want)
    if not worst <= 1e-6:
        sys.exit(f"{path}: predictions differ by {worst:.3g}")
    meta = {p.key for p in model.metadata_props}
    if meta != {"tnet.model_id", "tnet.inputs", "tnet.version"}:
        sys.exit(f"{path}: metadata {meta}")
    print(f"{len(names)} nodes, {len(want['logit'] if 'logit' in want else want['score'])} rows, largest difference {worst:.2g}{note}")


def onnx_raw_logit(model, given):
    """The logit before the calibration, which has a name of its own."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    model.graph.output.append(onnx.helper.make_tensor_value_info("logit:raw", onnx.TensorProto.FLOAT, ["N", 1]))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rows = len(next(iter(given.values())))
    feed = {
        v.name: numpy.zeros((rows, 1), numpy.float32) if v.name == "in.unknown" else given[v.name] for v in session.get_inputs()
    }
    return session.run(["logit:raw"], feed)[0].astype(numpy.float64)


if __name__ == "__main__":
    main(sys.argv)
