#!/bin/sh
# train_resume.sh - K1, K4: a run that is killed at random moments and resumed, again and again, ends with
# the bits of one that was never interrupted: losses of every evaluation, weights, table, results. So does
# one whose terminal is closed.
# The seed of the moments is printed; TNET_SEED replays one.
. "$(dirname "$0")/kit"
draw

clicks "$dir/a.tsv" 4000 0
clicks "$dir/b.tsv" 3000 4000
clicks "$dir/valid.tsv" 1000 7000
gzip -k "$dir/b.tsv"
# Where negatives are sampled, how long an epoch is, and so the schedule, is known behind the first only.
cat >"$dir/c.yaml" <<END
data: {format: criteo, train: [$dir/a.tsv, $dir/b.tsv.gz], valid: $dir/valid.tsv, test: $dir/valid.tsv, shuffle: 1000, negative_sampling: 0.97}
embedding: {dim: 4}
model: {type: deepfm, hidden: [16], dropout: 0.2, batch_norm: true}
train: {batch: 100, epochs: 8, threads: 2, optimizer: {type: adam, schedule: {type: cosine, warmup: 50}}}
eval: {every: 20steps, metrics: [auc, logloss, copc]}
checkpoint: {every: 10steps, keep: 2}
log: {progress: false}
END

# losses RUN: of every evaluation by step, those of steps that were done twice once.
losses() {
    sed -n 's/.*"kind":"eval","step":\([0-9]*\),.*"data":"\([a-z]*\)".*"loss_hex":"\([^"]*\)","auc":\([^,]*\),.*/\2 \1 \3 \4/p' \
        "$1/metrics.jsonl" | sort -k1,1 -k2,2n -u
}

# results RUN: of summary.json, without times.
results() {
    sed -n 's/.*\("steps":[0-9]*\),.*\("valid":{[^}]*},"test":{[^}]*},"best":[^}]*\).*/\1 \2/p' "$1/summary.json" | sed 's/,"sparse_bytes_max".*//' # what the machine has free
}

newest() { echo "$1/$(cut -d' ' -f1 "$1/LATEST")"; }
plain() {
    sed -E 's/"ordinal":[0-9]+/"ordinal":0/; s/"requests":\[[^]]*\]//; s/"logs":\{[^}]*\}//; s/"crc32c":"[0-9a-f]{8}"\}$//' "$1/MANIFEST"
}

# same_as_whole RUN: losses, results, tables, and the newest checkpoints, but for ordinals and the log's length.
same_as_whole() {
    losses "$dir/whole" >"$dir/want"
    losses "$dir/$1" >"$dir/have"
    [ "$(wc -l <"$dir/want")" -ge 22 ] || fail "evaluations are missing: $(cat "$dir/want")"
    cmp "$dir/want" "$dir/have" || fail "$1: other losses: $(diff "$dir/want" "$dir/have" | head -n 4)"
    results "$dir/whole" >"$dir/want"
    results "$dir/$1" >"$dir/have"
    [ -s "$dir/want" ] || fail "no results in summary.json"
    cmp "$dir/want" "$dir/have" || fail "$1: other results: $(cat "$dir/want" "$dir/have")"
    cmp "$dir/whole.out" "$dir/out" || fail "$1: other tables"

    whole=$(newest "$dir/whole")
    cut=$(newest "$dir/$1")
    for file in "$whole"/*; do
        file=$(basename "$file")
        [ "$file" != MANIFEST ] || continue
        cmp "$whole/$file" "$cut/$file" || fail "$1: $file differs"
    done
    plain "$whole" >"$dir/want"
    plain "$cut" >"$dir/have"
    cmp "$dir/want" "$dir/have" || fail "$1: manifests differ"
}

expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/whole"
cp "$dir/out" "$dir/whole.out"

# The moments: shares of the time that a run takes are not known here, so waits grow from short to
# long by the seed; a run that ends before its kill is done.
signals="KILL HUP KILL TERM"
killed "${TNET_KILLS:-8}" 630 tnet-train "$dir/c.yaml" run.dir="$dir/cut"
[ "$stops" -gt 0 ] || fail "seed $seed: nothing was interrupted"

same_as_whole cut

# Left-overs of the killed are gone.
for left in "$dir"/cut/*.tmp; do
    [ ! -e "$left" ] || fail "left behind: $left"
done

# A terminal that is closed: its shell passes SIGHUP to the run, and nobody takes what it writes.
if [ -z "$(command -v script || true)" ]; then
    echo "$name: skipped: a closed terminal: no script(1)"
    exit 0
fi
cat >"$dir/shell" <<'END'
dir=$1
trap 'kill -HUP $pid' HUP
tnet-train "$dir/c.yaml" run.dir="$dir/closed" log.progress=true &
pid=$!
wait "$pid"
wait "$pid"
echo $? >"$dir/code.tmp"
mv "$dir/code.tmp" "$dir/code"
END
script -qc "sh '$dir/shell' '$dir'" "$dir/seen" >"$dir/null" 2>&1 </dev/null &
pid=$!
children="$children $pid"
wait_for "$dir/closed/metrics.jsonl" "$pid" # the first checkpoints are pruned soon
kill -KILL "$pid"
{ wait "$pid" || true; } 2>"$dir/null"
wait_for "$dir/code" $$
[ "$(cat "$dir/code")" -eq 75 ] || fail "a closed terminal: exit code $(cat "$dir/code")"
expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/closed"
grep -q '"resumed_from":' "$dir/closed/metrics.jsonl" || fail "after a closed terminal it did not go on"
same_as_whole closed
