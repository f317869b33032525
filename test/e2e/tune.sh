#!/bin/sh
# tune.sh - tnet-train --pause and tnet-tune: a run in pieces has the bits of one in one go; trials give one table however many run
# side by side and whatever kills them; the best configuration trains the best model; what cannot be tuned is refused.
. "$(dirname "$0")/kit"
command -v tnet-tune >"$dir/null" || skip "no tnet-tune in this build"
while read -r rows seed file; do
    tnet-data gen preset=criteo zipf=1.5 "rows=$rows" "seed=$seed" --to "$dir/$file" >"$dir/null" 2>&1
done <<EOF
3000 1 train.tsv
1500 2 valid.tsv
EOF
cat >"$dir/c.yaml" <<EOF
data: {format: criteo, train: $dir/train.tsv, valid: $dir/valid.tsv}
model: {type: deepfm, hidden: [8]}
train: {epochs: 2, batch: 64, threads: 1}
run: {dir: $dir/run}
EOF

# id NAME RUN: the name of an export of the run, which is a hash of the model, into a file
id() {
    rm -rf "$dir/to"
    expect 0 tnet-export -q "$2" --to "$dir/to"
    ls "$dir/to" >"$dir/id-$1"
}

# ---- a run in pieces ----
expect 0 tnet-train -q "$dir/c.yaml" run.dir="$dir/whole"
for pause in 5 5 3 47 60; do # within an epoch, again, before, at an epoch's end, after it
    expect 75 tnet-train -q "$dir/c.yaml" run.dir="$dir/pieces" --pause "$pause"
done
says "paused at step 60; saved as '$dir/pieces/ckpt-"
grep -q '"status":"stopped"' "$dir/pieces/summary.json" || fail "$(cat "$dir/pieces/summary.json")"
expect 0 tnet-train -q "$dir/c.yaml" run.dir="$dir/pieces" --pause 100000
id whole "$dir/whole"
id pieces "$dir/pieces"
cmp -s "$dir/id-whole" "$dir/id-pieces" || fail "another model in pieces"
if tnet-train --help | grep -q -- --peers; then
    for pause in 5 47; do
        expect 75 tnet-train -q "$dir/c.yaml" run.dir="$dir/two" --peers 2 --pause "$pause"
        grep -q "paused at step $pause" "$dir/err" || fail "$(cat "$dir/err")"
    done
fi
expect 2 tnet-train "$dir/c.yaml" --pause 0

# ---- trials ----
cat >>"$dir/c.yaml" <<EOF
tune:
  trials: 9
  space:
    train.optimizer.lr: {log: [1e-4, 1e-1]}
    train.batch: {int: [32, 200], log: true}
    model.hidden: [[4], [8, 4]]
EOF
cat >"$dir/s.yaml" <<EOF
include: c.yaml
tune: {parallel: 1}
EOF
expect 0 tnet-tune "$dir/c.yaml" tune.parallel=3
sed "s|$dir/run|RUN|" "$dir/out" >"$dir/table"
head -n 1 "$dir/table" | grep -qx 'trial  valid.auc  steps  values' || fail "$(cat "$dir/table")"
[ "$(grep -c '^ *[0-9]' "$dir/table")" -eq 9 ] || fail "not nine trials: $(cat "$dir/table")"
[ "$(grep -c '"kind":"result"' "$dir/run/tune/journal.jsonl")" -eq 13 ] || fail "not 9 + 3 + 1 results"
[ "$(grep -c '"rung":2' "$dir/run/tune/journal.jsonl")" -eq 1 ] || fail "not one whole run"
[ "$(grep -c '<polyline' "$dir/run/tune/tune.html")" -eq 8 ] || fail "the page has not all trials but the configured one"
expect 0 tnet-tune "$dir/s.yaml" run.dir="$dir/one"
sed "s|$dir/one|RUN|" "$dir/out" | cmp -s - "$dir/table" || fail "one at a time: $(cat "$dir/out")"
draw
signals="KILL TERM INT"
killed 6 600 tnet-tune "$dir/c.yaml" run.dir="$dir/killed"
sed "s|$dir/killed|RUN|" "$dir/out" | cmp -s - "$dir/table" || fail "after kills: $(cat "$dir/out")"

# Again: nothing is run. Cut short in a line: that trial alone is judged again.
cp "$dir/run/tune/journal.jsonl" "$dir/journal"
expect 0 tnet-tune "$dir/c.yaml" tune.time=1s
cmp -s "$dir/journal" "$dir/run/tune/journal.jsonl" || fail "it ran trials again"
head -c -20 "$dir/journal" >"$dir/run/tune/journal.jsonl"
expect 0 tnet-tune "$dir/c.yaml"
sed "s|$dir/run|RUN|" "$dir/out" | cmp -s - "$dir/table" || fail "after a cut line: $(cat "$dir/out")"

# The best trial, which paused twice, is what its configuration trains in one go.
best=$(sed -n 's/^best: trial \([0-9]*\),.*/\1/p' "$dir/table")
expect 0 tnet-tune -q "$dir/c.yaml" --best
grep -q '^tune:' "$dir/out" && fail "the best configuration has a section tune"
cp "$dir/out" "$dir/best.yaml"
expect 0 tnet-train -q "$dir/best.yaml" run.dir="$dir/again"
id again "$dir/again"
id best "$dir/run/tune/trial-$best"
cmp -s "$dir/id-again" "$dir/id-best" || fail "the best configuration trains another model"

# Values from outside, as optuna passes them.
expect 0 tnet-tune -q "$dir/c.yaml" --space
grep -q '^{"train.optimizer.lr":{"name":"FloatDistribution","attributes":{"log":true,"low":0.0001,"high":0.1,"step":null}}' "$dir/out" ||
    fail "$(cat "$dir/out")"
values=$(sed -n "s/^ *$best  *[0-9.]*  *[0-9]*  //p" "$dir/table")
json=$(echo "$values" | sed 's/^\([^=]*\)=\([^ ]*\) \([^=]*\)=\([^ ]*\) \([^=]*\)=\(.*\)$/{"\1": \2, "\3": \4, "\5": "\6"}/')
expect 0 tnet-tune -q "$dir/c.yaml" --try "$json"
grep -q "^ *$best  *$(printf '%.6f' "$(cat "$dir/out")") " "$dir/table" || fail "tried $json: $(cat "$dir/out")"
grep -q '"trial":9,"rung":2' "$dir/run/tune/journal.jsonl" || fail "the tried trial is not in the journal"
expect 0 tnet-tune -q "$dir/c.yaml" # a tried one is in the table, too
[ "$(grep -c '^ *[0-9]' "$dir/out")" -eq 10 ] || fail "$(cat "$dir/out")"

# All in full; every combination; what has no room is left out and said.
expect 0 tnet-tune "$dir/c.yaml" run.dir="$dir/grid" tune.method=grid 'tune.space={embedding.memory: [auto, 100kB], train.batch: [64, 128]}'
[ "$(grep -c '"rung":0' "$dir/grid/tune/journal.jsonl")" -eq 4 ] || fail "not four combinations"
[ "$(grep -c '^ *[0-9]* *n/a .*memory=100kB' "$dir/out")" -eq 2 ] || fail "$(cat "$dir/out")"
grep -q '^warning: trial 2 is left out: tnet-train ended with code 7: ' "$dir/err" || fail "$(cat "$dir/err")"
expect 4 tnet-tune "$dir/c.yaml" run.dir="$dir/none" tune.method=grid 'tune.space={embedding.memory: [100kB]}'
grep -qx "tnet-tune: error: no trial came to its end; each has said why" "$dir/err" || fail "$(cat "$dir/err")"
expect 0 tnet-tune -q "$dir/c.yaml" run.dir="$dir/random" tune.method=random tune.trials=2 tune.goal=valid.logloss
[ "$(grep -c '"ended":true' "$dir/random/tune/journal.jsonl")" -eq 2 ] || fail "random trials are not whole"
sed -n 2,3p "$dir/out" | sort -c -k2,2n || fail "a smaller logloss comes first: $(cat "$dir/out")"

# ---- what cannot be ----
expect 5 tnet-tune "$dir/c.yaml" run.seed=7
says "journal.jsonl' is of another configuration, or of other values to try"
expect 0 tnet-tune -q "$dir/c.yaml" run.seed=7 --fresh tune.trials=1
cmp -s "$dir/run/tune-earlier-1/journal.jsonl" "$dir/journal" && fail "the earlier journal lost what was added"
grep -q '"trial":9' "$dir/run/tune-earlier-1/journal.jsonl" || fail "--fresh did not keep what was there"
expect 4 tnet-tune "$dir/c.yaml" run.dir="$dir/nothing" --best
says "no trial has a result yet"
[ ! -e "$dir/nothing" ] || fail "--best made a folder"
expect 3 tnet-tune "$dir/c.yaml" run.dir="$dir/nothing" data.valid=~
says "nothing to judge trials by: data.valid is not set"
expect 3 tnet-tune "$dir/c.yaml" run.dir="$dir/nothing" tune.goal=valid.ctr
grep -q "'valid.ctr' cannot be watched" "$dir/err" || fail "$(cat "$dir/err")"
expect 3 tnet-tune "$dir/c.yaml" run.dir="$dir/nothing" tune.method=grid
says "not all of tune.space are lists"
expect 3 tnet-tune "$dir/c.yaml" run.dir="$dir/nothing" 'tune.space={train.no_such: [1, 2]}'
grep -q "trial 1 cannot be:" "$dir/err" || fail "$(cat "$dir/err")"
grep -q "unknown key 'no_such'" "$dir/err" || fail "$(cat "$dir/err")"
expect 2 tnet-tune "$dir/c.yaml" --best --space
says "only one of"
expect 2 tnet-tune - <"$dir/c.yaml"
says "every trial reads the configuration: it must be a file"
expect 2 tnet-tune -q "$dir/c.yaml" run.dir="$dir/random" tune.method=random tune.trials=2 tune.goal=valid.logloss --try '[1]'
says "--try needs a JSON object"
mv "$dir/train.tsv" "$dir/gone.tsv"
expect 4 tnet-tune "$dir/c.yaml" run.dir="$dir/missing"
