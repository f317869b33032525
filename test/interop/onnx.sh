#!/bin/sh
# onnx.sh - graph.onnx of every configuration in configs/, of one with every other operator, and of a calibrated
# model: accepted by the full checker of ONNX, run by onnxruntime, equal to TNet's predictions within 1e-6.
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
clicks train.tsv 2000 0
clicks rows.tsv 500 2000
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

adult=$root/data/adult
[ -e "$adult" ] || adult=$root/../shared/data/adult
one_file=$(find test/golden/tensornet/data/2020-05-10/ -name 'tf-*' | sort | head -n 1) # of which predictions are one file
for config in configs/*.yaml test/interop/operators.yaml; do
    model=$(basename "$config" .yaml)
    case $model in
    common) ;;
    adult*)
        if [ -r "$adult/train.csv.gz" ]; then
            check "$model" "$config" data.train="$adult/train.csv.gz" data.test="$adult/test.csv.gz" train.max_steps=30
        else
            echo "onnx: $model: skipped, no data/adult"
        fi
        ;;
    tensornet-cvm) check "$model" "$config" "data.test=$one_file" train.epochs=0 checkpoint.from.tensornet.dir=test/golden/tensornet/adagrad_cvm_r1/bin ;;
    tensornet*) check "$model" "$config" "data.test=$one_file" train.epochs=0 ;;
    *) check "$model" "$config" data.train=train.tsv data.valid=~ data.test=rows.tsv train.batch=64 train.max_steps=30 ;;
    esac
done

# the dictionary as a part of the graph; fetch.npz and predictions are of the last configuration
found=$(PYTHONPATH=$root/examples/python "$python" test/interop/gather_check.py "out-$label"/* rows.tsv fetch.npz predictions.tsv 2>&1) ||
    fail "gather: $found"
echo "onnx: $label: $found"

# with a calibration: two numbers, three, and a curve, which has no form there
clicks later.tsv 1000 4000
for method in platt isotonic; do
    expect 0 tnet-eval -q configs/deepfm.yaml run.dir=runs/deepfm --calibrate "$method" --data later.tsv --calibration-out "$method.json"
    expect 0 tnet-export -q configs/deepfm.yaml run.dir=runs/deepfm --to "$method" --calibration "$method.json" 'export.graph=[native, onnx]'
    folder=$(cat out)
    if [ "$method" = isotonic ]; then
        grep -q "no graph.onnx: an isotonic calibration has no form in ONNX" err || fail "$(cat err)"
        [ -s "$folder/model.json" ] || fail "isotonic: $(ls "$folder")"
        [ ! -e "$folder/graph.onnx" ] || fail "isotonic: $(ls "$folder")"
    else
        expect 0 tnet-eval -q configs/deepfm.yaml run.dir=runs/deepfm eval.calibrate=none --data rows.tsv --fetch in.deep --fetch in.wide
        tnet-score "$folder" --data rows.tsv >predictions.tsv || fail "tnet-score"
        found=$("$python" test/interop/onnx_check.py "$folder/graph.onnx" fetch.npz predictions.tsv "$method.json" 2>&1) || fail "$method: $found"
        echo "onnx: deepfm, $method: $found"
    fi
done
