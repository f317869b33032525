"""TNet as estimators of scikit-learn (1.6 and later).

    from tnet.sklearn import TNetClassifier
    TNetClassifier(model="deepfm", epochs=5).fit(X, y).predict_proba(X)

X is a data frame, a numpy array or a sparse matrix. Columns of texts and categories are taken as
they are; columns of numbers are numbers, unless categorical_features names them.
"""

import io
import os
import shutil
import tarfile
import tempfile

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (_check_sample_weight, _num_samples, check_is_fitted,
                                      column_or_1d, validate_data)

from ._arrow import is_sparse
from ._infer import slots_of
from ._infer import look
from ._arrow import source_of
from ._model import Model, Scorer

_LABEL, _WEIGHT = "tnet_label", "tnet_weight"


def _is_frame(X):
    return hasattr(X, "iloc") or hasattr(X, "__dataframe__") or hasattr(X, "__arrow_c_stream__")


class _Estimator(BaseEstimator):
    """What the classifier and the regressor share."""

    def __init__(self, model="widedeep", *, epochs=None, batch_size=None, learning_rate=None,
                 dim=None, hidden_units=None, categorical_features="auto",
                 early_stopping_rounds=None, random_state=None, n_jobs=None, config=None,
                 options=None, verbose=0):
        self.model = model
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.dim = dim
        self.hidden_units = hidden_units
        self.categorical_features = categorical_features
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.config = config
        self.options = options
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags

    def _threads(self):
        """Threads of a run: one within joblib's workers, else what n_jobs says."""
        if self.n_jobs is None:
            try:
                import joblib
                return 1 if joblib.parallel.get_active_backend()[0].nesting_level else None
            except (ImportError, AttributeError):
                return None
        return max(1, (os.cpu_count() or 1) + 1 + self.n_jobs) if self.n_jobs < 0 else self.n_jobs

    def _seed(self):
        if self.random_state is None:
            return None
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        from sklearn.utils import check_random_state
        return int(check_random_state(self.random_state).randint(2 ** 31))

    def _checked(self, X, reset):
        """X as it is read, checked as scikit-learn wants it; the number of its rows."""
        if _is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if hasattr(X, "shape") and X.shape[1] == 0:
                raise ValueError("0 feature(s) (shape=%s) while a minimum of 1 is required."
                                 % (X.shape,))
            return X
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=None,
                          ensure_all_finite="allow-nan")
        if not is_sparse(X) and X.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if not is_sparse(X) and X.dtype.kind == "O":
            self._refuse_objects(X)
        return X

    @staticmethod
    def _refuse_objects(X):
        for column in X.T:
            for value in column:
                if not isinstance(value, (str, bytes, int, float, np.number, bool, type(None))):
                    raise TypeError("argument must be a string or a number, not "
                                    f"'{type(value).__name__}'")

    def _source(self, X, label=None, weight=None):
        extra = {_LABEL: label, _WEIGHT: weight}
        if hasattr(X, "iloc") and not all(isinstance(name, str) for name in X.columns):
            X = X.set_axis([f"x{i}" for i in range(X.shape[1])], axis=1)  # as of an array
        if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "iloc"):
            X = _columns_of(X)
        return source_of(X, extra)

    def _slots(self, X, source):
        if is_sparse(X):
            return [{"name": "x", "type": "id", "values": "x_value"}]
        columns, rows = look(source)
        names = () if isinstance(self.categorical_features, str) or \
            self.categorical_features is None else self.categorical_features
        names = [f"x{n}" if isinstance(n, (int, np.integer)) and not _is_frame(X) else str(n)
                 for n in names]
        slots, unused = slots_of(columns, rows, {_LABEL, _WEIGHT}, names)
        return slots or [{"name": columns[0].name, "type": "str"}]

    def _check_weighed(self, y, weight):
        """A classifier refuses rows of one class, as weights leave them."""

    def _fit(self, X, y, sample_weight, eval_set, loss, callbacks, init_model):
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
            if np.any(weight < 0):
                raise ValueError("Negative values in data passed to `sample_weight`")
            self._check_weighed(y, weight)
            if not np.any(weight > 0):
                raise ValueError("sample_weight: the sum of weights is zero, one must be positive")
        source = self._source(X, y, weight)
        config = {"data": {"label": _LABEL}, "slots": self._slots(X, source),
                  "model": self.model, **(self.config or {})}
        if weight is not None:
            config["data"]["weight"] = _WEIGHT
        if loss is not None:
            config["loss"] = loss
        options = dict(self.options or {})
        if self.early_stopping_rounds is not None and eval_set is not None:
            options["train.stop.monitor"] = "valid.auc" if loss is None else "valid.mse"
            options["train.stop.patience"] = self.early_stopping_rounds
        if init_model is not None:
            options["checkpoint.from"] = init_model
        fitted = Model(self.model, epochs=self.epochs, batch=self.batch_size,
                       lr=self.learning_rate, dim=self.dim, hidden=self.hidden_units,
                       seed=self._seed(), threads=self._threads(), config=config,
                       options=options, verbose=self.verbose)
        streams = {0: source}
        if eval_set is not None:
            eval_X, eval_y, eval_weight = eval_set
            streams[1] = self._source(eval_X, eval_y, eval_weight if weight is None or
                                      eval_weight is not None else np.ones(len(eval_y)))
        from . import _yaml
        fitted._train(_yaml.dump(config), None, fitted._overrides(), streams, callbacks)
        self.model_ = fitted
        self.evals_result_ = fitted.evals_result_
        self.n_iter_ = max(1, len(next(iter(fitted.evals_result_.get("valid", {}).values()), [1])))
        self.best_iteration_ = fitted.best_iteration_
        self.scorer_ = fitted.scorer()
        return self

    def _scores(self, X, output):
        check_is_fitted(self, "scorer_")
        X = self._checked(X, reset=False)
        if _num_samples(X) == 0:
            return np.empty(0, dtype=np.float64)
        return self.scorer_.predict(self._source(X), output=output).astype(np.float64)

    def __getstate__(self):
        """Pickles as the parameters and the bytes of an export."""
        state = super().__getstate__().copy()
        scorer = state.pop("scorer_", None)
        state.pop("model_", None)
        if scorer is not None:
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w") as archive:
                archive.add(scorer.dir, arcname=os.path.basename(scorer.dir))
            state["_export"] = packed.getvalue()
        return state

    def __setstate__(self, state):
        state = dict(state)
        packed = state.pop("_export", None)
        super().__setstate__(state)
        if packed is not None:
            folder = tempfile.mkdtemp(prefix="tnet-export-")
            with tarfile.open(fileobj=io.BytesIO(bytes(packed))) as archive:
                archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") \
                    else archive.extractall(folder)
            self.scorer_ = Scorer(folder)
            shutil.rmtree(folder, ignore_errors=True)  # its files stay mapped


def _columns_of(data):
    """The columns of a frame that is neither numpy's nor pandas'."""
    names = list(data.columns) if not hasattr(data, "column_names") else data.column_names
    return {str(n): np.asarray(data[n].to_numpy()) if hasattr(data[n], "to_numpy")
            else np.asarray(data[n]) for n in names}


class TNetClassifier(ClassifierMixin, _Estimator):
    """A classifier of two classes.

    Parameters are those of tnet.Model by scikit-learn's names; `options` are any others by their
    path. early_stopping_rounds: evaluations without a better AUC on eval_X.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X, y, sample_weight=None, *, eval_X=None, eval_y=None, eval_sample_weight=None,
            callbacks=(), init_model=None):
        """Learns X, shape (rows, columns), and y, shape (rows,), of two classes."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        X = self._checked(X, reset=True)
        y = self._classes(X, y)
        evaluated = None
        if eval_X is not None:
            evaluated = (eval_X, np.searchsorted(self.classes_, np.asarray(eval_y)),
                         eval_sample_weight)
        return self._fit(X, y, sample_weight, evaluated, None, callbacks, init_model)

    def _classes(self, X, y):
        y = column_or_1d(y, warn=True)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"Unknown label type: {kind}. Only binary classification is supported. "
                             f"The type of the target is {kind}.")
        if len(y) != _num_samples(X):
            raise ValueError(f"X has {_num_samples(X)} rows, y has {len(y)}")
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError("Only binary classification is supported. The type of the target is "
                             f"{kind}.")
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        return y.astype(np.int64)

    def _check_weighed(self, y, weight):
        if np.any(weight > 0) and len(np.unique(y[weight > 0])) < 2:
            raise ValueError("Classifier can't train when only one class is present, and the other "
                             "has no weight.")

    def decision_function(self, X):
        """Logits of the second class, shape (rows,)."""
        return self._scores(X, "logit")

    def predict_proba(self, X):
        """Probabilities of both classes, shape (rows, 2)."""
        p = self._scores(X, "probability")
        return np.column_stack([1 - p, p])

    def predict(self, X):
        """The likelier class of each row."""
        logits = self._scores(X, "logit")
        return self.classes_[(logits > 0).astype(int)]


class TNetRegressor(RegressorMixin, _Estimator):
    """A regressor, of the loss mse unless config names another."""

    def fit(self, X, y, sample_weight=None, *, eval_X=None, eval_y=None, eval_sample_weight=None,
            callbacks=(), init_model=None):
        """Learns X, shape (rows, columns), and y, shape (rows,), of numbers."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        X = self._checked(X, reset=True)
        y = column_or_1d(y, warn=True).astype(np.float64)
        if len(y) != _num_samples(X):
            raise ValueError(f"X has {_num_samples(X)} rows, y has {len(y)}")
        if not np.all(np.isfinite(y)):
            raise ValueError("Input y contains NaN or infinity.")
        self.mean_, self.scale_ = float(np.mean(y)), float(np.std(y)) or 1.0
        evaluated = None
        if eval_X is not None:
            evaluated = (eval_X, (np.asarray(eval_y, dtype=np.float64) - self.mean_) / self.scale_,
                         eval_sample_weight)
        return self._fit(X, (y - self.mean_) / self.scale_, sample_weight, evaluated, "mse",
                         callbacks, init_model)

    def predict(self, X):
        """Numbers, shape (rows,)."""
        return self._scores(X, "logit") * self.scale_ + self.mean_


__all__ = ["NotFittedError", "TNetClassifier", "TNetRegressor"]
