"""Optuna, Ray and MLflow around a model, where they are installed; the tutorial."""

import os

import numpy as np
import pytest
import tnet
from test_model import fitted


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
