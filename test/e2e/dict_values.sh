#!/bin/sh
# dict_values.sh - dictionaries of fewer bits: how small they are, what they lose, and when that is
# refused; as deltas, too.
. "$(dirname "$0")/kit"
clicks "$dir/train.tsv" 6000 0
clicks "$dir/valid.tsv" 2000 6000
cd "$dir"
cat >run.yaml <<END
run: {name: values, dir: run}
data: {format: criteo, train: train.tsv, valid: valid.tsv}
model: {type: deepfm, hidden: [16]}
embedding: {dim: 8}
train: {epochs: 1, batch: 256, threads: 2}
eval: {calibrate: none}
END
expect 0 tnet-train -q run.yaml

# member NAME: of the JSON object in out
member() {
    sed "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/" out
}

# each kind of values takes fewer bytes than the one before, scores, and says what it loses
last=0
for values in f32 fp16 int8 int4; do
    expect 0 tnet-export run.yaml --to "$values" "export.values=$values" export.loss_max=0.1 --json
    bytes=$(member dict_bytes)
    [ "$(wc -c <"$(member path)/dict.tnd")" -eq "$bytes" ] || fail "$values: 'dict_bytes' is $bytes"
    [ "$last" -eq 0 ] || [ "$bytes" -lt "$last" ] || fail "$values has $bytes bytes, the one before $last"
    last=$bytes
    path=$(member path)
    [ ! -e "$path/float32.tnd" ] || fail "the floats to compare with are left in $path"
    if [ "$values" != f32 ]; then
        grep -Eq "dict.tnd [0-9.]+ MB as $values, [0-9]+ % of float32; 2000 rows of data.valid: AUC 0\.[0-9]+ \([-+]0\.[0-9]+\), COPC" err ||
            fail "not said what $values loses: $(cat err)"
        told=$(member auc)
        f32=$(member auc_f32)
        [ "$f32" = "$auc" ] || fail "AUC of floats: $f32 beside $values, $auc by themselves"
        expect 0 tnet-eval -q run.yaml --export "$path" --data valid.tsv --json
        awk "BEGIN { d = $(member auc) - $told; exit !(d * d < 1e-16) }" || fail "tnet-eval of $values: $(member auc), told $told"
    else
        expect 0 tnet-eval -q run.yaml --export "$path" --data valid.tsv --json
        auc=$(member auc)
    fi
done

# what loses too much is refused, by its figure and the limit, and leaves nothing
expect 4 tnet-export run.yaml --to tight export.values=int4 export.loss_max=0
says "with export.values int4 "
grep -Eq "(AUC falls by 0\.[0-9]+|COPC moves by 0\.[0-9]+) on data.valid, from .*; .*export.loss_max is 0$" err ||
    fail "no figure: $(cat err)"
[ -z "$(ls tight)" ] || fail "a refused export left $(ls tight)"
expect 0 tnet-export run.yaml --to blind export.values=int4 data.valid=~
grep -q "nothing says what that loses: there is no data.valid" err || fail "$(cat err)"
expect 3 tnet-export run.yaml --to x export.values=int3

# a delta of fewer bits on a base of fewer bits is worth what a whole export is
base=$(basename int4/*)
clicks few.tsv 300 9000
expect 0 tnet-train -q run.yaml train.epochs=2 data.train=few.tsv data.changed=accept
expect 0 tnet-export run.yaml --to int4 export.values=int4 export.loss_max=0.1 --delta-from "$base"
delta=$(cat out)
expect 0 tnet-export run.yaml --to whole export.values=int4 export.loss_max=0.1
whole=$(cat out)
[ "$(wc -c <"$delta/dict.tnd")" -lt "$(wc -c <"$whole/dict.tnd")" ] || fail "the delta holds all"
tnet-score "$delta" <valid.tsv >delta.tsv || fail "the delta does not score"
tnet-score "$whole" <valid.tsv | cmp - delta.tsv || fail "a delta and a whole export score differently"
