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
train: {batch: 256, threads: 2}
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
    ! grep -E 'blas|gfortran|gomp|dnnl|zmq|stdc\+\+' linked || fail "$file is linked with too much"
done
