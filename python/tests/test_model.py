"""Models from data in memory: the bits of tnet-train's, scores, errors, interruptions."""

import glob
import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import tnet
from conftest import make_rows, write_csv

SLOTS = [{"name": "user", "type": "str"}, {"name": "item", "type": "id"},
         {"name": "price", "type": "float"}]


def learned(model):
    """A hash of all that was learned: rows and weights of the newest checkpoint."""
    newest = sorted(glob.glob(os.path.join(glob.escape(model.dir), "ckpt-*")))[-1]
    out = hashlib.sha256()
    for name in sorted(os.listdir(newest)):
        if name.startswith(("dense", "sparse")):
            with open(os.path.join(newest, name), "rb") as file:
                out.update(file.read())
    return out.hexdigest()


def fitted(data, **more):
    options = {"valid": None, "label": "click", "slots": SLOTS, **more}
    return tnet.Model("deepfm", epochs=2, seed=3, threads=2).fit(data, **options)


def test_rows_in_memory_make_the_model_of_the_same_csv(rows, held, tmp_path):
    train, valid = write_csv(tmp_path / "t.csv", rows), write_csv(tmp_path / "v.csv", held)
    by_file = fitted(train, valid=valid)
    in_memory = fitted(rows, valid=held)
    assert learned(in_memory) == learned(by_file)
    assert in_memory.evaluate()["auc"] == by_file.evaluate()["auc"] > 0.7


def test_a_matrix_of_numbers_is_a_slot_as_lists_and_texts_are(tmp_path):
    rng = np.random.default_rng(4)
    matrix = np.round(rng.random((900, 3)) - .5, 3).astype(np.float32)
    click = (matrix[:, 0] * matrix[:, 1] + matrix[:, 2] / 20 > 0).astype(np.int64)
    user = rng.integers(0, 9, 900)
    slots = ["user", "item", {"name": "title", "type": "vector", "dim": 3, "list": "|"}]
    item = rng.integers(0, 5, 900)
    texts = ["|".join(f"{x:.3f}" for x in row) for row in matrix]
    models = [fitted({"click": click, "user": user, "item": item, "title": title}, slots=slots)
              for title in (matrix, list(matrix), matrix.tolist(), texts)]
    path = write_csv(tmp_path / "t.csv", {"click": click, "user": user, "item": item,
                                          "title": np.array(texts)})
    models.append(fitted(path, slots=slots))
    assert len({learned(m) for m in models}) == 1
    assert np.array_equal(models[0].predict({"user": user, "item": item, "title": matrix}),
                          models[0].predict({"user": user, "item": item, "title": texts}))
    with pytest.raises(tnet.DataError, match="row 1: error: 2 numbers in slot 'title'"):
        models[0].predict({"user": [1, 2], "item": [1, 2], "title": [[1, 2, 3], [1, 2]]})


def test_columns_are_typed_as_infer_does(rows):
    found = tnet.infer(rows)
    assert found["data"] == {"label": "click"}
    assert found["slots"] == SLOTS
    assert "label: \"click\"" in str(found)


def test_columns_that_are_no_slots_are_told():
    n = 40
    data = {"click": [0, 1] * 20, "row": list(range(n)), "same": [7] * n,
            "user": ["a", "b", "c", "d"] * 10,
            "day": np.array(["2026-11-30"] * n, dtype="datetime64[D]")}
    found = tnet.infer(data)
    assert [s["name"] for s in found["slots"]] == ["user"]
    assert set(found.unused) == {"row", "same", "day"}


def test_scores_do_not_depend_on_order_or_number_of_columns(rows, held):
    model = fitted(rows)
    p = model.predict(held)
    assert p.shape == (2000,) and p.dtype == np.float32 and 0 < p.min() and p.max() < 1
    turned = {"price": held["price"], "other": held["price"], "item": held["item"],
              "user": held["user"]}
    np.testing.assert_array_equal(model.predict(turned), p)
    half = {k: v[:1000] for k, v in turned.items()}
    np.testing.assert_allclose(model.predict(half), p[:1000], atol=1e-6)


def test_a_missing_column_is_named(rows):
    model = fitted(rows)
    with pytest.raises(tnet.DataError, match="item"):
        model.predict({"user": ["user 1"], "price": [1.0]})
    with pytest.raises(tnet.DataError, match="'click'"):
        fitted({"user": ["a"], "item": [1], "price": [1.0]})


def test_a_fault_names_row_and_column(rows):
    bad = {**rows, "item": rows["item"].astype(object)}
    bad["item"][17] = "seven"
    with pytest.raises(tnet.DataError, match="row 17.*column 'item'.*\"seven\""):
        fitted(bad)


def test_missing_values_are_missing(rows, tmp_path):
    n = len(rows["click"])
    price = rows["price"].copy()
    price[::7] = np.nan
    user = rows["user"].copy()
    user[::5] = None
    holes = {**rows, "price": price, "user": user}
    text = {**rows, "price": ["" if np.isnan(p) else repr(float(p)) for p in price],
            "user": ["" if u is None else u for u in user]}
    assert n == 6000
    assert learned(fitted(holes)) == learned(fitted(write_csv(tmp_path / "t.csv", text)))


def test_lists_and_their_weights(rows, tmp_path):
    tags = [["a"] * (u % 3) + [f"t{u}"] for u in rows["item"]]
    weights = [[0.5] * len(t) for t in tags]
    slots = [{"name": "tags", "type": "str", "list": "|", "values": "w"}]
    data = {"click": rows["click"], "tags": tags, "w": weights}
    text = {"click": rows["click"], "tags": ["|".join(t) for t in tags],
            "w": ["|".join(map(str, w)) for w in weights]}
    one = tnet.Model("fm", epochs=1, seed=1).fit(data, label="click", slots=slots)
    two = tnet.Model("fm", epochs=1, seed=1).fit(write_csv(tmp_path / "t.csv", text), label="click",
                                                 slots=slots)
    assert learned(one) == learned(two)


def test_rows_that_come_once_are_kept_for_more_passes(rows):
    pieces = ({k: v[i:i + 1000] for k, v in rows.items()} for i in range(0, 6000, 1000))
    assert learned(fitted(pieces)) == learned(fitted(rows))
    with pytest.raises(tnet.UsageError, match="come once"):
        tnet.Model("lr").fit(iter([rows]), label="click")


def test_a_function_gives_the_rows_of_each_pass(rows):
    passes = []

    def give():
        passes.append(1)
        return rows

    assert learned(fitted(give)) == learned(fitted(rows))
    assert len(passes) >= 2


def test_arrays_beside_the_data(rows):
    X = np.column_stack([rows["item"], rows["price"]]).astype(float)
    model = tnet.Model("lr", epochs=3, seed=1).fit((X, rows["click"]))
    assert model.predict(X).shape == (6000,)
    assert model.evaluate((X, rows["click"]))["auc"] > 0.55


def test_a_model_is_exported_saved_and_loaded(rows, held, tmp_path):
    model = fitted(rows)
    p = model.predict(held)
    scorer = model.export(tmp_path / "ads")
    np.testing.assert_array_equal(scorer.predict(held), p)
    assert len(scorer.model_id) == 32 and set(scorer.fields) == {"user", "item", "price"}
    np.testing.assert_array_equal(tnet.load(scorer.dir).predict(held), p)
    model.save(tmp_path / "kept")
    again = tnet.load(tmp_path / "kept")
    np.testing.assert_array_equal(again.predict(held), p)
    with pytest.raises(tnet.UsageError, match="is there already"):
        model.save(tmp_path / "kept")


def test_a_model_goes_on_as_one_run_would_have(rows, tmp_path):
    def learn(epochs, **more):
        model = tnet.Model("deepfm", epochs=epochs, batch=256, seed=3, threads=2, **more)
        return model.fit(rows, label="click", slots=SLOTS)

    wanted = learned(learn(3))
    assert learned(learn(1).go_on(3)) == wanted
    learn(1, dir=str(tmp_path / "kept")).close()
    again = tnet.load(tmp_path / "kept")
    assert learned(again.go_on(3, rows)) == wanted
    with pytest.raises(tnet.UsageError, match="holds a model already"):
        learn(1, dir=str(tmp_path / "kept"))


def test_many_candidates_of_one_user(rows):
    scorer = fitted(rows).scorer()
    n = 700
    candidates = {"item": np.arange(n) % 50, "price": np.linspace(0, 10, n)}
    whole = {"user": ["user 7"] * n, **candidates}
    for output in ("probability", "logit"):
        np.testing.assert_allclose(
            scorer.predict_candidates({"user": "user 7"}, candidates, output=output),
            scorer.predict(whole, output=output), atol=2e-6)
    many = scorer.predict_candidates({"user": "user 7", "price": 3.5}, {"item": [1, 2]})
    np.testing.assert_allclose(many, scorer.predict(
        {"user": ["user 7"] * 2, "price": [3.5] * 2, "item": [1, 2]}), atol=2e-6)
    with pytest.raises(tnet.UsageError, match="no field 'usr'"):
        scorer.predict_candidates({"usr": "user 7"}, candidates)
    with pytest.raises(tnet.DataError, match="'item'"):
        scorer.predict_candidates({"user": "user 7"}, {"price": [1.0]})
    np.testing.assert_array_equal(scorer.predict(whole), scorer.predict(whole))


def test_callbacks_get_evaluations_and_end_training(rows, held):
    seen = {}
    model = tnet.Model("deepfm", epochs=20, seed=1)
    model.fit(rows, label="click", slots=SLOTS, valid=held,
              callbacks=[tnet.callbacks.record_evaluation(seen),
                         tnet.callbacks.early_stopping(1, first_metric_only=True, verbose=False)])
    assert 1 < len(seen["valid"]["auc"]) < 20
    assert seen == {"valid": {k: v for k, v in model.evals_result_["valid"].items()}}
    assert not model.stopped


def test_a_metric_of_ones_own(rows, held):
    def brier(y, p):
        assert y.shape == p.shape == (2000,)
        return "brier", float(np.mean((y - p) ** 2)), False

    model = fitted(rows, valid=held, metric=brier)
    assert len(model.evals_result_["valid"]["brier"]) == 2
    p = model.predict(held)
    assert abs(np.mean((held["click"] - p) ** 2) - model.evals_result_["valid"]["brier"][-1]) < 0.01


def test_an_exception_of_a_callback_is_handed_on(rows, held):
    def fail(env):
        raise KeyError("mine")

    model = tnet.Model("deepfm", epochs=20, seed=1)
    with pytest.raises(KeyError, match="mine"):
        model.fit(rows, label="click", slots=SLOTS, valid=held, callbacks=[fail])
    assert model.predict(held).shape == (2000,)


def test_an_exception_of_the_data_is_handed_on(rows):
    def give():
        raise ZeroDivisionError("no rows today")

    with pytest.raises(ZeroDivisionError, match="no rows today"):
        fitted(give)


def test_errors_are_exceptions_with_codes(rows):
    with pytest.raises(tnet.ConfigError, match="unknown model 'deepfn'") as error:
        tnet.Model("deepfn").fit(rows, label="click")
    assert error.value.code == 3 and isinstance(error.value, ValueError)
    with pytest.raises(tnet.UsageError, match="has not learned yet"):
        tnet.Model().predict(rows)
    with pytest.raises(tnet.UsageError, match="differ in length"):
        tnet.Model().fit({"click": [0, 1], "a": [1]}, label="click")
    with pytest.raises(tnet.UsageError, match="not read"):
        tnet.Model().fit(3, label="click")


def test_a_configuration_trains_as_the_program(rows, tmp_path):
    path = write_csv(tmp_path / "t.csv", rows)
    text = textwrap.dedent(f"""\
        data: {{format: csv, train: {path}, label: click}}
        slots: [{{name: user, type: str}}, {{name: item, type: id}}, {{name: price, type: float}}]
        model: deepfm
        """)
    model = tnet.train(text, overrides={"train.epochs": 2, "run.seed": 3, "train.threads": 2},
                       verbose=0)
    assert learned(model) == learned(fitted(rows))
    file = tmp_path / "c.yaml"
    file.write_text(text)
    program = os.path.join(os.environ["TNET_LIBRARY_PATH"], "tnet-train")
    if os.path.exists(program):
        run = tmp_path / "run"
        subprocess.run([program, str(file), "train.epochs=2", "run.seed=3", f"run.dir={run}"],
                       check=True, capture_output=True)
        assert learned(tnet.load(run)) == learned(model)


def planted(n, seed):
    """Clicks by `strong` most of all, then by `weak` and by the number `size`; `noise` says nothing."""
    rng = np.random.default_rng(seed)
    strong, weak, size = rng.integers(0, 20, n), rng.integers(0, 20, n), rng.random(n)
    z = 2.0 * (strong % 2 * 2 - 1) + 0.8 * (weak % 2 * 2 - 1) + 0.9 * (size - 0.5)
    return {"click": (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int),
            "noise": np.array([f"n{v}" for v in rng.integers(0, 20, n)]),
            "weak": np.array([f"w{v}" for v in weak]), "size": size,
            "strong": np.array([f"s{v}" for v in strong])}


def test_slots_are_worth_what_was_planted():
    slots = [{"name": "noise", "type": "str"}, {"name": "weak", "type": "str"},
             {"name": "size", "type": "float", "as": "value"}, {"name": "strong", "type": "str"}]
    model = tnet.Model("lr", epochs=8, seed=3).fit(planted(20000, 1), label="click", slots=slots,
                                                   valid=planted(8000, 2))
    auc = model.feature_importance()
    assert list(auc) == ["noise", "weak", "size", "strong"]
    assert abs(auc["noise"]) < 0.003 < auc["size"] < auc["weak"] < auc["strong"]
    assert auc["strong"] > 0.15 and auc["weak"] > 0.02
    logloss = model.feature_importance(importance_type="logloss", repeats=3)
    assert abs(logloss["noise"]) < 0.003 < logloss["size"] < logloss["weak"] < logloss["strong"]
    assert model.feature_importance() == auc
    held = planted(8000, 2)
    assert model.feature_importance(held) == auc
    held["noise"] = held["noise"][::-1].copy()
    assert model.feature_importance(held)["strong"] != auc["strong"]
    model.run_.set("train.threads=1")
    assert model.feature_importance() == auc
    with pytest.raises(tnet.UsageError, match="'auc', 'logloss'"):
        model.feature_importance(importance_type="gain")
    with pytest.raises(tnet.UsageError, match="1 to 100"):
        model.feature_importance(repeats=0)
    with pytest.raises(tnet.DataError, match="click"):
        model.feature_importance({k: v for k, v in held.items() if k != "click"})


def test_a_share_of_rows_in_memory_is_held_back(rows):
    n = len(rows["click"])
    model = fitted(rows, valid=0.2)
    found = model.evaluate()
    assert found["data"] == "valid" and 0.17 * n < found["rows"] < 0.23 * n and found["auc"] > 0.6
    once = tnet.Model("deepfm", epochs=2, seed=3, threads=2).fit(
        iter([rows]), label="click", slots=SLOTS, valid=0.2)
    assert learned(once) == learned(model)


def test_a_run_begins_as_asked(rows, tmp_path):
    csv = write_csv(tmp_path / "t.csv", rows)
    run = tnet.Run(config=f"data: {{format: csv, train: {csv}, label: click}}\n"
                   "slots: [{name: user, type: str}]\nmodel: lr\ncheckpoint: {every: never}\n",
                   overrides=[f"run.dir={tmp_path / 'run'}", "train.epochs=1"])
    with pytest.raises(tnet.ModelError):
        run.train(resume=True)
    run.train()
    assert not os.path.exists(tmp_path / "run" / "LATEST")
    run.checkpoint()
    run.train(fresh=True)
    assert os.path.exists(tmp_path / "run" / "LATEST")
    assert os.path.isdir(tmp_path / "run" / "earlier-1")


def test_interrupted_training_keeps_the_model_and_raises(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(textwrap.dedent("""\
        import signal
        import sys
        sys.path.insert(0, sys.argv[1])
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run aside
        import tnet
        from conftest import make_rows
        rows = make_rows(20000, 1)
        m = tnet.Model("deepfm", epochs=10000, seed=1)
        begun = []
        tell = lambda p: begun.append(1) or (len(begun) == 1 and print("begun", flush=True))
        tell.on_progress = True
        try:
            m.fit(rows, label="click", callbacks=[tell])
        except KeyboardInterrupt:
            print("stopped", m.stopped, m.predict(rows).shape, flush=True)
        """))
    child = subprocess.Popen([sys.executable, str(script), os.path.dirname(__file__)],
                             stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    begin = time.monotonic()
    assert child.stdout.read() == "stopped True (20000,)\n"
    assert child.wait() == 0 and time.monotonic() - begin < 20


def test_children_that_are_forked_do_not_hang(rows):
    model = fitted(rows)
    p = model.predict(rows)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            try:
                model.evaluate()
            except tnet.UsageError:
                fresh = fitted({k: v[:500] for k, v in rows.items()})
                os._exit(0 if fresh.predict(rows).shape == (6000,) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(model.predict(rows), p)


def test_a_million_distinct_texts(tmp_path):
    rows = make_rows(20000, 5)
    rows["user"] = np.array([f"user {i * 50}" for i in range(20000)], dtype=object)
    model = tnet.Model("lr", epochs=1).fit(rows, label="click", slots=["user", "item"]
                                           and [{"name": "user", "type": "str"}])
    assert model.predict(rows).shape == (20000,)
