#!/bin/sh
# quantile.sh - the loss of the recipe's test learns the quantile that its option asks for.
# shellcheck source=test/e2e/kit
. "$(dirname "$0")/kit"
cd "$dir"
awk 'BEGIN { srand(7); print "y,a"; for (i = 0; i < 20000; i++) printf "%.4f,1\n", rand() }' >rows.csv
cat >run.yaml <<END
data: {format: csv, train: rows.csv, label: y}
slots: [a]
model: lr
train: {epochs: 3, batch: 256}
log: {progress: false}
END
for level in 0.2 0.8; do
    expect 0 tnet-train run.yaml run.dir="run$level" "loss={type: quantile, level: $level}"
    expect 0 tnet-eval -q run.yaml run.dir="run$level" "loss={type: quantile, level: $level}" --data rows.csv --predictions p.tsv
    awk -v want=$level 'NR > 1 { n++; below += $2 < $4 } END { share = below / n; exit !(share > want - .05 && share < want + .05) }' p.tsv ||
        fail "level $level: $(head -n 3 p.tsv)"
done
expect 3 tnet-train run.yaml 'loss={type: quantile, level: 2}'
grep -q "'level' is 2, not within 0 .. 1" err || fail "$(cat err)"
