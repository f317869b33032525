"""TNet: click-through-rate models on CPUs, from data frames and files.

    import tnet
    m = tnet.Model("deepfm")
    m.fit(df, label="click", valid=0.1)
    p = m.predict(df)
    m.export("ads")

docs/python.md is the manual.
"""

from . import callbacks
from ._infer import infer
from ._library import (ConfigError, DataError, Diverged, ModelError, OutOfMemory, Stopped,
                       StorageError, TNetError, UsageError, version)
from ._model import Model, Run, Scorer, load, train

__version__ = version().decode()
__all__ = ["ConfigError", "DataError", "Diverged", "Model", "ModelError", "OutOfMemory", "Run",
           "Scorer", "Stopped", "StorageError", "TNetError", "UsageError", "callbacks", "infer",
           "load", "train"]
