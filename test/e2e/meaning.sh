#!/bin/sh
# meaning.sh - what a row means belongs to the model. Every option of `data` and `slots` is changed between
# training and evaluation: the change is refused with code 3 and by its name, or the scores keep their bits, or
# it is an option of places and work. Later commands need no option again: they read the run folder.
. "$(dirname "$0")/kit"
samples=$(pwd)/datasets/samples
cd "$dir"
head -n 901 "$samples/clicks.csv" >train.csv
{
    head -n 1 "$samples/clicks.csv"
    tail -n 300 "$samples/clicks.csv"
} >test.csv
cat >csv.yaml <<END
run: {name: csv}
data: {format: csv, train: train.csv, test: test.csv, label: label}
slots:
  - {name: s0}
  - {name: s1, type: str}
  - {name: s2, type: str, share: s1}
  - {name: s3, list: "|", max_len: 3, missing: init}
  - {name: b, column: x0, type: float, transform: {buckets: [-1, 0, 1]}}
  - {name: q, column: x0, type: float}
  - {name: v, column: x0, type: float, as: value}
  - {name: x, cross: [s1, s2]}
embedding: {cvm: true}
model: {type: widedeep, hidden: [8]}
train: {epochs: 1, batch: 100, threads: 1}
log: {progress: false}
END
awk -F, 'NR > 1 { printf "%d 0:%d:2 1:%d\n", $1, $2, $3 }' train.csv >train.ffm
awk -F, 'NR > 1 { printf "%d 0:%d:2 1:%d\n", $1, $2, $3 }' test.csv >test.ffm
cat >ffm.yaml <<END
run: {name: ffm}
data: {format: libffm, train: train.ffm, test: test.ffm}
slots: [{name: a, field: 0}, {name: b, field: 1}]
model: {type: fm}
train: {epochs: 1, batch: 100, threads: 1}
log: {progress: false}
END
awk -F, 'NR > 1 { printf "%d %d %d\n", $1, $2 + 1, $3 + 100 }' train.csv >train.svm
awk -F, 'NR > 1 { printf "%d %d %d\n", $1, $2 + 1, $3 + 100 }' test.csv >test.svm
cat >svm.yaml <<END
run: {name: svm}
data: {format: libsvm, train: train.svm, test: test.svm, index_base: auto}
slots: [{name: a, range: [0, 90]}, {name: b, range: [90, 1e6]}]
model: {type: fm}
train: {epochs: 1, batch: 100, threads: 1}
log: {progress: false}
END
for run in csv ffm svm; do
    expect 0 tnet-train $run.yaml
    expect 0 tnet-eval $run.yaml --predictions $run.tsv
done

# ---- the walk: option, run, fate, the change
#      refused  code 3, and the message names the option   other  code 3, told by another check
#      same     the scores have the same bits              free   by its name: where rows lie, who reads them
cat >walk <<'END'
data.format             csv free    -
data.train              csv free    -
data.valid              csv free    -
data.test               csv free    -
data.compression        csv same    data.compression=none
data.label              csv refused data.label=s2 data.label_slots=allow
data.label_slots        csv same    data.label_slots=allow
data.weight             csv same    data.weight=s2 data.label_slots=allow
data.group              csv same    data.group=s0
data.record_id          csv free    -
data.bad_records_max    csv same    data.bad_records_max=7
data.shuffle            csv same    data.shuffle=0
data.readers            csv same    data.readers=2
data.negative_sampling  csv refused data.negative_sampling=0.3
data.index_base         svm refused data.index_base=0
data.delimiter          csv same    data.delimiter=","
data.header             csv same    data.header=true
data.columns            csv same    data.columns=[label,s0,s1,s2,s3,x0] data.header=true
data.quote              csv refused data.quote=none
data.trim               csv refused data.trim=true
data.null               csv refused data.null=["",5]
data.short_rows         csv same    data.short_rows=pad
data.list               csv refused data.list=;
data.comment            csv same    data.comment=#
data.unknown_field      ffm same    data.unknown_field=ignore
data.row_norm           ffm refused data.row_norm=true
data.slot_bits          svm other   data.slot_bits=low@4
data.record_bytes_max   csv same    data.record_bytes_max=1MiB
data.part_bytes         csv same    data.part_bytes=1MiB
data.changed            csv same    data.changed=accept
data.days               csv free    -
data.valid_rows         csv same    data.valid_rows=7
data.done               csv same    data.done=_DONE
data.wait               csv same    data.wait=1s
data.secrets            csv free    -
slots.NAME.name         csv free    -
slots.NAME.column       csv refused slots.s0.column=s1
slots.NAME.type         csv refused slots.s0.type=str
slots.NAME.cross        csv refused slots.x.cross=[s2,s1]
slots.NAME.share        csv refused slots.s2.share=s2
slots.NAME.as           csv refused slots.v.as=key
slots.NAME.transform    csv refused slots.b.transform={buckets:@[-1,.5,1]}
slots.NAME.list         csv refused slots.s3.list=;
slots.NAME.values       csv refused slots.s0.values=s2
slots.NAME.max_len      csv refused slots.s3.max_len=1
slots.NAME.sequence     csv other   slots.s3.sequence=past
slots.NAME.uneven       csv other   slots.s3.uneven=cut
slots.NAME.keep         csv refused slots.s3.keep=first
slots.NAME.step_pool    csv other   slots.s3.step_pool=concat
slots.NAME.absent       csv refused slots.s1.absent=key
slots.NAME.duplicates   csv refused slots.s3.duplicates=sum
slots.NAME.drop_zero    csv refused slots.s0.drop_zero=true
slots.NAME.non_finite   csv same    slots.v.non_finite=absent
slots.NAME.field        ffm refused slots.b.field=2
slots.NAME.range        svm refused slots.a.range=[0,80]
slots.NAME.dim          csv other   slots.s0.dim=3
slots.NAME.pool         csv other   slots.s3.pool=mean
slots.NAME.missing      csv refused slots.s3.missing=zero
slots.NAME.optimizer    csv same    slots.s0.optimizer=ftrl
slots.NAME.lr           csv same    slots.s0.lr=.9
slots.NAME.l2           csv same    slots.s0.l2=.9
slots.NAME.admission    csv other   slots.s0.admission=5
slots.NAME.expiry       csv same    slots.s0.expiry=5
slots.NAME.decay        csv same    slots.s0.decay=.1
slots.NAME.cvm          csv other   slots.s0.cvm=false
slots.NAME.init         csv refused slots.s3.init={uniform:@[-1,1]}
slots.NAME.uses         csv other   slots.s0.uses=[wide]
END
# shellcheck disable=SC2016 # these are the page's own quotes
tnet-train --print-config-doc | sed -nE 's/^\| `((data|slots\.NAME)\.[a-z_0-9]+)`.*/\1/p' | sort >options
awk '{ print $1 }' walk | sort >walked
cmp options walked || fail "an option says not what it changes, or is no more: $(diff options walked)"

# evaluates RUN CODE CHANGE..: of a copy of the scores nothing is left behind
evaluates() {
    run=$1
    code=$2
    shift 2
    rm -f changed.tsv
    expect "$code" tnet-eval "$run.yaml" --predictions changed.tsv "$@"
}
while read -r _ run fate change; do
    [ "$fate" != free ] || continue
    set -f
    set --
    for word in $change; do
        set -- "$@" "$(printf %s "$word" | tr @ ' ')"
    done
    set +f
    case $fate in
    same)
        evaluates "$run" 0 "$@"
        cut -f1,4,5 "$run.tsv" >want
        cut -f1,4,5 changed.tsv >got
        cmp want got || fail "other scores with $*"
        ;;
    refused)
        evaluates "$run" 3 "$@"
        path=$(printf %s "${1%%=*}" | sed 's/^data\.list$/slots.s0.list/')
        says "$path: here "
        says ", in the checkpoint "
        ;;
    other) evaluates "$run" 3 "$@" ;;
    esac
done <walk

# ---- all differences at once, and the model before its parameters
expect 3 tnet-eval csv.yaml data.negative_sampling=.2 'slots.b.transform={buckets: [0, 1]}' 'slots.s3.max_len=1'
says "the model of 'runs/csv' was learned with other options:"
says "slots.b.transform: here {buckets: [0, 1]}, in the checkpoint {buckets: [-1, 0, 1]}"
says "slots.s3.max_len: here 1, in the checkpoint 3"
says "data.negative_sampling: here 0.2, in the checkpoint 1"
says "hint: 'runs/csv' in place of the configuration has all of this from there"
expect 3 tnet-eval csv.yaml model.type=deepfm
says "model.type: here deepfm, in the checkpoint widedeep"
[ "$(wc -l <err)" -eq 3 ] || fail "more than the model's name: $(cat err)"

expect 3 tnet-eval csv.yaml data.negative_sampling=.3 --peers 2
[ "$(grep -c 'data.negative_sampling: here 0.3' err)" -eq 1 ] || fail "not told once: $(cat err)"

# ---- every other command compares, too; a rate, or a bound in other words, is no difference
expect 3 tnet-export csv.yaml slots.b.column=s0
says "slots.b.column: here s0, in the checkpoint x0"
expect 3 tnet-data lifecycle csv.yaml data.label='{column: s0, threshold: 3}' data.label_slots=allow
says "data.label: here {column: s0, threshold: 3}, in the checkpoint label"
expect 3 tnet-train csv.yaml train.epochs=2 data.null='["", 5]'
says 'data.null: here ["", 5], in the checkpoint [""]'
says "hint: --fresh begins anew, run.name=.. elsewhere"
expect 3 tnet-train csv.yaml data.null='["", 5]' --dry-run
expect 0 tnet-train csv.yaml data.null='["", 5]' --plan
cp -r runs/csv runs/more
expect 0 tnet-train csv.yaml run.name=more train.epochs=2 'slots.b.transform={buckets: [-1.0, 0, 1e0]}' train.optimizer.lr=.01
expect 0 tnet-train csv.yaml run.name=more --fresh data.null='["", 5]'

# ---- what the data have chosen is the checkpoint's, also the first index
grep -q 'index_base: 1' runs/svm/ckpt-1/config.yaml || fail "no index_base"
rm train.svm
expect 0 tnet-eval svm.yaml --data test.svm --predictions got.tsv
cmp got.tsv svm.tsv

expect 0 tnet-export runs/svm --to exp-svm
expect 0 tnet-eval svm.yaml --data test.svm --export exp-svm --predictions got.tsv
cut -f4 got.tsv >got
cut -f4 svm.tsv >want
cmp got want || fail "the export has another first index"

# ---- other formats of the same rows
expect 0 tnet-data convert csv.yaml to.format=jsonl --from test.csv --to test.jsonl
expect 0 tnet-eval csv.yaml data.format=jsonl --data test.jsonl --predictions got.tsv
cut -f2- got.tsv >got
cut -f2- csv.tsv >want
cmp got want || fail "other scores of the rows as JSON"
expect 3 tnet-eval csv.yaml data.format=jsonl data.null='["", 5]' --data test.jsonl
says "data.null: "
cut -d, -f2- test.csv >unlabelled.csv
expect 0 tnet-eval csv.yaml data.label=none --data unlabelled.csv --predictions got.tsv
cut -f4 got.tsv >got
cut -f4 csv.tsv >want
cmp got want || fail "other scores of rows without labels"

# ---- a run folder has its configuration, rules of training and data
cat >words.yaml <<END
run: {name: words}
data: {format: csv, train: train.csv, test: test.csv, label: label}
slots: [{name: s0}, {name: s1, type: str}, {name: x0, type: float}]
model: lr
END
expect 0 tnet-train words.yaml data.negative_sampling=.2 train.sparse.type=ftrl train.optimizer=sgd log.progress=false
expect 0 tnet-eval words.yaml data.negative_sampling=.2 --predictions want.tsv
expect 3 tnet-eval words.yaml
says "data.negative_sampling: here 1, in the checkpoint 0.2"
newest=$(cut -d" " -f1 runs/words/LATEST)
for word in runs/words runs/words/ "runs/words/$newest" "runs/words/$newest/"; do
    expect 0 tnet-eval "$word" --predictions got.tsv
    cmp got.tsv want.tsv || fail "other scores by $word"
done
expect 0 tnet-eval runs/words --data train.csv --peers 2
expect 3 tnet-eval runs/words slots.x0.transform='{buckets: [0]}'
says "slots.x0.transform: here {buckets: [0]}, in the checkpoint"
expect 0 tnet-export words.yaml data.negative_sampling=.2 --to exp-config
expect 0 tnet-export runs/words --to exp-folder
cmp exp-config/*/model.json exp-folder/*/model.json || fail "another export by the folder"
cp -r "runs/words/$newest" moved
expect 0 tnet-eval moved --data test.csv --predictions got.tsv
cmp got.tsv want.tsv || fail "other scores by a checkpoint that was moved"
expect 3 tnet-eval moved
says "nothing to evaluate"
mkdir empty
expect 5 tnet-eval empty
says "no checkpoint in the folder 'empty'"

# ---- folders of exports, and data options with their section
[ "$(ls exp-folder)" = "$(basename "$(ls -d exp-config/*)")" ] || fail "another model"
tnet-score exp-folder <test.csv >want
tnet-score exp-folder/* data.format=csv <test.csv >got
cmp got want || fail "other scores by the folder of one export"
expect 3 sh -c 'tnet-score exp-folder data.null=5 <test.csv'
says "'data.null' is [5], and the model has learned with [\"\"]"
expect 3 tnet-eval words.yaml --export exp-folder data.label='{column: s0, threshold: 3}' data.label_slots=allow
says "'data.label' is {column: s0, threshold: 3}, and the model has learned with label"
expect 0 tnet-eval words.yaml --export exp-folder
expect 0 tnet-eval runs/words --export exp-folder
expect 0 sh -c 'tnet-score exp-folder data.label=none <unlabelled.csv'
cp -r exp-folder/* exp-folder/second
expect 5 sh -c 'tnet-score exp-folder <test.csv'
says "'exp-folder' holds 2 exports, and no LATEST says which"
echo second >exp-folder/LATEST
tnet-score exp-folder <test.csv >got
cmp got want || fail "other scores by LATEST"

# ---- a run over days: nobody need name one that the command does not use
mkdir logs
for day in 1 2 3; do
    mkdir "logs/2026110$day"
    tail -n "+$((day * 100))" train.csv | head -n 200 | sed "1s/.*/$(head -n 1 train.csv)/" >"logs/2026110$day/a.csv"
done
sed 's|train: train.csv, test: test.csv|train: "logs/{day:%Y%m%d}/a.csv", valid: next|; s/name: words/name: days/' words.yaml >days.yaml
expect 0 tnet-train days.yaml day=2026-11-01..2026-11-02 log.progress=false
expect 0 tnet-eval days.yaml day=2026-11-03 --predictions want.tsv
expect 0 tnet-eval days.yaml --predictions got.tsv
cmp got.tsv want.tsv || fail "not the day after the last learned one"
expect 0 tnet-eval runs/days --predictions got.tsv
cmp got.tsv want.tsv
expect 0 tnet-eval days.yaml data.test=test.csv
grep -q '^metric .*test' out || fail "not data.test: $(cat out)"
expect 0 tnet-export days.yaml --to days
expect 0 tnet-data lifecycle runs/days
rm -r logs/20261103
expect 4 tnet-eval runs/days
says "day 2026-11-03 is not there"
expect 0 tnet-eval runs/days --data test.csv

# ---- weights to begin with: a slot of another meaning is refused, or left out
from='checkpoint.from={path: runs/csv, rename: {s0: id}}'
sed 's/{name: s0}/{name: id, column: s0}/; s/name: csv/name: warm/' csv.yaml >warm.yaml
expect 3 tnet-train warm.yaml "$from" 'slots.b.transform={buckets: [0, 1]}' slots.id.type=str
says "slots.b.transform: here {buckets: [0, 1]}, in the checkpoint {buckets: [-1, 0, 1]}"
says "slots.id.type: here str, in the checkpoint id"
says "hint: checkpoint.from.rows leaves a slot out, checkpoint.from.dense the net"
expect 0 tnet-train warm.yaml 'checkpoint.from={path: runs/csv, rows: [id, s1, s3, q], rename: {s0: id}}' \
    'slots.b.transform={buckets: [0, 1]}' data.negative_sampling=.5
grep -q 'slot *b *new' err || fail "slot b was taken: $(cat err)"
expect 0 tnet-train warm.yaml run.name=warm2 "$from"
