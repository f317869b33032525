#!/bin/sh
# python.sh - the Python package beside others: Optuna prunes, Ray Tune and MLflow run a model, nanoarrow reads its arrays and gives it
# some. They go from PyPI into a virtual environment of their own, build/interop-python.
. "$(dirname "$0")/../e2e/kit"
root=$(pwd)
venv=$root/build/interop-python
command -v python3 >"$dir/null" || skip "no python3"
[ -e "$bin/libtnet-train.so.1" ] || skip "no libtnet-train.so.1 in $bin"
if [ ! -e "$venv/ready" ]; then
    python3 -m venv "$venv" || skip "python3 makes no virtual environment"
    echo "python: installing Optuna, Ray, MLflow and nanoarrow into build/interop-python"
    "$venv/bin/python" -m pip install -q numpy pandas pytest nanoarrow optuna mlflow-skinny 'ray[tune]' >"$dir/pip.log" 2>&1 ||
        skip "packages cannot be installed: $(tail -n 1 "$dir/pip.log")"
    touch "$venv/ready"
fi
TNET_LIBRARY_PATH=$bin PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -m pytest -q -p no:cacheprovider \
    --basetemp="$dir/pytest" -k "optuna or ray or mlflow or nanoarrow" -rs python/tests/test_tools.py >"$dir/said" 2>&1 ||
    fail "$(tail -n 20 "$dir/said")"
grep -q skipped "$dir/said" && fail "a package is there and its test was skipped: $(grep -i skip "$dir/said")"
echo "python: $(tail -n 1 "$dir/said"), with $("$venv/bin/python" -m pip list 2>"$dir/null" |
    awk '/^(optuna|ray|mlflow-skinny|nanoarrow) / { printf "%s%s %s", n++ ? ", " : "", $1, $2 }')"
