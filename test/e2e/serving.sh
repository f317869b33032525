#!/bin/sh
# serving.sh - from a run to a service: the export, the programs that read it, the library and the
# example of docs/serving.md agree to the last digits that matter.
. "$(dirname "$0")/kit"
root=$(pwd)
clicks "$dir/train.tsv" 6000 0
clicks "$dir/test.tsv" 1000 6000
cd "$dir"
cat >run.yaml <<END
run: {name: serving, dir: run}
data: {format: criteo, train: train.tsv, test: test.tsv, negative_sampling: 0.5}
model: {type: deepfm, hidden: [16, 8], batch_norm: true}
embedding: {dim: 4}
train: {epochs: 1, batch: 256, threads: 2}
export: {to: export}
END
expect 0 tnet-train -q run.yaml
expect 0 tnet-export -q run.yaml
export_dir=$(cat out)
[ -s "$export_dir/EXPORT.json" ] || fail "no export in '$export_dir'"
[ "$(basename "$export_dir")" = "$(sed 's/.*"model_id":"\([0-9a-f]*\)".*/\1/' "$export_dir/EXPORT.json")" ] ||
    fail "the folder is not called like its model"

# the same again is nothing new; another one in its place is refused
expect 0 tnet-export run.yaml --json
grep -q '"existed":true' out || fail "exported again: $(cat out)"
expect 5 tnet-export run.yaml export.values=int8
says "is there already and not the same"
[ "$(find export -mindepth 1 -maxdepth 1 | wc -l)" -eq 1 ] || fail "left behind: $(ls export)"
expect 5 tnet-export run.yaml --checkpoint nowhere
says "no checkpoint or run directory 'nowhere'"
expect 0 tnet-export -q run.yaml --to small export.values=bf16 'export.dict=[tnd, tsv]'
head -n 1 "$(cat out)/dict.tsv" | grep -q '^#tnet-dump 1' || fail "no dict.tsv"

# the graph for others, beside the native one
expect 0 tnet-export run.yaml --to onnx 'export.graph=[native, onnx]'
grep -q '"name":"graph.onnx"' "$(cat out)/EXPORT.json" || fail "graph.onnx is not in the index"
grep -q "$(basename "$export_dir")" "$(cat out)/graph.onnx" || fail "graph.onnx does not name its model"

# trainer and export: equal predictions
expect 0 tnet-eval -q run.yaml --predictions eval.tsv
expect 0 tnet-score "$export_dir" --data test.tsv
mv out score.tsv
head -n 1 score.tsv | grep -q "^id	label	weight	logit	pctr" || fail "head: $(head -n 1 score.tsv)"
[ "$(wc -l <score.tsv)" -eq 1001 ] || fail "$(wc -l <score.tsv) lines for 1000 rows"
paste eval.tsv score.tsv | awk -F '\t' '
    NR > 1 {
        d = $4 - $9; d = d < 0 ? -d : d; size = $4 < 0 ? -$4 : $4
        if ($1 != $6 || $2 != $7 || d > 2e-6 * (size > 1 ? size : 1)) { print NR ": " $0; bad = 1 }
    }
    END { exit bad }' >differ || fail "trainer and export differ: $(head -n 3 differ)"

# any format, any way in
tnet-score "$export_dir" <test.tsv >piped.tsv || fail "stdin"
cmp score.tsv piped.tsv || fail "stdin and a file differ"
expect 0 tnet-eval -q run.yaml --export "$export_dir" --data test.tsv data.group=C3 --predictions grouped.tsv
head -n 1 grouped.tsv | grep -q "pctr.group$" || fail "no group in predictions"
tnet-score "$export_dir" group=C3 <test.tsv | cmp - grouped.tsv || fail "tnet-score writes other groups"
cut -f 2- test.tsv | tnet-score "$export_dir" --no-label --verify lazy | cut -f 4,5 >bare.tsv
cut -f 4,5 score.tsv | cmp - bare.tsv || fail "without labels scores differ"
gzip -c test.tsv | tnet-score "$export_dir" --verify none | cmp - score.tsv || fail "gzip"

# what is wrong is said
expect 3 tnet-score "$export_dir" formt=tsv
grep -q "did you mean 'format'" err || fail "no suggestion: $(cat err)"
expect 5 tnet-score "$dir"
says "no export in"
expect 4 tnet-score "$export_dir" --data run.yaml
expect 2 tnet-score
expect 2 tnet-score "$export_dir" --verfy full
cp -r "$export_dir" broken
printf 'x' | dd of=broken/dict.tnd bs=1 seek=2000 conv=notrunc 2>null
expect 5 tnet-score broken --data test.tsv
grep -q "damaged (crc" err || fail "$(cat err)"

# calibration: fitted on rows that the model has not seen, carried by the export, applied by all readers
clicks valid.tsv 2000 7000
clicks later.tsv 2000 9000
expect 3 tnet-eval run.yaml --calibrate platt
says "nothing to calibrate on: data.valid is not set"
expect 2 tnet-eval run.yaml --calibrate platt --data train.tsv --peers 2
says "'train.tsv' is also in data.train"
expect 2 tnet-eval run.yaml --calibrate platt --export "$export_dir"
says "'--calibrate' needs a checkpoint"
expect 2 tnet-eval run.yaml --calibration-out c.json
says "'--calibration-out' needs '--calibrate'"
expect 3 tnet-eval run.yaml --calibrate platt --data valid.tsv data.label=none
says "'--calibrate' needs labels"
expect 2 tnet-eval run.yaml --calibrate platt --data valid.tsv --calibration-out valid.tsv
[ ! -e calibration.json ] || fail "a refused calibration left a file"
expect 0 tnet-eval -q run.yaml --calibrate platt --data valid.tsv --predictions raw.tsv
grep -q "fitted on these 2000 rows of valid.tsv" out || fail "not said what was fitted on: $(cat out)"
grep -Eq '^copc +[0-9.]+ +1\.000000$' out || fail "COPC of the fitted rows: $(cat out)"
cp calibration.json alone.json
expect 0 tnet-eval -q run.yaml --calibrate platt --data valid.tsv --peers 2
cmp alone.json calibration.json || fail "two processes fit something else"
expect 0 tnet-export -q run.yaml --to calibrated --calibration calibration.json
calibrated=$(cat out)
[ "$(basename "$calibrated")" = "$(basename "$export_dir")" ] || fail "a calibrated model is another model"
cmp "$calibrated/dict.tnd" "$export_dir/dict.tnd" || fail "a calibration changed the dictionary"
grep -q '"calibration":{"kind":"platt",' "$calibrated/model.json" || fail "no calibration in model.json"
expect 0 tnet-eval -q run.yaml --export "$calibrated" --data valid.tsv --predictions fitted.tsv --json
sed 's/.*"copc":\([^,]*\).*/\1/' out | awk '{ exit !($1 - 1 < 1e-6 && 1 - $1 < 1e-6) }' || fail "COPC: $(cat out)"
tnet-score "$calibrated" <valid.tsv | cmp - fitted.tsv || fail "tnet-score and tnet-eval calibrate differently"
line=$(sed 's/.*"a":\([^,]*\),"b":\([^}]*\)}.*/\1 \2/' calibration.json)
paste raw.tsv fitted.tsv | awk -F '\t' -v line="$line" '
    BEGIN { split(line, map, " ") }
    NR > 1 {
        z = map[1] * $4 + map[2]; d = z - $9; e = 1 / (1 + exp(-z)) - $10
        if (d * d > 4e-12 * (1 + z * z) || e * e > 1e-12) { print NR ": " $0; bad = 1 }
    }
    END { exit bad }' >differ || fail "not sigmoid(a z + b): $(head -n 3 differ)"
expect 0 tnet-eval -q run.yaml --calibrate isotonic --data valid.tsv --calibration-out iso.json --json
grep -q '"calibration":{"method":"isotonic","file":"iso.json","fitted_rows":2000,"before":{"logloss":' out || fail "$(cat out)"
expect 0 tnet-export -q run.yaml --to isotonic --calibration iso.json
expect 0 tnet-eval -q run.yaml --export "$(cat out)" --data later.tsv --predictions later-iso.tsv --json
iso=$(sed 's/.*"logloss":\([^,]*\).*/\1/' out)
expect 0 tnet-eval -q run.yaml --data later.tsv --predictions later-raw.tsv --json
raw=$(sed 's/.*"logloss":\([^,]*\).*/\1/' out)
awk "BEGIN { exit !($iso < $raw + 0.02) }" || fail "log loss $iso of isotonic regression, $raw without"
paste later-raw.tsv later-iso.tsv | tail -n +2 | sort -g -k 4,4 |
    awk -F '\t' '$10 < last { exit 1 } { last = $10 }' || fail "isotonic probabilities do not rise"

# a map of other scores is refused, and so is half of one
expect 5 tnet-export run.yaml --calibration calibration.json
says "is there already and not the same"
expect 3 tnet-export run.yaml --to other --calibration calibration.json data.negative_sampling=0.25
says "data.negative_sampling: here 0.25, in the checkpoint 0.5"
expect 0 tnet-train -q run.yaml run.dir=other-run train.max_steps=3
expect 4 tnet-export run.yaml run.dir=other-run --to other --calibration calibration.json
says "'calibration.json' calibrates model $(basename "$export_dir") of step"
head -c 100 iso.json >half.json
expect 4 tnet-export run.yaml --to other --calibration half.json
says "truncated: 'half.json' does not end with its crc32c"
expect 4 tnet-export run.yaml --to other --calibration nowhere.json
says "no calibration 'nowhere.json'"
[ ! -e other ] || fail "a refused calibration left an export"

# the library: the commands of the manual as they stand, from a root with what `make run` leaves
command -v gcc >null || skip "no C compiler"
sanitized && exit 0
mkdir -p root/build root/runs/widedeep
ln -s "$root/src" "$root/docs" root
ln -s "$bin" root/build/release
ln -s "$dir/export" root/runs/widedeep/export
awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$root/docs/serving.md" >commands
[ "$(wc -l <commands)" -ge 5 ] || fail "docs/serving.md has no commands"
if [ ! -e "$bin/libtnet.a" ]; then
    grep -v static commands >shared
    mv shared commands
fi
(cd root && sh -eu ../commands) >out 2>err || fail "docs/serving.md: $(tail -n 3 err)"
score="$(basename "$export_dir") 0\.[0-9]*"
[ "$(grep -c "^$score$" out)" -eq "$(grep -c '^\./' commands)" ] || fail "docs/serving.md: $(cat out)"
[ "$(sort -u out | wc -l)" -eq 1 ] || fail "shared and static differ: $(cat out)"
[ ! -e "$bin/libtnet.a" ] ||
    [ "$(nm -g --defined-only "$bin/libtnet.a" | awk 'NF == 3 { print $3 }' | grep -cv '^tnet_')" -eq 0 ] ||
    fail "libtnet.a shows more than tnet_*"
[ "$(nm -D --defined-only "$bin/libtnet.so" | awk '{ print $3 }' | grep -cvE '^(tnet_|TNET_1)')" -eq 0 ] ||
    fail "libtnet.so shows more than tnet_*"
if command -v c++ >null; then
    echo '#include "tnet.h"' >include.cc
    c++ -std=c++11 -Wall -Wextra -Werror -I"$root/src/serve" -fsyntax-only include.cc || fail "tnet.h is not for C++"
fi

# nothing is linked that brings threads or a runtime of its own; what is used is loaded then
for file in libtnet.so tnet-train tnet-eval tnet-export tnet-score tnet-data; do
    ldd "$bin/$file" >linked
    ! grep -E 'blas|gfortran|gomp|zmq|stdc\+\+' linked || fail "$file is linked with too much"
done
