"""Data frames of other libraries, where they are installed: the same model from each."""

import numpy as np
import pytest
import tnet
from test_model import SLOTS, fitted, learned


def frames(rows):
    """The same rows as each library has them."""
    found = {}
    try:
        import pandas
        found["pandas"] = pandas.DataFrame(rows)
        found["pandas categories"] = pandas.DataFrame(rows).assign(
            user=pandas.Categorical(rows["user"]))
    except ImportError:
        pass
    try:
        import pyarrow
        found["pyarrow"] = pyarrow.table({k: pyarrow.array(v.tolist()) for k, v in rows.items()})
        found["pyarrow batches"] = pyarrow.Table.from_batches(
            found["pyarrow"].to_batches(max_chunksize=777))
        found["pyarrow dictionary"] = found["pyarrow"].set_column(
            1, "user", found["pyarrow"]["user"].dictionary_encode())
    except ImportError:
        pass
    try:
        import polars
        found["polars"] = polars.DataFrame({k: v.tolist() for k, v in rows.items()})
        found["polars categories"] = found["polars"].with_columns(
            polars.col("user").cast(polars.Categorical))
    except ImportError:
        pass
    try:
        import duckdb
        import pandas
        table = pandas.DataFrame(rows)  # noqa: F841: duckdb finds it by its name
        found["duckdb"] = duckdb.sql("select * from table").fetch_arrow_table()
    except (ImportError, Exception):  # noqa: BLE001: not every version reads every pandas
        pass
    return found


def test_each_frame_gives_the_same_model(rows):
    wanted = learned(fitted(rows))
    found = frames(rows)
    if not found:
        pytest.skip("no library of data frames is installed")
    for name, frame in found.items():
        assert learned(fitted(frame)) == wanted, name
        assert tnet.infer(frame, label="click")["slots"] == SLOTS, name


def test_each_frame_is_scored_alike(rows, held):
    model = fitted(rows)
    p = model.predict(held)
    for name, frame in frames(held).items():
        np.testing.assert_array_equal(model.predict(frame), p, err_msg=name)
