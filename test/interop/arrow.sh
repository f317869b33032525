#!/bin/sh
# arrow.sh - arrays of pyarrow are read as pyarrow itself reads them: random tables of all types beside to_pylist; and libtnet scores
# batches of pyarrow as tnet-score does the same rows in a CSV file, by models of csv, criteo and jsonl.
#
# pyarrow goes into a virtual environment of its own, build/interop-arrow. TABLES=200 SEED=1 choose the tables.
. "$(dirname "$0")/../e2e/kit"
root=$(pwd)
venv=$root/build/interop-arrow
command -v python3 >"$dir/null" || skip "no python3"
[ -e "$bin/libtnet_io.a" ] || skip "no libtnet_io.a in $bin"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || skip "python3 makes no virtual environment"
cd "$dir"
"$venv/bin/python" -c 'import pyarrow' 2>null || {
    echo "arrow: installing pyarrow into build/interop-arrow"
    "$venv/bin/python" -m pip install -q pyarrow >pip.log 2>&1 || skip "pyarrow cannot be installed: $(tail -n 1 pip.log)"
}

# The functions are the library's own, so a small one is made of the archives.
wanted=
for function in tn_arrow_cells_new tn_arrow_cells_head tn_arrow_cells_rows tn_arrow_cells_free tn_text_done; do
    wanted="$wanted -Wl,-u,$function"
done
# shellcheck disable=SC2086 # names of functions
cc -shared -o cells.so $wanted "$bin/libtnet_io.a" "$bin/libtnet_base.a" -lm >cc.log 2>&1 || fail "cells.so: $(tail -n 3 cc.log)"
"$venv/bin/python" "$root/test/interop/arrow_check.py" ./cells.so "${TABLES:-200}" "${SEED:-1}" >said 2>errors ||
    fail "$(tail -n 3 said errors)"
echo "arrow: $(cat said)"

# scored NAME COLUMN=TYPE..: the model of NAME.yaml over rows.csv
scored() {
    format=$1
    shift
    expect 0 tnet-train -q "$format.yaml"
    expect 0 tnet-export -q "$format.yaml" --to "export-$format"
    export=$(cat out)
    expect 0 tnet-score "$export" --data "rows.$format"
    mv out predictions
    "$venv/bin/python" "$root/test/interop/arrow_score.py" "$bin/libtnet.so" "$export" named.csv predictions "$@" >said 2>errors ||
        fail "$format: $(tail -n 3 said errors)"
    echo "arrow: $format: $(cat said)"
}

model='embedding: {dim: 4}
train: {epochs: 1, batch: 100, threads: 2}
eval: {calibrate: none}'
expect 0 tnet-data gen -q preset=plain slots=4 multi=1 numeric=2 ids=300 rows=3000 --format csv --to rows.csv --config-to rows.yaml
cp rows.csv named.csv
cat >csv.yaml <<END
include: [rows.yaml]
run: {name: csv, dir: run-csv}
model: {type: widedeep, hidden: [8]}
$model
END
scored csv s0=text s1=dictionary s3=list
expect 0 tnet-data convert -q rows.yaml to.format=jsonl --to rows.jsonl
sed 's/rows.csv/rows.jsonl/; s/format: csv/format: jsonl/' rows.yaml >jsonl-rows.yaml
sed 's/rows.yaml/jsonl-rows.yaml/; s/csv/jsonl/g' csv.yaml >jsonl.yaml
scored jsonl s1=dictionary s3=list
expect 0 tnet-data gen -q preset=criteo rows=3000 --to rows.criteo --config-to criteo-rows.yaml
cat >criteo.yaml <<END
include: [criteo-rows.yaml]
run: {name: criteo, dir: run-criteo}
model: {type: widedeep, hidden: [8]}
$model
END
{
    printf 'label'
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do printf ',I%s' $i; done
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26; do printf ',C%s' $i; done
    echo
    tr '\t' , <rows.criteo
} >named.csv
texts=
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26; do texts="$texts C$i=dictionary"; done
# shellcheck disable=SC2086 # words of the command
scored criteo $texts
