#!/bin/sh
# defaults.sh - what a user gets who names data, slots and a model and nothing else: passes and batch by the size of
# the data, numbers as keys where only keys are read, and a model that depends on all that is listed. What was chosen
# stays with the checkpoint.
. "$(dirname "$0")/kit"
cd "$dir"

# rows N SEED: a CSV file; a click depends on x (curved) and on the pair of a and b; n is empty in some rows.
rows() {
    awk -v n="$1" -v seed="$2" 'BEGIN {
        srand(seed)
        print "label,a,b,x,n"
        for (i = 0; i < n; i++) {
            a = int(rand() * 6); b = int(rand() * 6); x = rand() * 20 - 10
            p = (x > -4 && x < 3 ? .6 : .1) + ((a + b) % 2 ? .3 : 0)
            printf "%d,%d,%d,%.3f,%s\n", rand() < p, a, b, x, i % 5 ? int(rand() * 9) : ""
        }
    }'
}
rows 3000 1 >train.csv
rows 1000 2 >valid.csv
rows 300 3 >test.csv
cat >c.yaml <<END
run: {name: c, dir: run}
data: {format: csv, train: train.csv, valid: valid.csv}
slots:
  - {name: a}
  - {name: b}
  - {name: x, type: float, as: value}
  - {name: n, type: int, as: value}
model: fm
embedding: {dim: 4}
log: {progress: false}
END

# value KEY CHECKPOINT: a line of its configuration, without the key.
value() {
    sed -n "s/^ *- {name: $1, //p; s/^ *$1: //p" "$2/config.yaml" | head -n 1
}

# newest RUN: its newest checkpoint.
newest() {
    echo "$1/$(cut -d' ' -f1 "$1/LATEST")"
}

# chosen EPOCHS BATCH CHECKPOINT
chosen() {
    [ "$(value epochs "$3") $(value batch "$3")" = "$1 $2" ] || fail "not $1 passes in steps of $2: $(cat "$3/config.yaml")"
}

# --- the line, the passes, the best of them ---
expect 0 tnet-train c.yaml data.test=test.csv
for line in "chosen for about 3000 rows: train.batch=256, train.epochs=84 of 12 steps," \
    "  fewer when valid.logloss is no better 2 times in a row"; do
    [ "$(grep -cxF "$line" err)" -eq 1 ] || fail "no '$line' in: $(cat err)"
done
grep -qxF "chosen: buckets of 'x' (15, of so few rows), 'n' (15, of so few rows)" err || fail "no buckets in: $(cat err)"
cp err first.err
chosen 84 256 "$(newest run)"
grep -q 'monitor: valid.logloss' "$(newest run)/config.yaml" || fail "no early stop: $(cat "$(newest run)/config.yaml")"
# "restored the best model: logloss L at step S, epoch E of N" of N passes of 12 steps
sed -n 's/^restored the best model: logloss \([0-9.]*\) at step \([0-9]*\), epoch \([0-9]*\) of \([0-9]*\)$/\1 \2 \3 \4/p' err >best
[ -s best ] || fail "nothing was restored: $(cat err)"
read -r loss step epoch epochs <best
[ "$step" -eq $((12 * epoch)) ] || fail "best: $(cat best)"
[ "$epochs" -eq $((epoch + 2)) ] || fail "best: $(cat best)"
[ "$epochs" -lt 84 ] || fail "no early stop: $(cat best)"
grep -q "^test after step $step:" err || fail "another model was tested: $(cat err)"
[ "$(grep -c '^valid after step' err)" -eq "$epochs" ] || fail "not $epochs evaluations: $(cat err)"
least=$(sed -n 's/^valid after step.* logloss \([0-9.]*\) .*/\1/p' err | sort -n | head -n 1)
[ "$least" = "$(printf %.5f "$loss")" ] || fail "the best is $least, restored was $loss"
expect 0 tnet-eval -q c.yaml --data valid.csv --json
grep -q "\"raw_logloss\":$(echo "$loss" | cut -c 1-7)" out || fail "not the best model: $loss, $(cat out)"
if grep -q 'steps in all' first.err; then fail "advised to go on where a stop has ended it: $(cat first.err)"; fi

# --- 300 rows of which each stands a hundred times: the best model is one of the first pass, which is looked into ---
(head -n 1 train.csv && for _ in $(seq 100); do sed -n 2,301p train.csv; done) >same.csv
expect 0 tnet-train c.yaml model=deepfm data.train=same.csv run.dir=same
[ "$(sed -n 's/^valid after step \([0-9]*\):.*/\1/p' err | head -n 5 | xargs)" = '14 29 59 118 236' ] || fail "looks: $(cat err)"
[ "$(sed -n 's/^restored the best model: .* at step \([0-9]*\), .*/\1/p' err)" -lt 118 ] || fail "the best of many passes: $(cat err)"
if grep -q 'the run diverges' err; then fail "rows that are known by heart: $(cat err)"; fi

# --- --print-config says what and whence, also for data that are not there ---
expect 0 tnet-train c.yaml --print-config run.dir=none
grep -qE '^  epochs: 84 +# chosen by the data$' out || fail "print-config: $(cat out)"
grep -qE '^  batch: 256 +# chosen by the data$' out || fail "print-config: $(cat out)"
grep -qE 'name: x, type: float, transform: \{buckets: \[.*# c.yaml:6, chosen by the data' out || fail "print-config: $(cat out)"
expect 0 tnet-train c.yaml --print-config run.dir=none data.train=nowhere.csv
grep -qE '^  epochs: auto +# default$' out || fail "print-config: $(cat out)"

# --- the same for all who read the checkpoint, whatever became of the data ---
bounds=$(value x "$(newest run)")
[ -n "$bounds" ] || fail "no bounds: $(cat "$(newest run)/config.yaml")"
rows 40000 4 | sed 's/,9\./,77./' >later.csv
mv train.csv elsewhere.csv
expect 0 tnet-eval -q c.yaml --data test.csv --predictions eval.tsv data.train=later.csv
expect 0 tnet-eval -q c.yaml --data test.csv --predictions again.tsv # no data.train there
cmp eval.tsv again.tsv || fail "other data, another model"
expect 0 tnet-export -q c.yaml --to export data.valid=~
export_dir=$(cat out)
printf 'label,a,b,x,n\n0,,,,\n1,99,7,1e9,-3\n0,1,2,-1e9,1000000\n1,3,3,-4,\n' >odd.csv
for file in test.csv odd.csv; do
    expect 0 tnet-eval -q c.yaml --data $file --predictions eval.tsv
    expect 0 tnet-score "$export_dir" --data $file
    paste eval.tsv out | awk -F '\t' 'NR > 1 { d = $4 - $9; if (d > 2e-6 || d < -2e-6) print; n++ } END { if (n < 4) print "rows", n }' >differ
    [ ! -s differ ] || fail "$file: trainer and export differ: $(head -n 3 differ)"
done
cp later.csv train.csv
expect 0 tnet-train c.yaml data.changed=accept train.stop.patience=3
if grep -q '^chosen' err; then fail "chosen anew: $(cat err)"; fi
chosen 84 256 "$(newest run)"
[ "$(value x "$(newest run)")" = "$bounds" ] || fail "other bounds: $(value x "$(newest run)")"

# --- begun with the weights of another run: the same keys, the same steps; --fresh too ---
for fresh in "" --fresh; do
    expect 0 tnet-train c.yaml $fresh run.dir=warm checkpoint.resume="$(newest run)" train.max_steps=5
    chosen 84 256 warm/ckpt-1
    [ "$(value x warm/ckpt-1)" = "$bounds" ] || fail "other bounds: $(value x warm/ckpt-1)"
done
expect 0 tnet-train c.yaml --fresh train.max_steps=5
grep -qF 'chosen for about 40000 rows: train.batch=256, train.epochs=20 of 157 steps,' err || fail "--fresh: $(cat err)"
[ "$(value x "$(newest run)")" != "$bounds" ] || fail "--fresh kept bounds"
mv elsewhere.csv train.csv

# --- the newest word of the run itself counts, also where it was begun with other weights ---
for epochs in 1 2; do
    expect 0 tnet-train c.yaml run.dir=begun checkpoint.resume="$(newest run)" train.epochs=$epochs train.batch=500
done
expect 0 tnet-train c.yaml run.dir=begun checkpoint.resume="$(newest run)"
grep -q "is finished (epoch 2 of 2, step 12); nothing trained" err || fail "not finished: $(cat err)"

# --- where no run begins nothing is told ---
expect 5 tnet-eval c.yaml run.dir=none --data test.csv
if grep -q '^chosen' err; then fail "chosen for no run: $(cat err)"; fi

# --- what is written wins; a pipe; several processes ---
expect 0 tnet-train c.yaml run.dir=written train.epochs=2 train.batch=100 slots.x.transform='{buckets: [0]}' slots.x.as=key
chosen 2 100 "$(newest written)"
[ "$(value x "$(newest written)")" = 'type: float, transform: {buckets: [0]}}' ] || fail "bounds: $(value x "$(newest written)")"
expect 0 sh -c 'cat train.csv | tnet-train c.yaml run.dir=piped data.train=- "slots=[a, b]"'
grep -qxF 'chosen for data that come by a pipe: train.batch=1024, train.epochs=1' err || fail "pipe: $(cat err)"
chosen 1 1024 piped/ckpt-1
expect 0 tnet-train c.yaml --print-config --peers 2 run.dir=none model=lr data.valid=~ train.batch=5
grep -qE '^  epochs: 7 ' out || fail "not as the group: $(cat out)"
for ranks in 1 2; do
    expect 0 tnet-train c.yaml run.dir=run$ranks --peers $ranks model=lr data.valid=~ train.batch=5
    steps=$((600 / ranks))
    passes=$(((2000 + steps - 1) / steps))
    [ "$(grep -c "chosen for about 3000 rows: train.epochs=$passes of $steps steps\$" err)" -eq 1 ] || fail "$ranks: $(grep chosen err)"
    chosen $passes 5 "$(newest run$ranks)"
    grep -q "\"steps\":$((passes * steps))," run$ranks/summary.json || fail "$ranks: $(cat run$ranks/summary.json)"
done

# --- predictions depend on every slot, in every model ---
# depends MODEL FILE: predictions of the file and of its changed copy differ, and the model has learned. The first 20 of
# the 84 passes that are chosen do for it (an AUC of .706 at least, that of widedeep): the best is restored as ever.
depends() {
    what="$*"
    expect 0 tnet-train -q "$2.yaml" run.dir=dep --fresh model="$1" train.max_steps=240
    auc=$(awk '$1 == "auc" { print $2 }' out)
    awk -v auc="$auc" 'BEGIN { exit !(auc > .62) }' || fail "$what: auc $auc"
    expect 0 tnet-eval -q "$2.yaml" run.dir=dep model="$1" --data "$2.is" --predictions is.tsv
    expect 0 tnet-eval -q "$2.yaml" run.dir=dep model="$1" --data "$2.other" --predictions other.tsv
    [ "$(paste is.tsv other.tsv | awk 'NR > 1 && $4 != $9' | wc -l)" -gt 100 ] || fail "$what: predictions do not depend on it"
}
cp test.csv x.is
awk -F , 'BEGIN { OFS = "," } NR > 1 { $4 = $4 > 0 ? $4 - 8 : $4 + 8 } { print }' test.csv >x.other
cp c.yaml x.yaml
for model in lr fm '{type: ffm, k: 2}' fwfm '{type: widedeep, hidden: [8]}' '{type: deepfm, hidden: [8]}' '{type: dcn, hidden: [8]}'; do
    depends "$model" x
done

# libsvm: values, in a slot of all or in slots of their own
for set in one two; do
    awk 'BEGIN {
        srand(5)
        for (i = 0; i < 4000; i++) {
            v = rand() * 4 - 2; u = int(rand() * 10); p = 1 / (1 + exp(-2 * v))
            printf "%d 1:%.3f %d:1\n", rand() < p, v, 10 + u
        }
    }' >svm
    sed 3000q svm >$set.train
    sed 1,3000d svm >$set.valid
    cp $set.valid $set.is
    sed 's/ 1:-/ 1:/; t; s/ 1:/ 1:-/' $set.valid >$set.other
done
cat >one.yaml <<END
data: {format: libsvm, train: one.train, valid: one.valid}
log: {progress: false}
END
sed 's/one/two/g' one.yaml >two.yaml
echo 'slots: [{name: v, range: [1, 9]}, {name: u, range: [10, 99]}]' >>two.yaml
for model in lr fm '{type: deepfm, hidden: [8]}'; do
    depends "$model" one
    depends "$model" two
done

# one slot of several values: its values are paired with each other, which lr cannot see
awk 'BEGIN {
    srand(6)
    for (i = 0; i < 5000; i++) {
        u = int(rand() * 6); v = int(rand() * 6)
        printf "%d %d:1 %d:1\n", rand() < ((u + v) % 2 ? .9 : .1), u, 10 + v
    }
}' >pairs
sed 4000q pairs >pairs.train
sed 1,4000d pairs >pairs.valid
sed 's/one/pairs/g' one.yaml >pairs.yaml
for model in lr fm '{type: deepfm, hidden: [8]}'; do
    expect 0 tnet-train -q pairs.yaml run.dir=dep --fresh model="$model"
    auc=$(awk '$1 == "auc" { print $2 }' out)
    case $model in
        lr) awk -v auc="$auc" 'BEGIN { exit !(auc < .6) }' || fail "lr has an auc of $auc" ;;
        *) awk -v auc="$auc" 'BEGIN { exit !(auc > .85) }' || fail "$model has an auc of $auc" ;;
    esac
done

# models that read products of vectors alone begin with vectors that are large enough to learn from
awk 'BEGIN {
    srand(7)
    print "label,u,v"
    for (i = 0; i < 6000; i++) {
        u = int(rand() * 30); v = int(rand() * 30)
        printf "%d,%d,%d\n", rand() < ((u + v) % 2 ? .9 : .1), u, v
    }
}' >xor
sed 5001q xor >xor.train
sed 2,5001d xor >xor.valid
sed 's/one/xor/g; s/libsvm/csv/' one.yaml >xor.yaml
echo 'slots: [u, v]' >>xor.yaml
for model in nfm dlrm; do
    expect 0 tnet-train -q xor.yaml run.dir=dep --fresh model=$model
    awk '$1 == "auc" { exit !($2 > .84) }' out || fail "$model of pairs: $(cat out)"
done

# .. and with smaller ones where values multiply them
echo '1 1:10 2:-10' >large.train
sed 's/one/large/g' one.yaml >large.yaml
expect 0 tnet-train large.yaml model=dlrm data.valid=~ --print-config
grep -qE 'value_sizes: *\{_: 8\}' out || fail "sizes of large x: $(cat out)"
expect 0 tnet-train large.yaml model=dlrm embedding.init='{uniform: [-1, 1]}' data.valid=~ --print-config
grep -qE 'init: *\{uniform: \[-1, 1\]\}' out || fail "first values of the user: $(cat out)"

# --- what no input reads is refused, unless it is of use elsewhere ---
narrow='{type: graph, inputs: {w: {embed: [a, b], dim: 1}, num: {numeric: all}}, layers: [{name: z, dense: [w, num], units: 1}], output: z}'
more='slots=[a, b, {name: x, as: value}, {name: n, type: int}]'
expect 3 tnet-train c.yaml run.dir=graph model="$narrow" "$more"
grep -qF "slot 'n': no input of the model reads it" err || fail "$(cat err)"
grep -q "^hint: leave it out of 'slots', or name it in an input" err || fail "no remedy: $(cat err)"
expect 0 tnet-train c.yaml run.dir=graph model="$narrow" "$more" --dry-run eval.slices='[n]'
grep -qE '^n +n +4 +sum +eval.slices$' out || fail "dry run: $(cat out)"
grep -qE '^x +1 +number +num$' out || fail "dry run: $(cat out)"
expect 0 tnet-train c.yaml run.dir=graph model="$narrow" "$more" --dry-run data.group=n
grep -qE '^n +n +4 +sum +data.group$' out || fail "dry run: $(cat out)"

# --- the remedies that are advised are there ---
expect 0 tnet-train c.yaml run.dir=rate train.sparse.lr=1e-9 train.optimizer.lr=1e-9 train.epochs=1
awk '$1 == "auc" { exit !($2 < .6) }' out || fail "the rate of the rows changes nothing: $(cat out)"
grep -q '^warning: 12 steps in all: the model has hardly begun' err || fail "no advice: $(cat err)"
grep -q '"warnings":\["12 steps in all' rate/summary.json || fail "no advice: $(cat rate/summary.json)"
expect 0 tnet-train c.yaml run.dir=wild train.sparse.lr=30 train.optimizer.lr=3 train.batch=32 eval.calibrate=none
grep -q '^warning: .* the run diverges; try smaller' err || fail "no word of a divergence: $(cat err)"
if grep -qE '^warning: (valid.copc|[0-9]+ steps)' err; then fail "more than the divergence: $(cat err)"; fi
by_heart='slots=[{name: x, type: str}, a, b]' # hardly a text of x comes twice
expect 0 tnet-train c.yaml run.dir=heart model=lr "$by_heart" train.epochs=40
grep -q "^warning: valid.logloss .* is far above that of train" err || fail "no advice: $(tail -n 5 err)"
expect 0 tnet-train c.yaml run.dir=stopped model=lr "$by_heart" train.epochs=40 train.stop.monitor=valid.logloss
if grep -q 'far above' err; then fail "advised after it was done: $(cat err)"; fi

# --- the share of keys that training did not meet, alone and in a group: the scores stay where they are made, or come together ---
awk 'BEGIN { print "label,a,b"; for (i = 0; i < 400; i++) printf "%d,%d,%d\n", i % 3 == 0, i % 7, i % 4 }' >met.csv
awk 'BEGIN { print "label,a,b"; for (i = 0; i < 100; i++) printf "%d,%d,%d\n", i % 3 == 0, i < 40 ? 100 + i : i % 7, i % 4 }' >unmet.csv
told="data.valid: 20 % of all keys were not met in training (slot 'a': 40 %)"
for how in alone sums slices; do
    case $how in
        alone) more='' ;;
        sums) more='--peers 2 train.batch=32' ;;
        slices) more='--peers 2 train.batch=32 eval.slices=[b]' ;;
    esac
    # shellcheck disable=SC2086
    expect 0 tnet-train c.yaml run.dir="unmet-$how" data.train=met.csv data.valid=unmet.csv slots='[a, b]' eval.batch=10 $more
    [ "$how" != alone ] || grep -qF "$told" err || fail "no '$told' in: $(cat err)"
    grep -q "data.valid: [0-9]* % of all keys were not met in training (slot 'a'" err || fail "$how: $(cat err)"
done
expect 0 tnet-train c.yaml run.dir=met data.train=met.csv data.valid=met.csv slots='[a, b]'
if grep -q 'were not met' err; then fail "met keys are told: $(cat err)"; fi
