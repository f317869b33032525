#!/bin/sh
# report_page.sh - the script of the page that `tnet-eval --report` writes: what it draws of a real evaluation, and where. Needs node.
. "$(dirname "$0")/kit"
command -v node >"$dir/null" || skip "no node, which runs the page's script"
checks=$(cd "$(dirname "$0")" && pwd)/report_page.js
cd "$dir"
expect 0 tnet-data gen -q --to train.csv --format csv preset=movies rows=3000
sed 's/,tv,/,<b>"tv" \& <\/script>,/' train.csv >odd.csv
expect 0 tnet-train -q train.csv.yaml data.train=odd.csv data.valid=odd.csv run.dir=run log.every=1ms train.epochs=2
expect 0 tnet-eval -q train.csv.yaml data.train=odd.csv run.dir=run --data odd.csv 'eval.slices=[device]' eval.auc=exact --compare run --report page.html
expect 0 node "$checks" page.html
awk -F , 'NR == 1 || $1 == 0' train.csv >negative.csv
expect 0 tnet-eval -q train.csv.yaml data.train=odd.csv run.dir=run --data negative.csv --report negative.html
expect 0 node "$checks" negative.html one-class
sed 's/label: label/label: hour/; /name: hour/d' train.csv.yaml >hours.yaml
expect 0 tnet-train -q hours.yaml run.dir=hours loss=mse train.epochs=1
expect 0 tnet-eval -q hours.yaml run.dir=hours loss=mse --data train.csv 'eval.slices=[device]' --report hours.html
expect 0 node "$checks" hours.html numbers
rm run/metrics.jsonl
expect 0 tnet-eval -q train.csv.yaml data.train=odd.csv run.dir=run --data odd.csv data.label=none --report bare.html
expect 0 node "$checks" bare.html bare
