"""Rows for the tests: a label that depends on a user, an item and a price."""

import csv

import numpy as np
import pytest


def make_rows(n, seed):
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 300, n)
    item = rng.integers(0, 50, n)
    price = np.round(rng.random(n) * 10, 3)
    logit = (user % 7 - 3) * 0.5 + (item % 5 - 2) * 0.4 + price * 0.1 - 1
    click = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    return {"click": click, "user": np.array([f"user {u}" for u in user], dtype=object),
            "item": item, "price": price}


@pytest.fixture(scope="session")
def rows():
    return make_rows(6000, 1)


@pytest.fixture(scope="session")
def held():
    return make_rows(2000, 2)


def write_csv(path, columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(columns)
        out.writerows(zip(*[v.tolist() if hasattr(v, "tolist") else v for v in columns.values()]))
    return str(path)
