"""tensorboard_check.py RUN - what TensorBoard reads of RUN/tb, beside RUN/metrics.jsonl."""
import json
import sys

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util


def load(folder):
    reader = event_accumulator.EventAccumulator(folder, size_guidance={"tensors": 0})
    reader.Reload()
    return reader


def curve(reader, tag):
    return {e.step: float(tensor_util.make_ndarray(e.tensor_proto)) for e in reader.Tensors(tag)}


def recorded(run, kind, member):
    points = {}
    for line in open(run + "/metrics.jsonl", encoding="utf-8"):
        record = json.loads(line)
        if record["kind"] == kind and record.get(member) is not None:
            points[record["step"]] = record[member]
    return points


def same(drawn, points):
    return list(drawn) == sorted(points) and all(abs(drawn[s] - points[s]) <= 1e-6 * abs(points[s]) for s in points)


run = sys.argv[1]
train, valid = load(run + "/tb/train"), load(run + "/tb/valid")
for tag in ("loss", "auc", "lr"):
    assert same(curve(train, tag), recorded(run, "train", tag)), tag
for tag in ("loss", "auc"):
    assert same(curve(valid, tag), recorded(run, "eval", tag)), tag
assert same(curve(train, "~system/rows_per_s"), recorded(run, "train", "rows_per_s"))
assert max(t for t in train.Tags()["tensors"] if not t.startswith("_")) > "~system/"
plugins = {}
for reader in (train, valid):
    for tag in reader.Tags()["tensors"]:
        plugins.setdefault(reader.SummaryMetadata(tag).plugin_data.plugin_name, []).append(tag)
assert sorted(plugins) == ["histograms", "hparams", "pr_curves", "scalars", "text"], sorted(plugins)
for tag in plugins["histograms"]:
    bars = tensor_util.make_ndarray(train.Tensors(tag)[-1].tensor_proto)
    assert bars.shape[1] == 3 and bars[:, 2].sum() > 0 and (bars[:, 0] <= bars[:, 1]).all(), tag
assert any(t.startswith("embeddings/s0/") for t in plugins["histograms"])
rates = tensor_util.make_ndarray(valid.Tensors("pr")[-1].tensor_proto)
assert rates.shape == (6, 201) and (rates[0] + rates[3] == rates[0][0]).all()
begun = train.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
choices = plugin_data_pb2.HParamsPluginData.FromString(begun).session_start_info.hparams
assert choices["model.type"].string_value == "deepfm" and choices["embedding.dim"].number_value == 4
nodes = {n.name for n in train.Graph().node}
assert all(i in nodes for n in train.Graph().node for i in n.input)
print("%d curves, %d histograms, %d nodes, %d choices" % (
    len(plugins["scalars"]), len(plugins["histograms"]), len(nodes), len(choices)))
