#!/bin/sh
# What `make run` shows: generates clicks whose truth is known, trains Wide & Deep on them, evaluates
# it, exports it, scores a few rows with the export, and says where everything is.
#
# TNET_BIN is the folder of the programs; ROWS (default 300000) how much is generated.
set -e
bin=${TNET_BIN:-build/release}
rows=${ROWS:-300000}
small=$((rows / 6))
say() { printf '\n== %s\n' "$*"; }

mkdir -p data/demo
say "data: $rows rows to train on, $small to validate, $small to test, in the Criteo format"
"$bin/tnet-data" gen preset=criteo rows="$rows" --to data/demo/train.tsv
"$bin/tnet-data" gen preset=criteo rows="$small" first_row="$rows" --to data/demo/valid.tsv
"$bin/tnet-data" gen preset=criteo rows="$small" first_row=$((rows + small)) --to data/demo/test.tsv

say "training: configs/widedeep.yaml"
"$bin/tnet-train" configs/widedeep.yaml checkpoint.resume=never

say "evaluation of the newest checkpoint on the test data"
"$bin/tnet-eval" configs/widedeep.yaml --data data/demo/test.tsv \
    --predictions runs/widedeep/predictions.tsv

say "export: inference dictionary and dense graph"
"$bin/tnet-export" configs/widedeep.yaml --to runs/widedeep/export >runs/widedeep/export.txt
cat runs/widedeep/export.txt
export_dir=$(tail -n 1 runs/widedeep/export.txt)

say "scores of three rows by the export alone"
head -n 3 data/demo/test.tsv | "$bin/tnet-score" "$export_dir" format=criteo

say "where everything is"
cat <<END
data           data/demo/            (and *.truth.json: what the best possible model reaches)
configuration  configs/widedeep.yaml
checkpoints    runs/widedeep/ckpt-*
log, summary   runs/widedeep/metrics.jsonl  runs/widedeep/summary.json
predictions    runs/widedeep/predictions.tsv
export         $export_dir
END
