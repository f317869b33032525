#!/bin/sh
# counts.sh - show and click as inputs: a run over days, its evaluation, on whatever day, and its export
# predict the same; so do weights that TensorNet trained with them, there and back.
. "$(dirname "$0")/kit"
root=$(pwd)
cd "$dir"
for day in 1 8 15; do
    clicks "2026-11-$(printf %02d $day).tsv" 3000 $((day * 1000))
done
cat >run.yaml <<END
run: {name: counts, dir: run}
data: {format: criteo, train: "{day:%Y-%m-%d}.tsv", days: [2026-11-01, 2026-11-08]}
embedding: {dim: 4, cvm: true}
model: {type: dcnv2, hidden: [16]}
train: {batch: 100, threads: 2}
export: {to: export}
END

# same FILE FILE: ids, and logits to 2e-6.
same() {
    awk -F '\t' 'NR == FNR { logit[$1] = $4; next }
        FNR > 1 && $1 != "id" {
            d = $4 - logit[$1]; size = $4 < 0 ? -$4 : $4; n++
            if (!($1 in logit) || d * d > 4e-12 * (size > 1 ? size * size : 1)) { print; bad = 1 }
        }
        END { exit bad || n < 200 }' "$1" "$2" >differ || fail "$1 and $2 differ: $(head -n 3 differ)"
}

expect 0 tnet-train -q run.yaml
! grep -q 'cvm' err || fail "one epoch is warned of: $(cat err)"
expect 0 tnet-export -q run.yaml
cp out exported
for day in "" today 2030-01-01; do # that of the checkpoint counts
    expect 0 tnet-eval -q run.yaml --data 2026-11-15.tsv --predictions "eval$day.tsv" \
        ${day:+data.days=~ data.train=2026-11-01.tsv run.day=$day}
    cmp eval.tsv "eval$day.tsv" || fail "evaluated on $day"
done
expect 0 tnet-eval -q run.yaml --data 2026-11-15.tsv --predictions two.tsv --peers 2
same eval.tsv two.tsv
expect 0 tnet-score "$(cat exported)" --data 2026-11-15.tsv
mv out score.tsv
same eval.tsv score.tsv
grep -q '"version":\[3,0\]' "$(cat exported)/model.json" || fail "a reader that knows no counts would take it"

# they decay by the days: at another rate the same rows predict something else
expect 0 tnet-eval -q run.yaml --data 2026-11-15.tsv --predictions fast.tsv embedding.decay=0.5
! cmp -s eval.tsv fast.tsv || fail "counts of the first day did not decay"
expect 0 tnet-eval -q run.yaml --data 2026-11-15.tsv --predictions slot.tsv slots.C1.decay=0.5
! cmp -s eval.tsv slot.tsv || fail "counts of one slot decay as all others"

# what cannot be
expect 3 tnet-train run.yaml run.dir=lr model='{type: lr}'
grep -q "no part of model 'lr' reads show and click" err || fail "$(cat err)"
[ ! -e lr ] || fail "a refused run left a folder"
expect 3 tnet-eval run.yaml --data 2026-11-15.tsv embedding.cvm=false

# of TensorNet: predictions, the export, and back
cd "$root"
of=configs/tensornet-cvm.yaml
mkdir "$dir/cases"
tar xzf test/golden/tensornet/cases.tar.gz -C "$dir/cases"
cp -r test/golden/tensornet/adagrad_cvm_r1/bin "$dir/cases/adagrad_cvm_r1"
for ranks in 1 2; do
    golden=$dir/cases/adagrad_cvm_r$ranks
    run=run.dir=$dir/tn$ranks
    expect 0 tnet-train -q $of "$run" train.epochs=0 checkpoint.from.tensornet.dir="$golden/bin"
    expect 0 tnet-eval -q $of "$run" --predictions "$dir/tn.pred"
    cat "$dir/tn.pred" "$dir/tn.1.pred" >"$dir/tn.tsv"
    awk 'NR == FNR { want[$1] = $3; next }
        $1 in want && $1 != "id" { d = $5 - want[$1]; n++; if (d > 1e-6 || d < -1e-6) bad++ }
        END { exit n != 200 || bad }' "$golden/pred.files.tsv" "$dir/tn.tsv" || fail "other predictions than TensorNet's"
    expect 3 tnet-eval $of "$run" model.inputs.cvm.form=log
    expect 0 tnet-export -q $of "$run" --to "$dir/tn-export$ranks"
    expect 0 tnet-score "$(cat "$dir/out")" --data 'test/golden/tensornet/data/2020-05-10/tf-*'
    cp "$dir/out" "$dir/tn-score.tsv"
    expect 0 tnet-data ckpt export $of "$run" --tensornet "$dir/back$ranks" --ranks $ranks
    expect 0 tnet-train -q $of run.dir="$dir/again$ranks" train.epochs=0 checkpoint.from.tensornet.dir="$dir/back$ranks"
    expect 0 tnet-eval -q $of run.dir="$dir/again$ranks" --predictions "$dir/again.pred"
    cat "$dir/again.pred" "$dir/again.1.pred" >"$dir/tn-again.tsv"
    (cd "$dir" && same tn.tsv tn-score.tsv && same tn.tsv tn-again.tsv)
done
