#!/bin/sh
# data.sh - what tnet-data writes is read by those it is written for, and holds the rows of the csv it was made of:
# libsvm by scikit-learn, libffm by xLearn, Vowpal Wabbit's text by VW, tf.Example by TensorFlow; a model's dense.safetensors by
# safetensors: with dict.tsv it gives TNet's predictions.
#
# Packages go into a virtual environment of their own, build/interop-data; one that cannot be installed is left out, with words.
. "$(dirname "$0")/../e2e/kit"
root=$(pwd)
venv=$root/build/interop-data
command -v python3 >"$dir/null" || skip "no python3"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || skip "python3 makes no virtual environment"
cd "$dir"
expect 0 tnet-data gen -q preset=plain slots=4 multi=1 numeric=2 ids=300 rows=3000 --format csv --to rows.csv --config-to rows.yaml

# convert FORMAT WORDS..: rows.FORMAT
convert() {
    format=$1
    shift
    expect 0 tnet-data convert -q rows.yaml "to.format=$format" --to "rows.$format" "$@"
}
convert libsvm 'slots=[{name: s0, type: id, range: [0, 300]}, {name: s1, type: id, range: [300, 600]},
    {name: s2, type: id, range: [600, 900]}]' # the values of s3 do not ascend, as scikit-learn wants it
convert libffm
convert vw
convert tfrecord
cat >model.yaml <<END
include: [rows.yaml]
run: {name: interop, dir: run}
data: {test: rows.csv}
slots: [{name: s0, type: id}, {name: s1, type: id}, {name: s2, type: id}, {name: s3, type: id, list: "|", pool: sum}]
model: {type: widedeep, hidden: [8]}
embedding: {dim: 4}
train: {epochs: 1, batch: 100, threads: 2}
eval: {calibrate: none}
END
expect 0 tnet-train -q model.yaml
expect 0 tnet-eval -q model.yaml --predictions predictions.tsv
expect 0 tnet-export -q model.yaml --to export 'export.dict=[tnd, tsv]'
ln -s "$(cat out)" model

read=0
for reader in scikit-learn:sklearn:libsvm xlearn:xlearn:libffm vowpalwabbit:vowpalwabbit:vw tensorflow-cpu:tensorflow:tfrecord safetensors:safetensors:model; do
    package=${reader%%:*}
    module=${reader#*:}
    module=${module%:*}
    "$venv/bin/python" -c "import numpy, $module" 2>null || {
        echo "data: installing $package into build/interop-data"
        "$venv/bin/python" -m pip install -q numpy "$package" >pip.log 2>&1 || {
            echo "data: $package cannot be installed, ${reader##*:} is not read: $(tail -n 1 pip.log)"
            continue
        }
    }
    USER=${USER:-nobody} "$venv/bin/python" "$root/test/interop/data_check.py" "${reader##*:}" >said 2>errors || # xLearn wants a USER
        fail "$package: $(tail -n 3 said errors)"
    echo "data: $(tail -n 1 said)"
    read=$((read + 1))
done
[ "$read" -gt 0 ] || skip "none of the readers can be installed"
