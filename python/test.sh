#!/bin/sh
# test.sh - tests the Python package in a virtual environment of its own below build/, with packages from PyPI.
# PYTHON=python3.14 takes another interpreter; TNET_BIN has the libraries (build/release). Words go to pytest.
set -eu
cd "$(dirname "$0")/.."
bin=$(cd "${TNET_BIN:-build/release}" && pwd)
python=${PYTHON:-python3}
venv=$PWD/build/python-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ ! -e "$venv/ready" ]; then
    "$python" -m venv "$venv"
    "$venv/bin/pip" install -q numpy scipy pandas pyarrow polars duckdb scikit-learn pytest nanoarrow optuna mlflow-skinny nbclient nbformat ipykernel
    touch "$venv/ready"
fi
TNET_LIBRARY_PATH=$bin PYTHONPATH=$PWD/python "$venv/bin/python" -m pytest -q "$@" python/tests
