#!/bin/sh
# peers_tally.sh - the tally: every record has a key of its own, and pushes the same step to its weight. Of all checkpoints
# of a group whose net loses and repeats messages, every key was counted once and moved once, and the bias as often as there
# were steps: a record that was lost, learned twice or in half would show.
. "$(dirname "$0")/kit"

# Test builds divide their timers by this.
export TNET_FAST=5

# One rate for all, so small that no prediction moves from one half: a gradient is one half.
cat >"$dir/c.yaml" <<END
data: {format: libsvm, shuffle: 50, part_bytes: 1KiB}
embedding: {dim: 1}
model: {type: lr, bias_init: 0}
train:
  epochs: 1
  batch: 4
  threads: 1
  optimizer: {type: sgd, lr: 1e-6}
  sparse: {type: sgd, lr: 1e-6, grad_scale: sum}
checkpoint: {every: 10steps, keep: 99}
export: {dict: [tsv], state: true}
log: {progress: false}
END

# records FIRST LAST: that many lines.
records() {
    awk -v i="$1" -v last="$2" 'BEGIN { for (; i <= last; i++) print "1 " 7 * i ":1" }'
}

# field NAME FILE: its first number there.
field() {
    sed -n "s/.*\"$1\":\"\{0,1\}\([0-9]*\).*/\1/p" "$2" | head -n 1
}

# tally CHECKPOINT RECORDS: holds so many, each once.
tally() {
    model=$(tnet-export -q "$dir/c.yaml" data.train="$dir/a.svm" --checkpoint "$1" --to "$1.export")
    size=$(stat -c %s "$model/dense.safetensors")
    bias=$(od -An -tf4 -j $((size - 4)) "$model/dense.safetensors")
    awk -F '\t' -v want="$2" -v bias="$bias" -v steps="$(field step "$1/MANIFEST")" '
        function is(value, count) { return value > (count - .01) * 5e-7 && value < (count + .01) * 5e-7 }
        /^#/ { next }
        $3 == 0 && is($6, 0) { next } # asked for ahead, of a record that is not learned yet
        $3 != 1 { print "key " $2 " was seen " $3 " times"; bad = 1 }
        !is($6, 1) { print "key " $2 " moved " $6 / 5e-7 " times"; bad = 1 }
        { n++ }
        END {
            if (n != want) print n " keys of " want
            if (!is(bias / steps, 1)) print "the bias moved " bias / 5e-7 " times in " steps " steps"
            exit bad || n != want || !is(bias / steps, 1)
        }' "$model/dict.tsv" >"$dir/tally" || fail "$what: $(basename "$1"): $(head -n 5 "$dir/tally")"
}

# tallies RUN RECORDS: all its checkpoints, of which the last one holds all.
tallies() {
    for ckpt in "$1"/ckpt-*; do
        tally "$ckpt" "$(field samples "$ckpt/MANIFEST")"
        rm -r "$ckpt.export"
    done
    [ "$(field samples "$1/summary.json")" -eq "$2" ] || fail "$what: $(field samples "$1/summary.json") samples of $2"
    tally "$1/$(cut -d' ' -f1 "$1/LATEST")" "$2"
}

# train PEERS STALENESS RECORDS FAULTS: all is learned, and counted.
train() {
    what="$1 peers, staleness $2, $3 records, $4"
    rm -rf "$dir/run"
    expect 0 env TNET_FAIL="$4" tnet-train "$dir/c.yaml" --peers "$1" run.dir="$dir/run" \
        cluster.staleness="$2" data.train="$dir/a.svm"
    cp "$dir/err" "$dir/train.err"
    tallies "$dir/run" "$3"
}

# A net that loses requests, loses acknowledgements, and brings both twice.
rough=link.request%29:error,link.answer%31:error,link.request%7:short,link.answer%5:short
records 1 160 >"$dir/a.svm"
for peers in 1 2 3 4; do
    for staleness in 0 inf; do
        train "$peers" "$staleness" 160 "$rough"
    done
done
train 3 1 160 "$rough"

# Two parts for three: one rank has nothing to read, and takes part in everything.
records 1 150 >"$dir/a.svm"
for staleness in 0 1; do
    train 3 "$staleness" 150 "$rough"
done

# A straggler is asked for the rest of what it holds, and others learn it.
records 1 5000 >"$dir/a.svm"
sed -i 's/part_bytes: 1KiB/part_bytes: 6KiB/; s/every: 10steps/every: 400steps/' "$dir/c.yaml"
train 3 1 5000 link.request%7:short,link.answer%5:short,link.answer%97:error,step.1:sleep=300
grep -q 'rank 1 is asked to give back part' "$dir/train.err" || fail "$what: $(cat "$dir/train.err")"
