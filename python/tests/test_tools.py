"""Optuna, Ray, MLflow and nanoarrow around a model, where they are installed; the tutorial."""

import ctypes
import os

import numpy as np
import pytest
import tnet
from test_model import SLOTS, fitted, learned


def test_optuna_prunes_what_is_worse(rows, held):
    optuna = pytest.importorskip("optuna")
    from tnet.optuna import PruningCallback
    rates = {}

    def objective(trial):
        rates[trial.number] = trial.suggest_categorical("lr", [0.1, 0.001])
        model = tnet.Model("lr", epochs=3, lr=rates[trial.number], seed=1)
        model.fit(rows, label="click", valid=held, callbacks=[PruningCallback(trial, "auc")])
        return model.evaluate()["auc"]

    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner(2),
                                sampler=optuna.samplers.BruteForceSampler(seed=1))
    study.enqueue_trial({"lr": 0.1})
    study.enqueue_trial({"lr": 0.1})
    study.enqueue_trial({"lr": 0.001})
    study.optimize(objective, n_trials=3)
    assert [t.state.name for t in study.trials] == ["COMPLETE", "COMPLETE", "PRUNED"]
    wrong = optuna.create_study(direction="minimize")
    with pytest.raises(ValueError, match="wants maximize"):
        PruningCallback(wrong.ask(), "auc")


def test_ray_gets_every_evaluation(rows, held):
    pytest.importorskip("ray")
    from tnet.ray import ReportCallback
    seen = []
    fitted(rows, valid=held, callbacks=[ReportCallback(["valid-auc"], report=seen.append)])
    assert [s["training_iteration"] for s in seen] == [1, 2] and seen[1]["valid-auc"] > 0.7


def test_ray_tunes_a_model(rows, held, tmp_path):
    ray = pytest.importorskip("ray")
    pytest.importorskip("pyarrow")
    from ray import tune
    from tnet.ray import ReportCallback

    def trainable(config):
        model = tnet.Model("lr", epochs=2, lr=config["lr"], seed=1, threads=1)
        model.fit(rows, label="click", valid=held, callbacks=[ReportCallback()])

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        found = tune.Tuner(
            trainable, param_space={"lr": tune.grid_search([0.001, 0.1])},
            tune_config=tune.TuneConfig(metric="valid-auc", mode="max"),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0)).fit()
    finally:
        ray.shutdown()
    assert not found.errors and len(found) == 2
    assert found.get_best_result().config["lr"] == 0.1
    assert all(result.metrics["training_iteration"] == 2 for result in found)


def test_nanoarrow_reads_our_arrays():
    na = pytest.importorskip("nanoarrow")
    from nanoarrow.c_array_stream import allocate_c_array_stream
    from tnet import _library
    from tnet._arrow import source_of
    rng = np.random.default_rng(5)
    for n in (0, 1, 7, 64, 1000):
        words = np.array([f"ö{v}" if v % 3 else None for v in rng.integers(0, 99, n)], dtype=object)
        numbers = {name: rng.integers(0, 100, n).astype(name)
                   for name in ("int8", "int16", "int32", "int64", "uint8", "uint64", "float32")}
        lists = [[str(v)] * (v % 4) for v in rng.integers(0, 9, n)]
        data = {**numbers, "words": words, "truth": rng.random(n) < 0.5, "lists": lists}
        stream = allocate_c_array_stream()
        source_of(data).fill(ctypes.cast(stream._addr(), ctypes.POINTER(
            _library.ArrowArrayStream)).contents)
        got = na.Array(stream)
        kinds = [str(got.schema.field(i).type).split(".")[-1].lower() for i in range(len(data))]
        assert kinds[:7] == ["int8", "int16", "int32", "int64", "uint8", "uint64", "float"]
        assert kinds[8] == "bool"
        for chunk in got.iter_chunks():
            na.c_array(chunk).view()  # checks offsets and lengths
        expected = [dict(zip(data, row)) for row in zip(*(
            c.tolist() if isinstance(c, np.ndarray) else c for c in data.values()))]
        assert got.to_pylist() == expected


def test_arrays_of_nanoarrow_make_the_same_model(rows):
    na = pytest.importorskip("nanoarrow")
    by_arrays = learned(fitted(rows))
    users = [str(u) for u in rows["user"]]
    for text in (na.string(), na.large_string(), na.string_view()):
        columns = {"click": na.c_array(rows["click"].tolist(), na.int8()),
                   "user": na.c_array(users, text),
                   "item": na.c_array(rows["item"].tolist(), na.uint32()),
                   "price": na.c_array(rows["price"].tolist(), na.float64())}
        schema = na.struct({name: c.schema for name, c in columns.items()})
        table = na.c_array_from_buffers(schema, len(users), [None], children=columns.values())
        assert learned(fitted(na.Array(table), slots=SLOTS)) == by_arrays


def test_mlflow_saves_and_serves(rows, held, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    pandas = pytest.importorskip("pandas")
    import tnet.mlflow as flavor
    model = fitted(rows)
    flavor.save_model(model, str(tmp_path / "m"))
    frame = pandas.DataFrame({k: v for k, v in held.items() if k != "click"})
    served = mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(frame)
    np.testing.assert_array_equal(served, model.predict(held))
    assert flavor.load_model(str(tmp_path / "m")).model_id == model.scorer().model_id


def test_the_tutorial_runs(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    path = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "tutorial.ipynb")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3",
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
    last = [o for o in notebook.cells[-1].outputs if "data" in o][-1]["data"]["text/plain"]
    assert "0.0" in last  # a saved model scores as the one that was saved
