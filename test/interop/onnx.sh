#!/bin/sh
# onnx.sh - graph.onnx of every configuration in configs/, of two with every other operator, and of calibrated
# models: accepted by the full checker of ONNX, run by onnxruntime, equal to TNet's predictions within 1e-6.
#
# Packages go into a virtual environment of their own, build/interop.
. "$(dirname "$0")/../e2e/kit"
root=$(pwd)
python=$root/build/interop/bin/python
command -v python3 >"$dir/null" || skip "no python3"
"$python" -c 'import onnx, onnxruntime' 2>"$dir/null" || {
    echo "onnx: installing onnx and onnxruntime into build/interop"
    { python3 -m venv "$root/build/interop" && "$python" -m pip install -q onnx onnxruntime numpy; } >"$dir/pip.log" 2>&1 ||
        skip "onnx and onnxruntime cannot be installed: $(tail -n 1 "$dir/pip.log")"
}
cd "$dir"
# lists FILE ROWS FIRST: rows of libffm, one to four values in each of three fields
lists() {
    awk -v n="$2" -v first="$3" 'BEGIN {
        for (i = first; i < first + n; i++) {
            printf "%d", (i * 7 % 11 + i % 5 > 8)
            for (f = 0; f < 3; f++)
                for (k = 0; k <= (i + f) % 4; k++) printf " %d:%d:%g", f, (i * (17 + f) + k * 29) % 97 + 100 * f, 1 + (i + k) % 3 / 4
            print ""
        } }' >"$1"
}
clicks train.tsv 2000 0
clicks rows.tsv 500 2000
lists train.ffm 2000 0
lists rows.ffm 500 2000
ln -s "$root/test" "$root/configs" . # as paths in configurations say

# inputs GRAPH: names of its inputs
inputs() {
    "$python" -c 'import onnx, sys; print(*(i.name for i in onnx.load(sys.argv[1]).graph.input))' "$1"
}

# check NAME CONFIG WORDS..: trains it, exports it and compares, raw
check() {
    label=$1
    config=$2
    shift 2
    run=runs/$label
    expect 0 tnet-train -q "$config" run.dir="$run" eval.calibrate=none train.threads=2 "$@"
    expect 0 tnet-export -q "$config" run.dir="$run" eval.calibrate=none --to "out-$label" 'export.graph=[native, onnx]' "$@"
    graph=$(cat out)/graph.onnx
    [ -s "$graph" ] || fail "$label: no graph.onnx: $(cat err)"
    set -- "$@" --predictions predictions.tsv
    for input in $(inputs "$graph"); do
        set -- "$@" --fetch "$input"
    done
    rm -f fetch.npz predictions.tsv
    expect 0 tnet-eval -q "$config" run.dir="$run" eval.calibrate=none "$@"
    found=$("$python" "$root/test/interop/onnx_check.py" "$graph" fetch.npz predictions.tsv 2>&1) || fail "$label: $found"
    echo "onnx: $label: $found"
}

# data NAME: its folder, if it is there
data() {
    for folder in "$root/data/$1" "$root/../shared/data/$1"; do
        [ ! -r "$folder/train.csv.gz" ] || echo "$folder"
    done | head -n 1
}

one_file=$(find test/golden/tensornet/data/2020-05-10/ -name 'tf-*' | sort | head -n 1) # of which predictions are one file
for config in configs/*.yaml configs/frappe/*.yaml test/interop/lists.yaml test/interop/operators.yaml; do
    model=$(basename "$config" .yaml)
    from=
    case $config in
    configs/frappe/*) model=frappe-$model from=frappe ;;
    configs/adult*) from=adult ;;
    esac
    case $model in
    common | frappe-common) ;;
    histories | din | bst) ;; # the positions of a sequence have no form in ONNX
    adult* | frappe*)
        folder=$(data "$from")
        if [ -n "$folder" ]; then
            check "$model" "$config" data.train="$folder/train.csv.gz" data.valid="$folder/test.csv.gz" data.test="$folder/test.csv.gz" train.max_steps=30
        else
            echo "onnx: $model: skipped, no data/$from"
        fi
        ;;
    lists) check "$model" "$config" data.train=train.ffm data.test=rows.ffm train.batch=64 train.max_steps=30 ;;
    tensornet-cvm) check "$model" "$config" "data.test=$one_file" train.epochs=0 checkpoint.from.tensornet.dir=test/golden/tensornet/adagrad_cvm_r1/bin ;;
    tensornet*) check "$model" "$config" "data.test=$one_file" train.epochs=0 ;;
    *) check "$model" "$config" data.train=train.tsv data.valid=~ data.test=rows.tsv train.batch=64 train.max_steps=30 ;;
    esac
done

# the dictionary as a part of the graph; fetch.npz and predictions are of the last configuration
found=$(PYTHONPATH=$root/examples/python "$python" test/interop/gather_check.py "out-$label"/* rows.tsv fetch.npz predictions.tsv 2>&1) ||
    fail "gather: $found"
echo "onnx: $label: $found"

# every operator of a model that scores is in one of these graphs
cat out-*/*/model.json | grep -o '"op":"[a-z_]*"' | sort -u >seen
tnet-train --list-losses | grep -oE '^[a-z_]+' >losses # which no graph that scores has
for op in $(tnet-train --list-ops | cut -d ' ' -f 1 | grep -vxF -f losses); do
    case $op in
    embed* | numeric | dropout | sequence_*) ;; # what goes in, what only trains, and positions
    *) grep -q "\"$op\"" seen || fail "no model of these has '$op'" ;;
    esac
done

# several tasks: each output is a column of predictions
expect 0 tnet-data gen -q buy=0.3 rows=3000 --to tasks.csv
expect 0 tnet-data gen -q buy=0.3 rows=500 first_row=3000 --to tasks.rows.csv
for config in configs/tasks/shared.yaml configs/tasks/mmoe.yaml configs/tasks/esmm.yaml configs/tasks/ple.yaml; do
    check "tasks-$(basename "$config" .yaml)" "$config" data.train=tasks.csv data.valid=~ data.test=tasks.rows.csv train.batch=64 train.max_steps=30
done

# with a calibration: two numbers, three, and lines between knots
clicks later.tsv 1000 4000
expect 0 tnet-eval -q configs/deepfm.yaml run.dir=runs/deepfm eval.calibrate=none --data rows.tsv --fetch in.deep --fetch in.wide
for method in none platt isotonic; do
    if [ "$method" = none ]; then
        expect 0 tnet-export -q configs/deepfm.yaml run.dir=runs/deepfm eval.calibrate=none --to none
    else
        expect 0 tnet-eval -q configs/deepfm.yaml run.dir=runs/deepfm --calibrate "$method" --data later.tsv --calibration-out "$method.json"
        expect 0 tnet-export -q configs/deepfm.yaml run.dir=runs/deepfm --to "$method" --calibration "$method.json" 'export.graph=[native, onnx]'
    fi
    folder=$(cat out)
    tnet-score "$folder" --data rows.tsv >"$method.tsv" || fail "tnet-score"
    [ "$method" != none ] || continue
    found=$("$python" "$root/test/interop/onnx_check.py" "$folder/graph.onnx" fetch.npz "$method.tsv" "$method.json" none.tsv 2>&1) || fail "$method: $found"
    echo "onnx: deepfm, $method: $found"
done
