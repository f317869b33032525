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

# What needs the rows themselves: exact AUC, its intervals, groups, slices, every score.
rows="data.group=C5 eval.auc=exact eval.slices=[C1,C3] eval.slices_min_rows=2 eval.metrics=[auc,gauc,gauc_skipped,ndcg,recall] eval.top_k=3"
for n in 1 2 3 4; do
    # shellcheck disable=SC2086 # several words
    expect 0 tnet-eval "$config" run.dir="$dir/two" --json --peers $n --predictions "$dir/p$n.tsv" $rows
    found >"$dir/have"
    [ $n -eq 1 ] && cp "$dir/have" "$dir/want"
    cmp "$dir/want" "$dir/have" || fail "$n peers find $(cat "$dir/have"), not $(cat "$dir/want")"
    cmp "$dir/p1.tsv" "$dir/p$n.tsv" || fail "$n peers predict something else"
done
grep -q '"gauc":0.[0-9].*"C1":\[{.*"auc_bootstrap":{"value":0' "$dir/want" || fail "no such findings: $(cat "$dir/want")"
grep -q '"ndcg":0.[0-9]*,"recall":0.[0-9]' "$dir/want" || fail "no such findings: $(cat "$dir/want")"
[ "$(wc -l <"$dir/p1.tsv")" -eq 3001 ] || fail "not a line per row"

# Values of nodes.
(cd "$dir" && tnet-eval "$config" run.dir="$dir/two" --fetch logit --json >out 2>err && mv fetch.npz one.npz)
(cd "$dir" && tnet-eval "$config" run.dir="$dir/two" --fetch logit --json --peers 3 >out 2>err)
cmp "$dir/one.npz" "$dir/fetch.npz" || fail "3 peers fetch something else"

# More values than slices have places: who is among "other" does not depend on the peers.
awk 'BEGIN { print "label\tuser"; for (i = 0; i < 9000; i++) print (i % 3 == 0) "\t" (i * 7919) % 6000 }' >"$dir/users.tsv"
cat >"$dir/users.yaml" <<END
data: {format: tsv, header: true, label: label, train: $dir/users.tsv, test: $dir/users.tsv, part_bytes: 4kB}
slots: [{name: user}]
embedding: {dim: 2}
model: {type: lr}
eval: {slices: [user], slices_min_rows: 2}
train: {batch: 500, threads: 1}
log: {progress: false}
END
expect 0 tnet-train "$dir/users.yaml" run.dir="$dir/users" eval.predictions="$dir/last1.tsv"
expect 0 tnet-eval "$dir/users.yaml" run.dir="$dir/users" --json
found >"$dir/want"
grep -q '"sign":null,"rows":[1-9]' "$dir/want" || fail "nothing is among others: $(tail -c 300 "$dir/want")"
expect 0 tnet-eval "$dir/users.yaml" run.dir="$dir/users" --json --peers 4
found >"$dir/have"
cmp "$dir/want" "$dir/have" || fail "4 peers find $(cat "$dir/have"), not $(cat "$dir/want")"

# A run writes the same predictions at its end as an evaluation of what it saved.
expect 0 tnet-train "$dir/users.yaml" --peers 3 run.dir="$dir/users3" eval.predictions="$dir/last3.tsv"
expect 0 tnet-eval "$dir/users.yaml" run.dir="$dir/users3" --predictions "$dir/have.tsv"
cmp "$dir/last3.tsv" "$dir/have.tsv" || fail "a run of 3 predicts something else than what it saved"
echo "$name: rows of all peers in the order of the data"

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
for word in --export=x --data=-; do
    expect 3 tnet-eval "$config" run.dir="$dir/one" --peers 2 "$word"
    says "several processes"
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
