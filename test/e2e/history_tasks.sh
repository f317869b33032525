#!/bin/sh
# history_tasks.sh - models of histories learn several tasks: towers on what attention finds, exports that score with the bits of
# checkpoints, the same model from a printed list; one label is what it was, and each history may be attended in its own way.
. "$(dirname "$0")/kit"
cd "$dir"
# gen FILE FIRST ROWS: clicks that histories decide, and purchases of some of those who click
gen() {
    expect 0 tnet-data gen -q --to rows.csv --config-to rows.yaml --force preset=histories model=attention rows="$3" first_row="$2"
    awk -F, 'NR == 1 { print $0 ",buy"; next } { print $0 "," ($1 == 1 && (NR * 7919 + length($0)) % 5 < 2 ? 1 : 0) }' rows.csv >"$1"
}
gen train.csv 0 40000
gen valid.csv 100000 5000
sed -i 's/rows\.csv/train.csv/' rows.yaml
cat >run.yaml <<END
include: [rows.yaml]
data: {valid: valid.csv, label: ~}
tasks: {click: {label: label}, buy: {of: click}}
embedding: {dim: 8}
train: {epochs: 2, batch: 256}
eval: {calibrate: none}
log: {progress: false}
END
for model in 'din, attention: {hidden: [16]}, hidden: [32]' 'bst, attention: {heads: 2}, hidden: [32], tower: [8]'; do
    rm -rf run first second
    expect 0 tnet-train -q run.yaml run.dir=run "model={type: $model}"
    expect 0 tnet-eval run --data valid.csv --predictions want.tsv
    for task in click buy; do
        awk -v task=$task 'NR == 1 { for (i = 2; i <= NF; i++) if ($i ~ task) at = i }
            $1 == "auc" { exit !(at > 0 && $at > 0.6) }' out || fail "$model: $task learns nothing: $(cat out)"
    done
    expect 0 tnet-export -q run --to "export"
    expect 0 tnet-score "$(cat out)" --data valid.csv
    cmp -s want.tsv out || fail "$model: the export scores otherwise: $(head -n 3 want.tsv out)"
    rm -r "export"
    expect 0 tnet-train run.yaml "model={type: $model}" --print-graph
    { echo "include: [run.yaml]" && cat out; } >again.yaml
    expect 0 tnet-train -q run.yaml run.dir=first "model={type: $model}" train.max_steps=3
    expect 0 tnet-train -q again.yaml run.dir=second train.max_steps=3
    for file in dense-0000.safetensors sparse-0000-1023.tns; do
        tail -c +65 first/ckpt-1/$file >one
        tail -c +65 second/ckpt-1/$file | cmp -s one - || fail "$model: its printed list learns otherwise"
    done
done
expect 0 tnet-train rows.yaml data.valid=valid.csv model=din --print-graph
grep -q '^  output: deep\.3$' out || fail "one label: $(tail -n 4 out)"

# ---- two histories, of which each is attended by its own options ----

sed '/^slots:/a\  - {name: again, column: hist_item, list: "|", type: id, share: item}' rows.yaml >two.yaml
expect 0 tnet-train two.yaml data.valid=valid.csv 'sequences.late={slots: [again], target: [item], max_len: 5}' \
    'model={type: din, attention: {hidden: [9], of: {late: {hidden: [4], softmax: true}}}}' --print-graph
grep -q 'name: clicks.attended, attend: .*hidden: \[9\].*softmax: false' out || fail "clicks: $(grep attend out)"
grep -q 'name: late.attended, attend: .*hidden: \[4\].*softmax: true' out || fail "late: $(grep attend out)"
expect 0 tnet-train -q two.yaml data.valid=valid.csv 'sequences.late={slots: [again], target: [item], max_len: 5}' run.dir=two \
    'model={type: din, attention: {hidden: [9], of: {late: {hidden: [4], softmax: true}}}}' train.epochs=1 train.max_steps=20
