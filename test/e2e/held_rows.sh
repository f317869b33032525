#!/bin/sh
# held_rows.sh - rows of data.train that data.valid holds back are not learned, are those that are judged, and are the same
# whatever reads them: gzip, several processes, another seed, a later command.
. "$(dirname "$0")/kit"
cd "$dir"
clicks all.tsv 3000 0
clicks test.tsv 500 3000
gzip -k all.tsv
cat >c.yaml <<'END'
run: {name: held}
data: {format: criteo, train: all.tsv, test: test.tsv, shuffle: 0}
model: {type: deepfm, hidden: [8], bias_init: -1} # no first window: it is one of other rows
embedding: {dim: 4}
train: {epochs: 2, batch: 50, threads: 1}
log: {progress: false, tensorboard: false}
END

# split RUN: the rows of all.tsv that RUN is judged by, in held.tsv, and the others in rest.tsv, by the places in its predictions.
split() {
    rm -f scores
    expect 0 tnet-eval -q "$1" data.test=~ --predictions scores
    sed 1d scores | cut -f 1 | cut -d : -f 2 >places
    awk 'NR == FNR { held[$1] = 1; next } { print > (at in held ? "held.tsv" : "rest.tsv"); at += length($0) + 1 }' \
        at=0 places all.tsv
}
# same_model RUN RUN: of the same scores of test.tsv.
same_model() {
    for run in "$1" "$2"; do
        expect 0 tnet-eval -q "$run" data.valid=~ eval.calibrate=none --predictions "scores-$run"
    done
    cmp "scores-$1" "scores-$2" || fail "$1 and $2 are other models"
}

for part in 'share: 20%' 'last: 0.2'; do
    rm -rf run-*
    expect 0 tnet-train -q c.yaml "data.valid={$part}" run.dir=run-a
    split run-a
    [ "$(cat held.tsv rest.tsv | wc -l)" -eq 3000 ] || fail "{$part}: rows are lost"
    n=$(wc -l <held.tsv)
    { [ "$n" -ge 540 ] && [ "$n" -le 660 ]; } || fail "{$part} of 3000 rows are $n"
    expect 0 tnet-train -q c.yaml data.train=rest.tsv data.valid=held.tsv run.dir=run-b
    same_model run-a run-b
    for run in run-a run-b; do
        sed -n 's/.*"data":"valid".*"logloss":\([^,]*\),.*/\1/p' $run/metrics.jsonl >"figures-$run"
        [ "$(wc -l <"figures-$run")" -eq 2 ] || fail "{$part}: not two evaluations: $(cat $run/metrics.jsonl)"
    done
    cmp figures-run-a figures-run-b || fail "{$part}: other figures than of the rows in a file"
    cp scores held-scores

    expect 0 tnet-train -q c.yaml "data.valid={$part}" run.dir=run-c train.epochs=1
    expect 0 tnet-train -q c.yaml "data.valid={$part}" run.dir=run-c
    same_model run-a run-c
    expect 0 tnet-train -q c.yaml "data.valid={$part}" run.dir=run-d --peers 2 data.part_bytes=64KiB
    [ "$(grep -c "\"data\":\"valid\",\"rows\":\"*$n\"*," run-d/metrics.jsonl)" -eq 2 ] ||
        fail "{$part}: two processes judge other rows: $(grep '"data":"valid"' run-d/metrics.jsonl)"
    split run-d
    cut -f 1,2 scores >d-rows
    cut -f 1,2 held-scores >a-rows
    cmp a-rows d-rows || fail "{$part}: two processes hold back other rows"
    expect 0 tnet-train -q c.yaml "data.valid={$part}" run.dir=run-e run.seed=7
    split run-e
    cut -f 1,2 scores | cmp - a-rows || fail "{$part}: another seed holds back other rows"

    expect 0 tnet-eval -q run-a data.test=~ --calibrate platt --calibration-out map.json
    expect 2 tnet-eval -q run-a --calibrate platt --data all.tsv
    says "needs rows that the model was not trained on"
    expect 0 tnet-eval -q run-a --data all.tsv
    grep -q '^rows  *3000$' out || fail "{$part}: not all rows of a file that is named: $(cat out)"
    expect 0 tnet-train c.yaml "data.valid={$part}" run.dir=run-a --dry-run
    ! grep -q 'trained on' err out || fail "{$part}: $(cat err out)"
    echo "$name: {$part}"
done

expect 0 tnet-train -q c.yaml 'data.valid={share: 20%}' run.dir=plain
expect 0 tnet-train -q c.yaml 'data.valid=share 20%' data.train=all.tsv.gz run.dir=gzipped
same_model plain gzipped
expect 4 tnet-train -q c.yaml 'data.valid={last: 20%}' data.train=all.tsv.gz run.dir=x
says "data.valid: {last: ..} counts bytes, and 'all.tsv.gz' is compressed"
# refused WORDS OPTION..
refused() {
    words=$1
    shift
    expect 3 tnet-train -q c.yaml run.dir=x "$@"
    grep -qF "$words" err || fail "no '$words' in: $(cat err)"
}
refused "'share 100%' is not a part of the rows" 'data.valid={share: 100%}'
refused "data.valid holds back rows of data.train, which is read once" 'data.valid={share: 10%}' data.train=-
refused "which is one of days" 'data.valid={last: 10%}' 'data.train="{day:%Y%m%d}.tsv"' data.days=2026-11-01
refused "data.valid holds back rows of data.train, which is not set" 'data.valid={last: 10%}' data.train=~
echo "$name: gzip, and what is refused"
