#!/bin/sh
# python.sh - the Python package by what Debian has of Python: models of rows in memory are those of tnet-train from files, bit
# for bit; errors, callbacks, interruptions, forks. `make test-python` runs the same with pandas, pyarrow, polars and more.
. "$(dirname "$0")/kit"
[ -z "${TNET_SANITIZE:-}" ] || exit 77 # a library with sanitizers wants a python that has them, too
python=/usr/bin/python3 # whatever else PATH has: the one that Debian packages are for
"$python" -c "import numpy, pytest" 2>"$dir/null" || skip "python3-numpy and python3-pytest are not installed"
TNET_LIBRARY_PATH=$(cd "$TNET_BIN" && pwd) PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 \
    "$python" -m pytest -q -p no:cacheprovider --basetemp="$dir/pytest" python/tests
