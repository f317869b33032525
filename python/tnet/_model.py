"""Models: trained from data in memory or files, kept in folders, scored by exports."""

import ctypes
import glob
import json
import os
import shutil
import tempfile
import threading

import numpy as np

from . import _library as c
from . import _yaml
from ._arrow import Source, is_sparse, source_of
from ._infer import infer as infer_columns
from ._infer import look, slots_of
from .callbacks import CallbackEnv, EarlyStopException, higher_is_better

_TRAIN, _VALID, _TEST = 0, 1, 2


def _is_path(data):
    return isinstance(data, (str, os.PathLike)) or (
        isinstance(data, (list, tuple)) and len(data) > 0
        and all(isinstance(x, (str, os.PathLike)) for x in data))


def _paths(data):
    return [os.fspath(x) for x in data] if isinstance(data, (list, tuple)) else [os.fspath(data)]


class _Stream:
    """A source as the library wants it; keeps the exceptions of its passes."""

    def __init__(self, source, failures):
        self.source, self.failures = source, failures
        self.callback = c.OPEN(self._open)
        self.struct = c.Stream(ctypes.sizeof(c.Stream), self.callback, None, int(source.once))

    def _open(self, arg, out, why):
        try:
            self.source.fill(out.contents)
            return 0
        except BaseException as error:  # noqa: BLE001: handed on by whoever called the library
            self.failures.append(error)
            text = str(error).encode("utf-8", "replace")[:511]
            ctypes.memmove(why, text + b"\0", len(text) + 1)
            return 1


class Run:
    """A run of libtnet-train: one configuration and its folder. For those who write configurations;
    `Model` makes them."""

    def __init__(self, config=None, path=None, overrides=(), folder=False, line=None, record=None,
                 progress=None, evaluated=None, metric=None):
        self._failures, self._streams, self._handle = [], {}, ctypes.c_void_p()
        self._hooks = c.Hooks(
            ctypes.sizeof(c.Hooks), None,
            c.LINE(self._guard(line, None)) if line else c.LINE(),
            c.RECORD(self._guard(self._record_hook(record), None)) if record else c.RECORD(),
            c.PROGRESS(self._guard(self._progress_hook(progress), 1)) if progress else c.PROGRESS(),
            c.EVALUATED(self._guard(self._evaluated_hook(evaluated), 1)) if evaluated
            else c.EVALUATED(),
            c.METRIC(self._guard(self._metric_hook(metric), 0.0)) if metric else c.METRIC())
        items = (ctypes.c_char_p * max(1, len(overrides)))(*[o.encode() for o in overrides])
        options = c.RunOptions(
            ctypes.sizeof(c.RunOptions), config.encode() if config is not None else None,
            os.fspath(path).encode() if path is not None else None, items, len(overrides),
            ctypes.pointer(self._hooks))
        error = c.ErrorStruct()
        new = c.run_open if folder else c.run_new
        c.check(new(ctypes.byref(options), ctypes.byref(self._handle), ctypes.byref(error)), error)

    def _guard(self, function, failed):
        """Keeps the exception of a hook, ends training, and hands it on later."""

        def guarded(arg, *rest):
            if self._failures:
                return failed
            try:
                result = function(*rest)
                return 0 if failed is not None and result is None else result
            except BaseException as error:  # noqa: BLE001: handed on by train()
                self._failures.append(error)
                self.stop()
                return failed

        return guarded

    @staticmethod
    def _record_hook(record):
        return lambda text, n: record(json.loads(ctypes.string_at(text, n)))

    @staticmethod
    def _progress_hook(progress):
        return lambda p: int(bool(progress(p.contents)))

    @staticmethod
    def _evaluated_hook(evaluated):
        def hook(step, values, n):
            found = [(values[i].data.decode(), values[i].metric.decode(), values[i].value)
                     for i in range(n)]
            return int(bool(evaluated(step, found)))
        return hook

    @staticmethod
    def _metric_hook(metric):
        def hook(label, p, weight, n):
            arrays = [np.ctypeslib.as_array(x, (n,)).copy() if x else None
                      for x in (label, p, weight)]
            return float(metric(*arrays))
        return hook

    @property
    def dir(self):
        """The folder of the run."""
        return c.run_dir(self._handle).decode()

    def set(self, override):
        """Changes an option for the calls that follow: "train.epochs=3"."""
        self._call(c.run_set, override.encode())

    def data(self, which, source):
        """Gives rows in memory: a Source, or None."""
        stream = _Stream(source, self._failures) if source is not None else None
        self._streams[which] = stream
        self._call(c.run_data, which, ctypes.byref(stream.struct) if stream else None)

    def _call(self, function, *arguments):
        if not self._handle:
            raise c.UsageError("this run is closed")
        error = c.ErrorStruct()
        code = function(self._handle, *arguments, ctypes.byref(error))
        if self._failures:
            failure = self._failures[0]
            self._failures.clear()
            raise failure
        c.check(code, error)

    def _call_aside(self, function, *arguments):
        """Calls on another thread, so that Ctrl-C reaches Python: it stops the call, whose work is
        kept, and is raised then; a second one is raised at once."""
        outcome, done = [], threading.Event()

        def work():
            try:
                outcome.append(self._call(function, *arguments))
            except BaseException as error:  # noqa: BLE001: raised below
                outcome.append(error)
            done.set()

        # An interrupted join() may take a thread for ended that is not; an event is never wrong.
        threading.Thread(target=work, name="tnet", daemon=True).start()
        interrupt = None
        while not done.is_set():
            try:
                done.wait(0.05)
            except KeyboardInterrupt as error:
                if interrupt is not None:
                    raise
                interrupt = error
                self.stop()
        if interrupt is not None:
            raise interrupt
        if isinstance(outcome[0], BaseException):
            raise outcome[0]

    def train(self, *, resume=False, fresh=False, again=False):
        """Trains until the run is over, or goes on with it. resume, fresh, again: as tnet-train
        --resume, --fresh and --again."""
        how = ctypes.c_uint(bool(resume) | bool(fresh) << 1 | bool(again) << 2)
        self._call_aside(c.run_train_as, how)

    def checkpoint(self):
        """Has train() save a checkpoint after the present step, and go on. From any thread."""
        if self._handle:
            c.run_checkpoint(self._handle)

    def stop(self):
        """Has train() end soon; the model is kept. From any thread."""
        if self._handle:
            c.run_stop(self._handle)

    def evaluate(self, source=None):
        """Judges the newest checkpoint: a dictionary of metrics."""
        return self._judge(c.run_evaluate, source)

    def importance(self, source=None, repeats=1):
        """The same with the member "importance": a list of what the model loses of its metrics when
        the values of a slot are dealt among the rows, `repeats` times."""
        return self._judge(c.run_importance, source, int(repeats))

    def _judge(self, function, source, *more):
        text = ctypes.c_void_p()
        stream = _Stream(source, self._failures) if source is not None else None
        self._call_aside(function, ctypes.byref(stream.struct) if stream else None, *more,
                         ctypes.byref(text))
        try:
            return json.loads(ctypes.string_at(text.value))
        finally:
            c.text_free(text)

    def export(self, to):
        """Writes an export; returns its folder."""
        identity = ctypes.create_string_buffer(33)
        self._call(c.run_export, os.fspath(to).encode() if to is not None else None, identity)
        return os.path.join(os.fspath(to), identity.value.decode()) if to is not None \
            else identity.value.decode()

    def save(self, to):
        """Copies the run to a new folder."""
        self._call(c.run_save, os.fspath(to).encode())

    def close(self):
        """Ends the run; a folder that was made for it goes."""
        if self._handle:
            c.run_free(self._handle)
            self._handle = ctypes.c_void_p()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()


class Scorer:
    """An export, opened for scoring. Any number of threads may call predict."""

    def __init__(self, export):
        self._model = ctypes.c_void_p()
        self._local = threading.local()
        self._scorers, self._lock = [], threading.Lock()
        self.dir = _find_export(os.fspath(export))
        error = c.ErrorStruct()
        c.check(c.model_open(self.dir.encode(), 0, ctypes.byref(self._model), ctypes.byref(error)),
                error)

    @property
    def model_id(self):
        """32 hex digits that name what was learned."""
        return c.model_id(self._model).decode()

    @property
    def fields(self):
        """Names of the slots and numbers that the model reads."""
        return [c.field_name(self._model, i).decode() for i in range(c.n_fields(self._model))]

    def _scorer(self):
        if getattr(self._local, "scorer", None) is None:
            scorer, error = ctypes.c_void_p(), c.ErrorStruct()
            with self._lock:
                c.check(c.scorer_new(self._model, ctypes.byref(scorer), ctypes.byref(error)), error)
                self._scorers.append(scorer)
            self._local.scorer = scorer
        return self._local.scorer

    def predict(self, data, *, output="probability"):
        """Scores rows: a numpy array of float32 of shape (rows,).

        data: what Model.fit takes, without a label. output: "probability" or "logit"; of a model
        that predicts no clicks both are the score.
        """
        if output not in ("probability", "logit"):
            raise c.UsageError(f"output is 'probability' or 'logit', not '{output}'")
        return self._score(data, output)

    def predict_candidates(self, shared, data, *, output="probability"):
        """Scores many candidates of one user, whose own values are looked up and multiplied once.

        shared: what all rows have in common, as {"user": "u1", "tags": ["a", "b"]}. data: the
        columns of the candidates. The scores are those of whole rows up to rounding (2e-7).
        """
        scorer, error = self._scorer(), c.ErrorStruct()
        c.clear_rows(scorer)
        try:
            c.check(c.begin_shared(scorer, ctypes.byref(error)), error)
            for name, value in shared.items():
                self._add(scorer, name, value, error)
            c.check(c.end_row(scorer, ctypes.byref(error)), error)
            return self._score(data, output)
        finally:
            c.clear_rows(scorer)

    def _add(self, scorer, name, value, error):
        """Adds the value of a field, or its values, to the open row."""
        field = c.field_of(self._model, name.encode())
        if field < 0:
            raise c.UsageError(f"the model has no field '{name}'; it has {', '.join(self.fields)}")
        for one in value if isinstance(value, (list, tuple, np.ndarray)) else [value]:
            if one is None or one != one or one == "":
                continue
            number = not isinstance(one, (str, bytes)) and c.field_is_number(self._model, field)
            text = one if isinstance(one, bytes) else str(one).encode()
            c.check(c.add_number(scorer, field, float(one), ctypes.byref(error)) if number else
                    c.add_text(scorer, field, text, len(text), 1.0, ctypes.byref(error)), error)

    def _score(self, data, output):
        parts = []
        scorer, error = self._scorer(), c.ErrorStruct()
        stream, schema = c.ArrowArrayStream(), c.ArrowSchema()
        source_of(data).fill(stream)
        try:
            if stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) != 0:
                raise c.DataError("the data have no Arrow schema")
            try:
                while True:
                    batch = c.ArrowArray()
                    if stream.get_next(ctypes.byref(stream), ctypes.byref(batch)) != 0:
                        raise c.DataError("the data could not be read")
                    if not batch.release:
                        break
                    parts.append(np.empty(batch.length, dtype=np.float32))
                    pointer = parts[-1].ctypes.data_as(ctypes.POINTER(ctypes.c_float))
                    logits, clicks = (pointer, None) if output == "logit" else (None, pointer)
                    try:
                        c.check(c.score_arrow(scorer, ctypes.byref(schema), ctypes.byref(batch),
                                              logits, clicks, ctypes.byref(error)), error)
                    finally:
                        batch.release(ctypes.byref(batch))
            finally:
                schema.release(ctypes.byref(schema))
        finally:
            stream.release(ctypes.byref(stream))
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.float32)

    def close(self):
        """Frees the model; nobody may be scoring."""
        for scorer in self._scorers:
            c.scorer_free(scorer)
        self._scorers = []
        if self._model:
            c.model_close(self._model)
            self._model = ctypes.c_void_p()

    def __del__(self):
        if getattr(self, "_model", None):
            self.close()


def _find_export(path):
    """An export, or the one that LATEST names, or the only one, of a folder of exports."""
    if os.path.exists(os.path.join(path, "EXPORT.json")):
        return path
    latest = os.path.join(path, "LATEST")
    if os.path.exists(latest):
        with open(latest, encoding="ascii") as file:
            return os.path.join(path, file.read().strip())
    found = glob.glob(os.path.join(glob.escape(path), "*", "EXPORT.json"))
    if len(found) != 1:
        raise c.ModelError(f"'{path}' is no export, and holds {len(found)} of them")
    return os.path.dirname(found[0])


class Model:
    """A model of clicks, or of what its loss says.

    model: its type, as "deepfm", "widedeep", "dcn", "lr" (`tnet-train --list-models`).
    epochs, batch, lr, dim, hidden, seed, threads: None takes what tnet-train would choose.
    dir: the folder of the run; None: one below $TMPDIR, which goes with the model.
    config: a configuration to begin with: a dictionary, a text of YAML, or a path that ends in
    .yaml. options: any other option by its path, as {"train.sparse.l2": 1e-5}.
    verbose: 0: nothing is printed, 1: the lines of a run.
    """

    def __init__(self, model="deepfm", *, epochs=None, batch=None, lr=None, dim=None, hidden=None,
                 seed=None, threads=None, dir=None, config=None, verbose=0, options=None):
        self.params = dict(model=model, epochs=epochs, batch=batch, lr=lr, dim=dim, hidden=hidden,
                           seed=seed, threads=threads, dir=dir, config=config, verbose=verbose,
                           options=options)
        self.run_, self._scorer, self._export, self._label = None, None, None, "label"
        self.stopped, self.unused_columns_ = False, {}
        self.evals_result_, self.best_iteration_ = {}, None

    # ---- configurations ----

    def _base(self):
        """The configuration as far as it is written down, as a dictionary, a text or a path."""
        config = self.params["config"]
        if config is None or isinstance(config, dict):
            return dict(config or {}), None
        if isinstance(config, os.PathLike) or str(config).endswith((".yaml", ".yml")):
            return None, os.fspath(config)
        return None, None

    def _overrides(self):
        """Options of the arguments, as the command line has them."""
        p = self.params
        named = {"train.epochs": p["epochs"], "train.batch": p["batch"], "embedding.dim": p["dim"],
                 "run.seed": p["seed"], "train.threads": p["threads"], "run.dir": p["dir"],
                 "train.optimizer.lr": p["lr"], "train.sparse.lr": p["lr"]}
        if p["hidden"] is not None:
            named["model.hidden"] = list(p["hidden"])
        named.update(p["options"] or {})
        return [f"{key}={_yaml.flow(value)}" for key, value in named.items() if value is not None]

    def _written(self, data_section, slots):
        config, path = self._base()
        if config is None and path is None:
            return None, None, str(self.params["config"])
        own = {"model": self.params["model"]} if config is not None and "model" not in config else {}
        if config is None:
            return None, path, None
        made = {"data": data_section}
        if slots is not None:
            made["slots"] = slots
        return _yaml.merge(made, {**own, **config}), None, None

    # ---- training ----

    def fit(self, data, label=None, *, valid=None, weight=None, group=None, slots=None,
            categorical=(), metric=None, callbacks=()):
        """Trains on `data`, which is

        a path, URL, pattern or list of them; a data frame (pandas, polars, pyarrow, DuckDB, ..);
        a dictionary of arrays; a numpy array or sparse matrix with `label` an array; an iterator of
        any of these (read once); or a function that gives one of them for each pass.

        label: the name of the label's column, or an array. valid: rows to judge by: data of the
        same kind, (X, y), or a share as .1. weight, group: names of columns, or arrays.
        slots: a list of names or of dictionaries as in a configuration; None: every other column,
        typed as `tnet-data infer` does. categorical: columns of numbers that are names.
        metric: a metric of your own, of the validation rows: f(y_true, y_pred) or, with `weight`,
        f(y_true, y_pred, weight), which returns (name, value, whether greater is better).
        callbacks: functions of a CallbackEnv (tnet.callbacks). Returns the model.
        """
        self._refuse_used_folder()
        self._drop_export()
        section, streams, slots = self._read_data(data, label, valid, weight, group, slots,
                                                  categorical)
        config, path, text = self._written(section, slots)
        overrides = self._overrides()
        if config is not None:
            text = _yaml.dump(config)
        elif path is not None or text is not None:
            overrides += [f"data.{k}={_yaml.flow(v)}" for k, v in section.items()]
        self._train(text, path, overrides, streams, callbacks, metric)
        return self

    def _refuse_used_folder(self):
        folder = self.params["dir"]
        if folder is not None and os.path.exists(os.path.join(os.fspath(folder), "LATEST")):
            raise c.UsageError(f"'{folder}' holds a model already: tnet.load(..).go_on(..) goes on "
                               "with it, another dir begins anew")

    def go_on(self, epochs, data=None, label=None, *, valid=None, weight=None, callbacks=()):
        """Learns on until the rows were learned `epochs` times in all, as one run would have.

        data, valid: rows in memory are given again after tnet.load, files are known. Returns the
        model.
        """
        run = self._trained()
        self._drop_export()
        if isinstance(data, tuple) and len(data) == 2:
            data, label = data
        if data is not None:
            run.data(_TRAIN, source_of(data, {self._label: label, "weight": weight}))
        if valid is not None:
            given = valid if isinstance(valid, tuple) else (valid, None)
            run.data(_VALID, source_of(given[0], {self._label: given[1]}))
        run.set(f"train.epochs={int(epochs)}")
        self._watch(callbacks, self._metric)
        self.stopped = False
        self._go()
        return self

    def _read_data(self, data, label, valid, weight, group, slots, categorical):
        if isinstance(data, tuple) and len(data) == 2:
            data, label = data
        section, streams, extra = {}, {}, {}
        for key, value in (("label", label), ("weight", weight), ("group", group)):
            if value is not None and not isinstance(value, str):
                extra[key] = value
        names = {"label": label if isinstance(label, str) else "label" if "label" in extra else None,
                 "weight": weight if isinstance(weight, str) else
                 "weight" if "weight" in extra else None,
                 "group": group if isinstance(group, str) else "group" if "group" in extra else None}
        config, path = self._base()
        asks = slots is None and config is not None and "slots" not in config
        if _is_path(data):
            section["train"] = _paths(data)
            section.update(_format_of(section["train"][0]))
        else:
            streams[_TRAIN] = source_of(data, extra)
        if asks:
            sample = streams[_TRAIN] if _TRAIN in streams else _head_of_file(section["train"][0])
            if sample.once:
                raise c.UsageError("rows that come once cannot be looked at before they are "
                                   "learned: list the slots, as slots=['user', 'item']")
            found = self._slots(sample, names, categorical)
            slots, section["label"] = found["slots"], found["data"]["label"]
        elif names["label"] is not None:
            section["label"] = names["label"]
        said = section.get("label", "label")
        self._label = said["column"] if isinstance(said, dict) else said
        section.update({k: v for k, v in names.items() if v is not None and k != "label"})
        if is_sparse(data) and self.params["config"] is None:
            slots = [{"name": "x", "type": "id", "values": "x_value"}]
            section["label"] = names["label"]
        self._read_valid(valid, section, streams)
        return section, streams, slots

    def _slots(self, sample, names, categorical):
        found = infer_columns(sample, names["label"], weight=names["weight"], group=names["group"],
                              categorical=categorical)
        self.unused_columns_ = found.unused
        if self.params["verbose"]:
            print(found)
        return found

    @staticmethod
    def _read_valid(valid, section, streams):
        if valid is None:
            return
        if isinstance(valid, float):
            section["valid"] = {"share": f"{100 * valid:g}%"}
        elif _is_path(valid):
            section["valid"] = _paths(valid)
        elif isinstance(valid, tuple) and len(valid) == 2:
            streams[_VALID] = source_of(valid[0], {"label": valid[1]})
        else:
            streams[_VALID] = source_of(valid)

    def _train(self, text, path, overrides, streams, callbacks, metric=None):
        if self.run_ is not None:
            self.run_.close()
        self.evals_result_, self.best_iteration_, self.stopped = {}, None, False
        self._iteration = 0
        self._watch(callbacks, metric)
        self.run_ = self._open(config=text, path=path, overrides=overrides)
        for which, source in streams.items():
            self.run_.data(which, source)
        self._go()

    def _watch(self, callbacks, metric):
        """Keeps who is called while the next training goes on."""
        self._watchers = [f for f in callbacks if getattr(f, "on_progress", False)]
        self._callbacks = sorted((f for f in callbacks if not getattr(f, "on_progress", False)),
                                 key=lambda f: getattr(f, "order", 0))
        self._metric, self._custom = metric, None

    def _open(self, **what):
        return Run(line=self._show if self.params["verbose"] else None,
                   progress=self._progressed, evaluated=self._evaluated,
                   metric=self._own_metric if self._metric is not None else None, **what)

    def _progressed(self, progress):
        for watcher in self._watchers:
            watcher(progress)
        return False

    def _go(self):
        try:
            self.run_.train()
        except c.Stopped:
            self.stopped = True
        except KeyboardInterrupt:
            self.stopped = True
            raise

    @staticmethod
    def _show(level, text, transient):
        import sys
        end = "" if transient else "\n"
        sys.stderr.write(f"\r{text.decode('utf-8', 'replace')}{end}")
        sys.stderr.flush()

    def _own_metric(self, label, p, weight):
        given = (label, p) if weight is None else (label, p, weight)
        self._custom = self._metric(*given)
        return self._custom[1]

    def _evaluated(self, step, values):
        results = [(d, m, v, higher_is_better(m)) for d, m, v in values if m != "custom"]
        if self._custom is not None:
            results.append(("valid", *self._custom))
        for data, metric, value, _ in results:
            self.evals_result_.setdefault(data, {}).setdefault(metric, []).append(value)
        env = CallbackEnv(self, self.params, self._iteration, 0, None, results)
        self._iteration += 1
        try:
            for callback in self._callbacks:
                callback(env)
        except EarlyStopException as stop:
            self.best_iteration_ = stop.best_iteration
            return True
        return False

    # ---- what was learned ----

    def _trained(self):
        if self.run_ is None:
            raise c.UsageError("the model has not learned yet: fit(data) comes first")
        return self.run_

    def _drop_export(self):
        if self._scorer is not None:
            self._scorer.close()
        if self._export is not None:
            shutil.rmtree(self._export, ignore_errors=True)
        self._scorer = self._export = None

    def scorer(self):
        """The Scorer of the model as it is now."""
        if self._scorer is None:
            self._export = tempfile.mkdtemp(prefix="tnet-export-")
            self._scorer = Scorer(self._trained().export(self._export))
        return self._scorer

    def predict(self, data, *, output="probability"):
        """Scores rows: see Scorer.predict."""
        self._trained()
        return self.scorer().predict(data, output=output)

    def evaluate(self, data=None, label=None):
        """Judges the model: a dictionary of metrics, as `tnet-eval --json` prints it. data None: the
        rows of `valid`."""
        return self._trained().evaluate(self._rows_to_judge(data, label))

    def feature_importance(self, data=None, label=None, *, importance_type="auc", repeats=1):
        """What each slot is worth to the model: a dictionary of floats by slot.

        The values of a slot are dealt at random among the rows, `repeats` times (1 to 100), and a
        float is what is lost by it: of the AUC, or with importance_type="logloss" of the logloss
        (of models of numbers "rmse" and "mae"). About 0: the model does without. Slots that say the
        same share what they are worth. data: as evaluate has it, read twice. The same data give the
        same bits.
        """
        found = self._trained().importance(self._rows_to_judge(data, label), repeats)["importance"]
        if found and importance_type not in found[0]:
            known = ", ".join(f"'{k}'" for k in found[0] if k != "slot")
            raise c.UsageError(f"importance_type is one of {known}, not '{importance_type}'")
        return {f["slot"]: float("nan") if f[importance_type] is None else f[importance_type]
                for f in found}

    def _rows_to_judge(self, data, label):
        if isinstance(data, tuple) and len(data) == 2:
            data, label = data
        return None if data is None else source_of(
            data, {self._label: label} if label is not None else None)

    def export(self, to):
        """Writes an export below the folder `to`, and returns its Scorer."""
        return Scorer(self._trained().export(to))

    def save(self, dir):
        """Copies the model, with all that it needs to go on, to a new folder."""
        self._trained().save(dir)

    @property
    def dir(self):
        """The folder of the run: checkpoints, metrics.jsonl, summary.json."""
        return self._trained().dir

    def close(self):
        """Frees what the model holds, and removes its folder where it made one."""
        self._drop_export()
        if self.run_ is not None:
            self.run_.close()
            self.run_ = None

    def __del__(self):
        try:
            self.close()
        except Exception:  # noqa: BLE001: at the end of a process parts of it may be gone
            pass


def _format_of(path):
    """data.format by the ending of a path, as far as it says one."""
    name = path.lower()
    for ending in (".gz", ".zst", ".lz4", ".snappy"):
        name = name[:-len(ending)] if name.endswith(ending) else name
    formats = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".svm": "libsvm",
               ".libsvm": "libsvm", ".ffm": "libffm", ".vw": "vw", ".tfrecord": "tfrecord"}
    ending = os.path.splitext(name)[1]
    if ending == ".tsv":
        return {"format": "tsv", "header": True}
    return {"format": formats[ending]} if ending in formats else {}


def _head_of_file(path):
    """The first rows of a file of delimited text with a header, as a source."""
    import csv
    import io
    found = sorted(glob.glob(path)) or [path]
    name = found[0]
    if os.path.isdir(name):
        name = os.path.join(name, sorted(n for n in os.listdir(name) if n[0] not in "._")[0])
    try:
        with open(name, encoding="utf-8-sig", newline="") as file:
            text = "".join(line for _, line in zip(range(50001), file))
    except (OSError, UnicodeDecodeError) as error:
        raise c.UsageError(f"the columns of '{path}' cannot be looked at: {error}; list the slots, "
                           "or give a configuration") from None
    delimiter = "\t" if text[:text.find("\n")].count("\t") else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    if len(rows) < 2 or len({len(r) for r in rows}) != 1:
        raise c.UsageError(f"'{path}' is no CSV file with a header: list the slots, and say "
                           "options={'data.format': ..}")
    columns = {name: np.array([r[i] for r in rows[1:]], dtype=object)
               for i, name in enumerate(rows[0])}
    return source_of(columns)


def load(path, *, verbose=0):
    """Opens what was saved: a Model of a run's folder, a Scorer of an export."""
    path = os.fspath(path)
    if os.path.exists(os.path.join(path, "EXPORT.json")):
        return Scorer(path)
    model = Model(verbose=verbose)
    model._iteration = 0
    model._watch((), None)
    model.run_ = model._open(path=path, folder=True)
    return model


def train(config, *, overrides=None, callbacks=(), verbose=1, data=None, valid=None):
    """Trains what a configuration says, as tnet-train does, with the same bits.

    config: a path, a text of YAML or a dictionary. overrides: a dictionary of options by path.
    data, valid: rows in memory in place of data.train and data.valid. Returns a Model.
    """
    model = Model(config=config, verbose=verbose, options=overrides)
    streams = {}
    if data is not None:
        streams[_TRAIN] = source_of(data)
    if valid is not None:
        streams[_VALID] = source_of(valid)
    base, path = model._base()
    text = _yaml.dump(base) if base is not None else None if path is not None else str(config)
    model._train(text, path, model._overrides(), streams, callbacks)
    return model


__all__ = ["Model", "Run", "Scorer", "Source", "load", "look", "slots_of", "train"]
