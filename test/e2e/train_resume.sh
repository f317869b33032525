#!/bin/sh
# train_resume.sh - K1, K4: a run that is killed at random moments and resumed, again and again, ends with
# the bits of one that was never interrupted: losses of every evaluation, weights, table, results.
# The seed of the moments is printed; TNET_SEED replays one.
. "$(dirname "$0")/kit"
seed=${TNET_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "train_resume: seed $seed"
kills=${TNET_KILLS:-8}

clicks "$dir/a.tsv" 4000 0
clicks "$dir/b.tsv" 3000 4000
clicks "$dir/valid.tsv" 1000 7000
gzip -k "$dir/b.tsv"
cat >"$dir/c.yaml" <<END
data: {format: criteo, train: [$dir/a.tsv, $dir/b.tsv.gz], valid: $dir/valid.tsv, test: $dir/valid.tsv, shuffle: 1000}
embedding: {dim: 4}
model: {type: deepfm, hidden: [16], dropout: 0.2, batch_norm: true}
train: {batch: 100, epochs: 8, threads: 2, optimizer: {type: adam, schedule: {type: cosine, warmup: 50, steps: 560}}}
eval: {every: 25steps, metrics: [auc, logloss, copc]}
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
    sed -n 's/.*\("steps":[0-9]*\),.*\("valid":{[^}]*},"test":{[^}]*},"best":[^}]*\).*/\1 \2/p' "$1/summary.json"
}

expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/whole"
cp "$dir/out" "$dir/whole.out"

# The moments: shares of the time that a run takes are not known here, so waits grow from short to
# long by the seed; a run that ends before its kill is done.
i=0
done=0
stops=0
while [ "$done" -eq 0 ]; do
    i=$((i + 1))
    [ "$i" -le 100 ] || fail "seed $seed: no end after 100 kills"
    tnet-train "$dir/c.yaml" run.dir="$dir/cut" >"$dir/out" 2>"$dir/err" &
    pid=$!
    children="$children $pid"
    if [ "$i" -le "$kills" ]; then
        sleep "$(awk -v seed="$seed" -v i="$i" 'BEGIN { srand(seed + i); printf "%.3f", 0.03 + 0.6 * rand() }')"
        signal=KILL
        [ $((i % 4)) -ne 0 ] || signal=TERM
        kill -s "$signal" "$pid" 2>"$dir/null" || true
    fi
    got=0
    { wait "$pid" || got=$?; } 2>"$dir/null"
    case $got in
    0) done=1 ;;
    137 | 143 | 75) stops=$((stops + 1)) ;; # 143: before the handlers stood
    *) fail "seed $seed: exit code $got after $stops stops: $(tail -n 3 "$dir/err")" ;;
    esac
done
echo "train_resume: $stops stops"
[ "$stops" -gt 0 ] || fail "seed $seed: nothing was interrupted"

losses "$dir/whole" >"$dir/want"
losses "$dir/cut" >"$dir/have"
[ "$(wc -l <"$dir/want")" -ge 22 ] || fail "evaluations are missing: $(cat "$dir/want")"
cmp "$dir/want" "$dir/have" || fail "seed $seed: other losses: $(diff "$dir/want" "$dir/have" | head -n 4)"
results "$dir/whole" >"$dir/want"
results "$dir/cut" >"$dir/have"
[ -s "$dir/want" ] || fail "no results in summary.json"
cmp "$dir/want" "$dir/have" || fail "seed $seed: other results: $(cat "$dir/want" "$dir/have")"
cmp "$dir/whole.out" "$dir/out" || fail "seed $seed: other tables"

# The newest checkpoints hold the same bytes; only their ordinals and the log's length may differ.
newest() { echo "$1/$(cut -d' ' -f1 "$1/LATEST")"; }
whole=$(newest "$dir/whole")
cut=$(newest "$dir/cut")
for file in "$whole"/*; do
    file=$(basename "$file")
    [ "$file" != MANIFEST ] || continue
    cmp "$whole/$file" "$cut/$file" || fail "seed $seed: $file differs"
done
plain() {
    sed -E 's/"ordinal":[0-9]+/"ordinal":0/; s/"requests":\[[^]]*\]//; s/"logs":\{[^}]*\}//; s/"crc32c":"[0-9a-f]{8}"\}$//' "$1/MANIFEST"
}
plain "$whole" >"$dir/want"
plain "$cut" >"$dir/have"
cmp "$dir/want" "$dir/have" || fail "seed $seed: manifests differ"

# Left-overs of the killed are gone.
for left in "$dir"/cut/*.tmp; do
    [ ! -e "$left" ] || fail "left behind: $left"
done
