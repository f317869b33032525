"""MLflow: a flavour, tnet.mlflow, of models that MLflow saves, logs, loads and serves.

    tnet.mlflow.log_model(m, name="ads")
    mlflow.pyfunc.load_model(uri).predict(frame)      # probabilities
"""

import os
import shutil

import mlflow
import numpy
from mlflow.models import Model as MlflowModel

from ._model import Model, Scorer
from . import __version__

FLAVOR_NAME = "tnet"
_DATA = "export"


def get_default_pip_requirements():
    """What a server of the model installs."""
    return [f"tnet-ctr=={__version__}", f"numpy=={numpy.__version__}"]


def save_model(tnet_model, path, mlflow_model=None, signature=None, input_example=None,
               pip_requirements=None, metadata=None, **_):
    """Saves the export of a Model, or of a Scorer, to a new folder."""
    os.makedirs(path, exist_ok=False)
    scorer = tnet_model.scorer() if isinstance(tnet_model, Model) else tnet_model
    target = os.path.join(path, _DATA, os.path.basename(scorer.dir))
    shutil.copytree(scorer.dir, target)
    described = MlflowModel() if mlflow_model is None else mlflow_model
    if signature is not None:
        described.signature = signature
    if metadata is not None:
        described.metadata = metadata
    mlflow.pyfunc.add_to_model(described, loader_module="tnet.mlflow", data=_DATA,
                               python_env="python_env.yaml")
    described.add_flavor(FLAVOR_NAME, tnet_version=__version__, data=_DATA,
                         model_id=scorer.model_id)
    described.save(os.path.join(path, "MLmodel"))
    requirements = pip_requirements or get_default_pip_requirements()
    with open(os.path.join(path, "requirements.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(requirements) + "\n")
    mlflow.utils.environment._PythonEnv.current().to_yaml(os.path.join(path, "python_env.yaml"))


def log_model(tnet_model, artifact_path=None, *, name=None, **more):
    """Logs a model to the active run."""
    import tnet.mlflow as flavor
    named = {"name": name} if name is not None else {"artifact_path": artifact_path}
    return MlflowModel.log(flavor=flavor, tnet_model=tnet_model, **named, **more)


def load_model(model_uri, dst_path=None):
    """The Scorer of a saved model."""
    from mlflow.tracking.artifact_utils import _download_artifact_from_uri
    local = _download_artifact_from_uri(artifact_uri=model_uri, output_path=dst_path)
    return Scorer(os.path.join(local, _DATA))


class _Predictor:
    """What MLflow serves: a data frame in, probabilities out."""

    def __init__(self, scorer):
        self.scorer = scorer

    def get_raw_model(self):
        return self.scorer

    def predict(self, data, params=None):
        return self.scorer.predict(data, output=(params or {}).get("output", "probability"))


def _load_pyfunc(path):
    return _Predictor(Scorer(path))
