#!/bin/sh
# run.sh - shows that the recipes of docs/extending.md are whole: adds an operator, a layer, a model, a format, an
# optimizer, a loss, a row policy, a metric, a launcher and a part of a run to a copy of the committed tree, each with the files and rows that its recipe names and no
# others, says how many files each touched, and runs the gates and the tests of the lists there.
#
#     test/recipes/run.sh          in build/recipes, some minutes; `make nightly STEPS=recipes`
#
# Files beside this script are what a contributor would write.
# Backquotes in single quotes are those of the pages; our file names hold no spaces.
# shellcheck disable=SC2016,SC2046
set -eu
cd "$(dirname "$0")/../.."
parts=$PWD/test/recipes
copy=$PWD/build/recipes
rm -rf "$copy"
mkdir -p "$copy"
git archive HEAD | tar -x -C "$copy"
cd "$copy"
rm -f test/recipes/*.c test/recipes/quantile.sh
git init -q .
git -c core.safecrlf=false add -A
save() { git -c user.name=recipes -c user.email=recipes@localhost commit -q -m "$1"; }
save begin

# row FILE WORD LINE: LINE behind the last line of FILE that holds WORD
row() {
    at=$(grep -n -- "$2" "$1" | tail -n 1 | cut -d : -f 1)
    [ -n "$at" ] || {
        echo "recipes: $1 holds no '$2'" >&2
        exit 1
    }
    printf '%s\n' "$3" >"$copy/.row"
    sed -i "${at}r $copy/.row" "$1"
    rm "$copy/.row"
}
# done_with WHAT
done_with() {
    git add -A
    printf '%-10s %2d files: %s\n' "$1" "$(git diff --cached --name-only | wc -l)" "$(git diff --cached --name-only | paste -s -d ' ')"
    save "$1"
}

cp "$parts/op_cube.c" src/nn/op/
row src/nn/op/ops.def 'TN_OP(scale)' 'TN_OP(cube)'
row src/extra/onnx/onnx.c '^/\* ---- all of them' '
static void put_cube(tn_onnx *o, const char *out)
{
    const char *x = tn_onnx_in(o, 0);
    (void)tn_onnx_put(o, out, "Mul", IN(tn_onnx_put(o, NULL, "Mul", IN(x, x), NULL), x), NULL);
}'
row src/extra/onnx/onnx.c '{&tn_op_square,' '    {&tn_op_cube, NULL, put_cube},'
row docs/numerics.md '^| scale, add' '| cube | x x x | 3 x x dy |'
done_with operator

cp "$parts/layer_cube.c" src/nn/layer/
row src/nn/layer/layers.def 'TN_LAYER(scale)' 'TN_LAYER(cube)'
row test/models/test_layers.c '{"scale",' '    {"cube", "{name: x, cube: deep}", "cube", 12, 0},'
row docs/models.md '^| `scale` |' '| `cube` | the third power of each number | |'
done_with layer

cp "$parts/model_fnn.c" src/models/
row src/models/models.def 'TN_MODEL(fm)' 'TN_MODEL(fnn)'
row docs/models.md '^| `dcnv2` |' '| `fnn` | an MLP over single weights and vectors |'
sed 's/type: fm\b/type: fnn/' configs/fm.yaml >configs/fnn.yaml
done_with model

mkdir src/extra/words
cp "$parts/format_words.c" "$parts/test_words.c" src/extra/words/
echo 'tnet_extra(words DEPS io KITS io/setup ROWS "io/format/formats.def: TN_FORMAT(words)")' >src/extra/words/extra.cmake
row docs/data.md '^| `tfrecord` |' '| `words` | label word word .. | the first slot |'
done_with format

cp "$parts/optim_lion.c" src/ps/optim/
row src/ps/optim/optims.def 'TN_OPTIM(adamw)' 'TN_OPTIM(lion)'
row docs/numerics.md '^| momentum |' '| lion | m | w -= lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g | lr .001, b1 .9, b2 .99 |'
done_with optimizer

cp "$parts/loss_quantile.c" src/nn/loss/
cp "$parts/quantile.sh" test/e2e/
row src/nn/loss/losses.def 'TN_LOSS(huber)' 'TN_LOSS(quantile)'
row docs/numerics.md '^| `huber` |' '| `quantile` | (1 - q) e above y, -q e below it | 1 - q; -q |'
row docs/training.md '^| `mae`, `huber` |' '| `quantile` | numbers | numbers | of a quantile of them | mae (watched), label_mean, prediction_mean |'
done_with loss

cp "$parts/once.c" src/ps/policy/
cp "$parts/once.sh" test/e2e/
row src/ps/table/row_policies.def 'TN_ROW_POLICY(expiry)' 'TN_ROW_POLICY(once)'
row src/train/config/run.c 'ROW_POLICY(expiry' '    ROW_POLICY(once, "when the row of a key that came once leaves"),'
row src/io/schema/dataopts.h 'const tn_tree \*expiry;' '    const tn_tree *once;'
row src/io/schema/dataopts.c 'as embedding.expiry' '    TN_FIELD_TREE_OF(tn_slot_opts, once, "~", "after_days", "as embedding.once", NOTHING),'
row docs/training.md '  expiry: {ttl_days: 30' '  once: 30'
done_with "row policy"

tail -n +2 "$parts/metric_bias.c" >>src/metrics/mean_metrics.c
row src/metrics/metrics.def 'TN_METRIC(brier' 'TN_METRIC(bias, NEITHER | CLICKS | NUMBERS, "mean of prediction less label")'
row docs/numerics.md '^| accuracy |' '| bias | mean of p - y |'
done_with metric

cp "$parts/launcher_demo.c" src/cluster/launch/
cp "$parts/test_launcher_demo.c" test/cluster/
row src/cluster/launch/launchers.def 'TN_LAUNCHER(slurm)' 'TN_LAUNCHER(demo)'
row docs/cluster.md '^1. Slurm, inside a step' '1. The demo: `DEMO_RANK`, `DEMO_SIZE`'
done_with launcher

mkdir src/extra/webhook
cp "$parts/webhook.c" "$parts/test_webhook.c" src/extra/webhook/
echo 'tnet_extra(webhook DEPS train KITS train/trainrun train/golden train/model_hash
  ROWS "train/run/modules.def: TN_MODULE(webhook)"
  [[train/config/sections.def: TN_SECTION(webhook, "who gets every evaluation")]])' >src/extra/webhook/extra.cmake
done_with "part of a run"

echo "gates"
sed -i 's/ .*/ 1000000/' .ci/budget # of what is no recipe's
clang-format --dry-run --Werror $(git diff --name-only HEAD~10 -- src test | grep '\.[ch]$')
.ci/check-arrows
.ci/check-sizes
.ci/check-writes
.ci/check-headers
cmake --preset strict >/dev/null
cmake --build build/strict -- --quiet
for program in train data eval export score keygen; do
    build/strict/tnet-$program --man >docs/man/tnet-$program.1
done
build/strict/tnet-train --print-config-doc >docs/config.md
TNET_BIN=build/strict test/e2e/golden_words.sh --write >/dev/null # hints list formats and models
ctest --test-dir build/strict --output-on-failure --no-tests=error -j "$(nproc)" \
    -R '^(nn|models|io|dict|extra|ps|metrics|cluster|cli|fuzz)/|^train/run_loss$|^e2e/(docs_true|configs|golden_words|launchers|once|quantile)$' -E 'cluster/hostile|io/data_memory' </dev/null
