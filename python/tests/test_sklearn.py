"""The estimators of tnet.sklearn: scikit-learn's own checks, and its tools around them."""

import pickle

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_predict  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from tnet.sklearn import TNetClassifier, TNetRegressor  # noqa: E402

EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data":
        "rows are learned in batches: a row of weight 2 is one step, a row that comes twice is two",
    "check_sample_weight_equivalence_on_sparse_data": "likewise",
}


@parametrize_with_checks([TNetClassifier(random_state=0, n_jobs=1, epochs=30),
                          TNetRegressor(random_state=0, n_jobs=1, epochs=30)],
                         expected_failed_checks=lambda estimator: EXPECTED)
def test_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    return rng.normal(size=(600, 4)) + y[:, None] * [1.0, 0.5, 0, -1], y


def test_tools_around_a_classifier(blobs):
    X, y = blobs
    base = TNetClassifier("lr", epochs=5, random_state=1, n_jobs=1)
    assert make_pipeline(StandardScaler(), base).fit(X, y).score(X, y) > 0.75
    search = GridSearchCV(base, {"epochs": [1, 5]}, n_jobs=2, cv=2).fit(X, y)
    assert search.best_params_["epochs"] in (1, 5)
    assert CalibratedClassifierCV(base, cv=2).fit(X, y).predict_proba(X).shape == (600, 2)
    assert cross_val_predict(base, X, y, cv=3, method="predict_proba").shape == (600, 2)
    assert clone(base).get_params() == base.get_params()


def test_a_pickle_scores_as_the_model(blobs):
    X, y = blobs
    fitted = TNetClassifier("deepfm", epochs=3, random_state=1, n_jobs=1).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.classes_, fitted.classes_)


def test_a_frame_of_texts():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    color = rng.choice(["red", "green", "blue"], 2000)
    frame = pandas.DataFrame({"color": color, "size": rng.random(2000)})
    y = np.where((color == "red") ^ (rng.random(2000) < 0.1), "buys", "leaves")
    fitted = TNetClassifier("lr", epochs=5, random_state=1, n_jobs=1).fit(frame, y)
    assert fitted.score(frame, y) > 0.85
    assert list(fitted.feature_names_in_) == ["color", "size"]
    with pytest.raises(ValueError):
        fitted.predict(frame[["color"]])
