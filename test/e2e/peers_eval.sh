#!/bin/sh
# peers_eval.sh - a group judges what one process has learned, and the other way round; what people see of a group.
. "$(dirname "$0")/kit"
export TNET_FAST=5

for i in 0 1 2; do
    clicks "$dir/$i.tsv" 1200 $((i * 1200))
done
clicks "$dir/valid.tsv" 3000 3600
cat >"$dir/c.yaml" <<END
data: {format: criteo, train: ["$dir/0.tsv", "$dir/1.tsv", "$dir/2.tsv"], valid: $dir/valid.tsv, part_bytes: 64kB}
embedding: {dim: 4}
model: {type: deepfm, hidden: [16]}
train: {batch: 60, threads: 1}
log: {progress: false}
END
config=$dir/c.yaml

# found: the findings of the last command but for when and how fast.
found() { sed -E 's/"(t|seconds)":[^,}]*//g' "$dir/out"; }

expect 0 tnet-train "$config" --peers 2 run.dir="$dir/two"
expect 0 tnet-train "$config" run.dir="$dir/one"
for run in one two; do
    expect 0 tnet-eval "$config" run.dir="$dir/$run" --json
    found >"$dir/want"
    grep -q '"rows":3000' "$dir/want" || fail "no findings: $(cat "$dir/want")"
    for n in 1 2 3 4; do
        expect 0 tnet-eval "$config" run.dir="$dir/$run" --json --peers $n
        found >"$dir/have"
        cmp "$dir/want" "$dir/have" || fail "$n peers find $(cat "$dir/have"), not $(cat "$dir/want")"
    done
done
echo "$name: 1, 2, 3 and 4 peers find the same"

# Data and checkpoint by name, fewer records than peers, and a page by rank 0 alone.
head -n 3 "$dir/0.tsv" >"$dir/few.tsv"
expect 0 tnet-eval "$config" run.dir="$dir/none" --checkpoint "$dir/one" --data "$dir/few.tsv" --json --peers 4 --report "$dir/p.html"
grep -q '"rows":3,' "$dir/out" || fail "not 3 rows: $(cat "$dir/out")"
[ -s "$dir/p.html" ] || fail "no page"
: >"$dir/empty.tsv"
expect 4 tnet-eval "$config" run.dir="$dir/one" --data "$dir/empty.tsv" --peers 2
grep -q "'$dir/empty.tsv' holds no records" "$dir/err" || fail "not said: $(cat "$dir/err")"
expect 5 tnet-eval "$config" run.dir="$dir/none" --peers 2
grep -q "no checkpoint" "$dir/err" || fail "not said: $(cat "$dir/err")"

# What one process does only.
for word in --predictions=x --fetch=logit --export=x --data=-; do
    expect 3 tnet-eval "$config" run.dir="$dir/one" --peers 2 "$word"
    says "several processes"
done
for word in eval.auc=exact "eval.slices=[C1]" eval.predictions=x; do
    expect 3 tnet-eval "$config" run.dir="$dir/one" --peers 2 "$word"
    grep -q "with several processes" "$dir/err" || fail "not said: $(cat "$dir/err")"
done
echo "$name: refusals"

# A line per peer now and then, and what the group has cost.
expect 0 tnet-train "$config" --peers 2 --peers-table run.dir="$dir/seen" train.epochs=1000000 train.max_time=4s log.every=1s
grep -q '^rank  host .* waiting ' "$dir/err" || fail "no table: $(cat "$dir/err")"
grep -q ' all .* 2 of 2 at work' "$dir/err" || fail "not both: $(cat "$dir/err")"
grep -qE '^2 peers; rank 0 received .* and sent .* per step$' "$dir/err" || fail "no bytes: $(cat "$dir/err")"
grep -q '"peers":2,"pulled_bytes":"[1-9]' "$dir/seen/summary.json" || fail "no bytes: $(cat "$dir/seen/summary.json")"
grep -q '"kind":"train".*"pulled_bytes":[1-9].*"pushed_bytes":[1-9]' "$dir/seen/metrics.jsonl" || fail "no bytes in metrics.jsonl"
grep -q '"wait_ms":{"read":[^,]*,"pull":[0-9.e-]*[1-9][^,]*,"push":[0-9.e-]*[1-9]' "$dir/seen/metrics.jsonl" ||
    fail "nobody waits: $(cat "$dir/seen/metrics.jsonl")"
echo "$name: a table of peers, and bytes"
