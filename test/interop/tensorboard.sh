#!/bin/sh
# tensorboard.sh - TensorBoard reads the event files of a run that was ended, went on, and was begun anew: one curve
# without a gap or a step twice, equal to metrics.jsonl, and every kind of picture.
#
# Packages go into a virtual environment of their own, build/interop.
. "$(dirname "$0")/../e2e/kit"
root=$(pwd)
python=$root/build/interop/bin/python
command -v python3 >"$dir/null" || skip "no python3"
"$python" -c 'import tensorboard' 2>"$dir/null" || {
    echo "tensorboard: installing it into build/interop"
    { python3 -m venv "$root/build/interop" && "$python" -m pip install -q tensorboard; } >"$dir/pip.log" 2>&1 ||
        skip "tensorboard cannot be installed: $(tail -n 1 "$dir/pip.log")"
}
cd "$dir"
expect 0 tnet-data gen -q --to train.ffm rows=100000 slots=4 ids=2000 --config-to c.yaml
expect 0 tnet-data gen -q --to valid.ffm rows=10000 first_row=100000 slots=4 ids=2000
set -- c.yaml data.train=train.ffm data.valid=valid.ffm run.dir=run 'model={type: deepfm, hidden: [16]}' embedding.dim=4 log.every=200ms
expect 0 tnet-train -q "$@" train.epochs=2
expect 0 tnet-train -q "$@" train.epochs=4
found=$("$python" "$root/test/interop/tensorboard_check.py" run 2>&1) || fail "$found"
echo "tensorboard: $found"
expect 0 tnet-train -q "$@" train.epochs=2 --fresh
found=$("$python" "$root/test/interop/tensorboard_check.py" run 2>&1) || fail "begun anew: $found"
echo "tensorboard: begun anew: $found"
