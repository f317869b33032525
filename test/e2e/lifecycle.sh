#!/bin/sh
# lifecycle.sh - tnet-data lifecycle says what a run would keep: the same rows as a sweep of training leaves, the
# same AUC as tnet-eval, and nothing of the checkpoint changes.
. "$(dirname "$0")/kit"
cd "$dir"
expect 0 tnet-data gen --to 'log-{day:%Y%m%d}.ffm' rows=6000 days=6 drift=.4 slots=3 ids=300 zipf=.8 --config-to gen.yaml \
    --first-day 2026-11-01
sed 's/^data:/data:\n  valid: log-20261106.ffm/' gen.yaml >log.yaml
cat >>log.yaml <<'END2'
train: {batch: 100, threads: 1}
eval: {calibrate: none}
embedding: {decay: 1}
log: {progress: false}
END2
learn() { expect 0 tnet-train log.yaml data.days=2026-11-01..2026-11-05 "$@"; }
learn run.name=all
learn run.name=ttl embedding.expiry.ttl_days=1
learn run.name=longer embedding.expiry.ttl_days=3

# rows of all slots after the last sweep of a run
rows_of() { grep '"sweep"' "runs/$1/metrics.jsonl" | tail -n 1 | grep -o '"rows":[0-9]*' | head -n 1 | cut -d: -f2; }

# cell TABLE LINE COLUMN: rows in the output of the tool; a column has rows, MB, share
cell() { field "$1" "$2" "$([ "$2" = auc ] && echo $((1 + $3)) || echo $((3 * $3 - 1)))"; }
share() { field "$1" "$2" $((3 * $3 + 1)); }
field() {
    awk -v table="$1" -v line="$2" -v n="$3" '
        NF == 0 {inside = 0}
        $1 == table {inside = 1}
        inside && $1 == line {print $n; exit}' out
}

# a checkpoint after an epoch holds what the sweep has left: the same as that of a run which ends there
for epochs in 1 2; do
    expect 0 tnet-train log.yaml run.name=plain$epochs data.train=log-20261101.ffm data.days=~ train.epochs=$epochs checkpoint.keep=9 \
        embedding.expiry.show_below=3 checkpoint.every=1epoch
done
same_model runs/plain1 runs/plain2

# the last checkpoint holds what the sweep has left, also where the last step was saved before it
for every in 10steps 1epoch; do
    expect 0 tnet-train log.yaml run.name=saved-$every data.days=~ data.train=log-20261101.ffm data.valid=~ train.epochs=1 checkpoint.every=$every \
        embedding.expiry.show_below=3
    rows=$(grep -o '"rows":"[0-9]*"' "runs/saved-$every/$(cut -d' ' -f1 "runs/saved-$every/LATEST")/MANIFEST" | head -n 1 | tr -dc 0-9)
    [ "$rows" = "$(rows_of "saved-$every")" ] || fail "saved every $every: $rows rows, the sweep leaves $(rows_of "saved-$every")"
done

find runs/all -type f | sort | xargs cksum >before
expect 0 tnet-data lifecycle log.yaml run.name=all
find runs/all -type f | sort | xargs cksum >after
cmp before after || fail "the run has changed"

[ -n "$(rows_of ttl)" ] || fail "no sweep: $(tail -n 3 runs/ttl/metrics.jsonl)"
[ "$(cell ttl_days all 4)" = "$(rows_of ttl)" ] || fail "ttl 1: $(cell ttl_days all 4), a run keeps $(rows_of ttl)"
[ "$(cell ttl_days all 3)" = "$(rows_of longer)" ] || fail "ttl 3: $(cell ttl_days all 3), a run keeps $(rows_of longer)"
[ "$(cell model all 1)" -gt "$(cell ttl_days all 4)" ] || fail "nothing leaves: $(cat out)"
[ "$(cell ttl_days all 1)" = "$(cell model all 1)" ] || fail "ttl 30 lets rows go"
sum=$(($(cell score_below s0 3) + $(cell score_below s1 3) + $(cell score_below s2 3)))
[ "$sum" -eq "$(cell score_below all 3)" ] || fail "slots do not add up"
# a share of the memory is that of as many rows, less those that score the same
[ $((4 * $(cell memory all 1))) -le $((3 * $(cell model all 1))) ] || fail "a cap keeps too much: $(cat out)"
[ $((10 * $(cell memory all 1))) -gt $((6 * $(cell model all 1))) ] || fail "a cap keeps too little: $(cat out)"
[ $((4 * $(cell memory all 3))) -le "$(cell model all 1)" ] || fail "a cap keeps too much: $(cat out)"
[ $((5 * $(cell memory all 3))) -gt "$(cell model all 1)" ] || fail "a cap keeps too little: $(cat out)"

# what the files themselves say of keys that came three times, or lately
awk 'FNR == 1 {day++}
    {for (i = 2; i <= NF; i++) {n[$i]++; last[$i] = day; all++}}
    END {
        for (key in n) {
            if (n[key] >= 3) {rows++; shows += n[key]}
            if (last[key] >= 4) {late++; late_shows += n[key]}
        }
        printf "%d %.1f %d %.1f\n", rows, 100 * shows / all, late, 100 * late_shows / all
    }' log-2026110[1-5].ffm >want
echo "$(cell threshold all 2) $(share threshold all 2) $(cell ttl_days all 4) $(share ttl_days all 4)" >got
cmp want got || fail "$(cat got), and the files say $(cat want)"
grep -q configured out && fail "nothing is configured: $(cat out)"
auc=$(cell model auc 1)
part=$(cell memory auc 4)

# an evaluation says the same of the whole model, and of one whose rows have left
cp out lifecycle
expect 0 tnet-eval log.yaml run.name=all --data log-20261106.ffm --json
grep -q "\"auc\":${auc%?}" out || fail "auc $auc, tnet-eval says $(grep -o '"auc":[0-9.]*' out)"
[ "$part" != "$auc" ] || fail "without the rest the auc is the same"

# what is configured, and other checkpoints
expect 0 tnet-data lifecycle log.yaml --checkpoint runs/all embedding.expiry.ttl_days=3 embedding.memory=300kB
[ "$(cell configured all 1)" = "$(cell ttl_days all 3)" ] || fail "configured: $(cat out)"
[ "$(cell configured all 2)" -lt "$(cell configured all 1)" ] || fail "a cap: $(cat out)"
was=$(cell threshold all 2)
expect 0 tnet-data lifecycle log.yaml run.name=all embedding.expiry.show_below=3
[ "$(cell configured all 1)" = "$was" ] || fail "3 shows: $(cat out)"
expect 0 tnet-data lifecycle log.yaml run.name=all embedding.expiry.show_below=3 embedding.decay=.5
[ "$(cell configured all 1)" -lt "$was" ] || fail "3 shows that decay: $(cat out)"
[ "$(cell threshold all 2)" = "$was" ] || fail "an admission whose counts decay: $(cat out)"
grep -q 'counts decay' out || fail "nothing about decay: $(head -n 3 out)"
expect 0 tnet-data lifecycle log.yaml run.name=all data.valid=~
grep -q 'nothing to evaluate' out || fail "$(head -n 3 out)"
grep -q '^auc' out && fail "an auc of nothing"

expect 5 tnet-data lifecycle log.yaml run.name=none
expect 2 tnet-data lifecycle
expect 3 tnet-data lifecycle log.yaml modle=lr
expect 4 tnet-data lifecycle log.yaml run.name=all --data absent.ffm

# of a cap a quarter is for rows that wait, which are not among those that it keeps by their scores
expect 0 tnet-train log.yaml run.name=waits embedding.admission.threshold=4
expect 0 tnet-data lifecycle log.yaml run.name=waits embedding.admission.threshold=4
kept_of_1000=$(grep '"sweep"' runs/waits/metrics.jsonl | tail -n 1 | sed 's/"slots".*//; s/.*"rows":\([0-9]*\),"waiting":\([0-9]*\),"bytes":\([0-9]*\),.*/\1 \2 \3/' |
    awk -v kept="$(cell memory all 3)" '{print int(1000 * kept * ($3 - 24 * $2) / ($1 - $2) / $3)}')
case $kept_of_1000 in
1[4-9]?) ;;
*) fail "three quarters of a cap of a quarter keep $kept_of_1000 of 1000: $(cat out)" ;;
esac

# ---- killed again and again while rows expire and a full table lets others go: the model of a run that was not ----
expect 0 tnet-data gen --to 'new-{day:%Y%m%d}.ffm' rows=40000 days=4 drift=.4 slots=4 ids=30000 zipf=0 --config-to new.yaml
cat >>new.yaml <<'END2'
embedding: {memory: 2MB, on_full: evict, expiry: {ttl_days: 1}}
train: {batch: 100, threads: 2}
checkpoint: {every: 30steps}
log: {progress: false}
END2
sweeps_of() { # day, rows that are left, expired; those evicted are counted from the last start on
    sed -n 's/.*"kind":"sweep".*"day":\([0-9]*\),"rows":\([0-9]*\),"waiting":.*"expired":\([0-9]*\),"evicted":[0-9]*,"seconds":.*/\1 \2 \3/p' "runs/$1/metrics.jsonl" | sort -u
}
expect 0 tnet-train new.yaml run.name=whole
sweeps_of whole >want
[ "$(awk '$3 > 0' want | wc -l)" -ge 2 ] || fail "rows do not expire: $(cat want)"
grep -q '"evicted":[1-9]' runs/whole/metrics.jsonl || fail "the table is never full"
# a run a day lets the same rows go
for d in 1 2 3 4; do expect 0 tnet-train new.yaml run.name=daily day=2026-11-0$d; done
sweeps_of daily >got
cmp want got || fail "in a run a day other rows leave: $(diff want got)"
newest() { echo "runs/$1/$(cut -d' ' -f1 "runs/$1/LATEST")"; }
for file in "$(newest whole)"/sparse-* "$(newest whole)"/dense-*; do
    tail -c +65 "$file" >one
    tail -c +65 "$(newest daily)/$(basename "$file")" >two
    cmp one two || fail "in a run a day $(basename "$file") differs"
done
draw
signals=KILL
killed 4 450 tnet-train new.yaml run.name=cut
sweeps_of cut >got
cmp want got || fail "seed $seed: other rows leave: $(diff want got)"
for file in "runs/whole/$(cut -d' ' -f1 runs/whole/LATEST)"/*; do
    case $(basename "$file") in
    sparse-* | dense-*)
        cmp "$file" "runs/cut/$(cut -d' ' -f1 runs/cut/LATEST)/$(basename "$file")" || fail "seed $seed: $(basename "$file") differs"
        ;;
    esac
done
