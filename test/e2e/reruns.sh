#!/bin/sh
# reruns.sh - a run that was there before: the table of docs/training.md, row by row. What is asked for
# (the same, other data, another rate, another model, a checkpoint of this run or of another) meets a
# run that is finished, was stopped on its way, or whose newest checkpoint is damaged.
. "$(dirname "$0")/kit"
cd "$dir"
clicks a.tsv 900 0
clicks b.tsv 900 900
clicks valid.tsv 300 1800
cat >s.yaml <<END
data: {format: criteo, train: a.tsv, valid: valid.tsv, shuffle: 0, part_bytes: 40KiB}
embedding: {dim: 2}
model: {type: fm}
train: {epochs: 1, batch: 100, threads: 1, sparse: {type: adam, lr: 1e-3}}
checkpoint: {every: 4steps}
log: {progress: false}
run: {name: x}
END

# run CODE WORDS..: tnet-train s.yaml.
run() {
    code=$1
    shift
    expect "$code" tnet-train s.yaml "$@"
}

# told TEXT: on stderr; silent TEXT: not there.
told() { grep -qF -- "$1" err || fail "no '$1' in: $(cat err)"; }
silent() { ! grep -qF -- "$1" err || fail "'$1' in: $(cat err)"; }

# weights RUN: of its newest checkpoint, without the heads that name the run that wrote it.
weights() {
    newest=$1/$(cut -d' ' -f1 "$1/LATEST")
    for file in "$newest"/sparse-* "$newest"/dense-*; do
        tail -c +65 "$file"
    done | cksum
}

# same RUN RUN: the same was learned; other: it was not.
same() { [ "$(weights "$1")" = "$(weights "$2")" ] || fail "the models of $1 and $2 differ"; }
other() { [ "$(weights "$1")" != "$(weights "$2")" ] || fail "the models of $1 and $2 are the same"; }

# finished, stopped, damaged: runs/x as the columns of the table have it. The first trains 9 steps, the
# second is killed while it saves at step 8, of the third the checkpoint of the end is spoilt.
finished() {
    rm -rf runs/x && cp -r kept/finished runs/x
}
stopped() {
    rm -rf runs/x && cp -r kept/stopped runs/x
}
spoil() { printf x | dd of="$1" bs=1 seek=40 conv=notrunc 2>null; }
damaged() {
    finished
    spoil runs/x/ckpt-3/MANIFEST
}
mkdir kept
run 0
mv runs/x kept/finished
got=0
TNET_FAIL=ckpt.begin#2:kill tnet-train s.yaml >out 2>err || got=$?
if [ "$got" -eq 0 ]; then
    skip "this build has no failpoints"
fi
[ "$got" -eq 137 ] || fail "exit code $got of a killed run"
mv runs/x kept/stopped
[ ! -e kept/stopped/ckpt-2 ] || fail "the killed run has saved"

# ---- the same command again
finished
run 0
told "run 'x' is finished (epoch 1 of 1, step 9); nothing trained; train on with train.epochs=2, begin anew with run.name=.. or --fresh"
grep -q '^logloss' out || fail "no table"
same runs/x kept/finished
run 0 train.threads=2 log.every=1s data.readers=1 eval.metrics='[auc]' export.to=elsewhere compute.gemm=own data.valid=b.tsv
told "nothing trained; train on"
run 0 train.optimizer.lr=1e-3
told "nothing trained; train on"
run 0 run.dir=runs/x
told "begin anew with run.dir=.. or --fresh"
stopped
run 0
told "goes on from ckpt-1 (epoch 1 of 1, step 4)"
silent differ
same runs/x kept/finished
damaged
run 0
told "damaged"
told "goes on from ckpt-2 (epoch 1 of 1, step 8)"
same runs/x kept/finished

# ---- train on
finished
run 0 train.epochs=2
told "goes on from ckpt-3 (epoch 2 of 2, step 9)"
silent differ
grep -q '"parts":\[\],"step":18}' "runs/x/$(cut -d' ' -f1 runs/x/LATEST)/MANIFEST" || fail "where the epoch began is not kept"
grep -q '"step":9}' runs/x/ckpt-5/MANIFEST || fail "where the epoch began is not known behind a resume"
run 0 run.name=twice train.epochs=2
same runs/x runs/twice
run 3 train.epochs=1
told "is finished (epoch 2 of 1, step 18); 1 option differs: train.epochs; nothing trained"

# ---- other data: another file, the same file with other bytes, one more file, none, standard input
finished
run 3 data.train=b.tsv
says "run 'x' is finished (epoch 1 of 1, step 9); 1 option differs: data.train; nothing trained"
told "hint: train on with train.epochs=2 data.changed=accept, begin anew with run.name=.. or --fresh"
same runs/x kept/finished
cp a.tsv a.kept
tr 5 6 <a.kept >a.tsv
run 3
says "1 option differs: data.train; nothing trained"
cp a.kept a.tsv
run 0
run 3 data.train='[a.tsv, b.tsv]'
run 3 data.train=absent.tsv
run 3 data.train=- <a.tsv
run 4 data.train=b.tsv train.epochs=2
says "the training data have changed since the checkpoint: 'b.tsv' is not what 'a.tsv' was"
told "hint: data.changed=accept learns from them as they are, --fresh begins anew"
run 0 data.train=b.tsv train.epochs=2 data.changed=accept
told "warning: the training data have changed since the checkpoint"
other runs/x runs/twice
for state in stopped damaged; do
    $state
    run 4 data.train=b.tsv
    says "the training data have changed since the checkpoint"
    $state
    tr 5 6 <a.kept >a.tsv
    run 4
    says "'a.tsv' holds other bytes than before"
    run 0 data.changed=accept
    told "'a.tsv' holds other bytes than before"
    silent "begins anew"
    other runs/x kept/finished
    $state
    cat a.kept b.tsv >a.tsv
    run 4
    run 0 data.changed=accept
    told "the place in the epoch is lost with the data: it begins anew"
    cp a.kept a.tsv
done

# A file that was touched, copied or moved is the same.
stopped
mkdir moved
cp a.kept moved/z.tsv
touch -d 2001-01-01 moved/z.tsv
run 0 data.train=moved/z.tsv
told "goes on from ckpt-1"
silent differ
same runs/x kept/finished

# ---- another rate
finished
run 3 train.optimizer.lr=0.5 'train.sparse={type: adam, lr: 0.5}'
says "2 options differ: train.optimizer.lr, train.sparse.lr; nothing trained"
told "hint: train on with train.epochs=2, begin anew with run.name=.. or --fresh"
same runs/x kept/finished
for state in stopped damaged; do
    $state
    run 0 'train.sparse={type: adam, lr: 0.5}'
    told "; 1 option differs: train.sparse.lr"
    other runs/x kept/finished
done

# ---- another model
for state in finished stopped damaged; do
    $state
    run 3 model.type=lr
    says "model.type: here lr, in the checkpoint fm"
    told "hint: --fresh begins anew, run.name=.. elsewhere"
done
run 3 'slots=[{name: C1, type: str}, {name: C2, type: str}]'
told "  slot 'I12' of the checkpoint is gone"
told "  and 27 more"
silent "slot 'I13'"

# ---- a checkpoint of this run
finished
run 0 checkpoint.resume=runs/x/ckpt-3
told "run 'x' is finished (epoch 1 of 1, step 9); nothing trained"
run 3 checkpoint.resume=runs/x/ckpt-3 data.train=b.tsv
run 0 checkpoint.resume=runs/x/ckpt-2/
told "goes on from ckpt-2 (epoch 1 of 1, step 8)"
[ -e runs/x/ckpt-4 ] || fail "what was trained is not saved"
same runs/x kept/finished
stopped
run 0 checkpoint.resume=runs/x/ckpt-1
told "goes on from ckpt-1 (epoch 1 of 1, step 4)"
same runs/x kept/finished
damaged
run 5 checkpoint.resume=runs/x/ckpt-3

# ---- a checkpoint of another run: a run of its own, at epoch 0, with those weights
for state in finished stopped damaged; do
    rm -rf runs
    mkdir runs
    $state
    run 0 run.name=y checkpoint.resume=runs/x/ckpt-1
    told "begins with the weights of 'runs/x/ckpt-1' (epoch 0, step 4)"
    grep -q '"epoch":1,.*"begun":"[0-9a-f]\{8\}"' runs/y/ckpt-3/MANIFEST || fail "no run of its own"
    grep -q '"steps":9,' runs/y/summary.json || fail "not one epoch of its own"
    other runs/y kept/finished
done
run 5 run.name=z checkpoint.resume=runs/x/ckpt-3
[ ! -e runs/z/ckpt-1 ] || fail "began with damaged weights"
cp -r runs/y kept/begun
run 0 run.name=y checkpoint.resume=runs/x/ckpt-1
told "run 'y' is finished (epoch 1 of 1, step 9); nothing trained"
run 3 run.name=y checkpoint.resume=runs/x/ckpt-2
says "'runs/y' holds checkpoints of a run of its own (ckpt-3, step 9), and checkpoint.resume names one of another"
rm -rf runs/y
got=0
TNET_FAIL=ckpt.begin#2:kill tnet-train s.yaml run.name=y checkpoint.resume=runs/x/ckpt-1 >out 2>err || got=$?
[ "$got" -eq 137 ] || fail "exit code $got of a killed run"
run 0 run.name=y checkpoint.resume=runs/x/ckpt-1
told "goes on from ckpt-1 (epoch 1 of 1, step 4)"
same runs/y kept/begun

# ---- nothing is learned, and still there is a checkpoint
run 0 run.name=w checkpoint.resume=runs/x/ckpt-1 train.epochs=0
run 0 run.name=w checkpoint.resume=runs/x/ckpt-1
told "goes on from ckpt-1 (epoch 1 of 1, step 0)"
same runs/w kept/begun

finished
expect 0 tnet-export s.yaml --to exp export.dict='[tsv]' export.state=true
model=$(echo exp/*)
files="checkpoint.from={rows: $model/dict.tsv, dense: $model/dense.safetensors}"
for words in train.epochs=0 train.max_steps=0; do
    rm -rf runs/v
    run 0 run.name=v "$files" "$words"
    grep -q '"rows":"[1-9].*"begun":"00000000"' runs/v/ckpt-1/MANIFEST || fail "$words: nothing was imported"
done
run 0 --dry-run "$files"
run 5 --dry-run "checkpoint.from={rows: absent.tsv}"
told "absent.tsv"
run 3 "$files"
says "1 option differs: checkpoint.from; nothing trained"

# ---- anew
finished
mkdir runs/x/mine runs/x/ckpt-3.damaged.mine runs/x/ckpt-3.damaged.2 && echo keep >runs/x/notes.txt
run 0 --fresh train.optimizer.lr=0.5
told "begins anew; the run before is kept in 'runs/x/earlier-1'"
for file in ckpt-3.damaged.2 run.yaml; do
    [ -e "runs/x/earlier-1/$file" ] || fail "left behind: $file"
done
for file in mine notes.txt ckpt-3.damaged.mine; do
    [ -e "runs/x/$file" ] || fail "what is the user's has moved: $file"
done
same runs/x/earlier-1 kept/finished
cmp runs/x/earlier-1/metrics.jsonl kept/finished/metrics.jsonl || fail "the log was not kept"
grep -q '"kind":"start"' runs/x/metrics.jsonl || fail "no log of its own"
other runs/x kept/finished
run 0 --fresh
told "is kept in 'runs/x/earlier-2'"
same runs/x kept/finished
run 0 --fresh checkpoint.resume=runs/x/earlier-1/ckpt-1
told "begins with the weights of 'runs/x/earlier-1/ckpt-1'"
[ -d runs/x/earlier-3 ] || fail "nothing was set aside"
expect 0 tnet-eval s.yaml --checkpoint runs/x/earlier-1
run 2 --fresh --resume
says "--fresh begins anew and --resume goes on: only one of them"
flock runs/x/LOCK tnet-train s.yaml --fresh >out 2>err && fail "a run that is in use was set aside"
told "in use"
[ ! -e runs/x/earlier-4 ] || fail "a run that is in use was set aside"

# ---- all are damaged: never anew in silence
damaged
for n in 1 2; do spoil runs/x/ckpt-$n/MANIFEST; done
run 5
run 0 --fresh
same runs/x kept/finished
