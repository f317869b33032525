#!/bin/sh
# configs.sh - S2: every configuration of configs/ trains and learns; what a program prints about itself
# (--print-config, --print-graph) makes the same run again, bit by bit; asking changes nothing.
. "$(dirname "$0")/kit"
configs=$(pwd)/configs
data=$(pwd)/data
clicks "$dir/train.tsv" 20000 0
clicks "$dir/test.tsv" 6000 20000
head -n 1500 "$dir/train.tsv" >"$dir/few.tsv" # for claims that have nothing to do with learning
few=$dir/few.tsv
export TNET_FAST=100 # divides the time for which a plan measures steps; it takes 8 of them in any case
mkdir "$dir/empty"
cd "$dir/empty" # whatever is written without being asked for lands here

# lists
for list in models layers ops optimizers formats metrics; do
    expect 0 tnet-train --list-$list
    [ "$(wc -l <"$dir/out")" -ge 5 ] || fail "--list-$list: $(cat "$dir/out")"
done
expect 0 tnet-train --schema
grep -q '"widedeep"' "$dir/out" || fail "--schema knows no models"

# train RUN CONFIG WORDS..: short, on the generated clicks.
train() {
    run=$dir/$1
    config=$2
    shift 2
    rm -rf "$run"
    expect 0 tnet-train -q "$config" run.dir="$run" data.train="$dir/train.tsv" data.valid=~ \
        data.test="$dir/test.tsv" train.batch=128 train.threads=2 checkpoint.keep=1 "$@"
}

# learns N: whether the Nth model is trained until it has learned. Under a sanitizer that takes minutes, so there every third
# model is, from TNET_TEST_ROUNDS on (test/support/rounds.h).
learns() {
    [ -z "${TNET_SANITIZE:-}" ] || [ "${TNET_TEST_ROUNDS:-0}" = all ] || [ $(($1 % 3)) -eq $((${TNET_TEST_ROUNDS:-0} % 3)) ]
}

auc_of() { awk '$1 == "auc" { print $2 }' "$1"; }

hash_of() { sed -n 's/.*"config_hash":"\([0-9a-f]*\)".*/\1/p' "$dir/$1/summary.json"; }

models=0
for config in "$configs"/*.yaml; do
    model=$(basename "$config" .yaml)
    case $model in
    adult* | common | tensornet*) continue ;; # weights and data of their own: warm_start.sh, counts.sh
    histories | din | bst) continue ;;        # likewise: sequences.sh
    esac

    # it learns
    models=$((models + 1))
    if learns $models; then
        train whole "$config"
        auc=$(auc_of "$dir/out")
        echo "configs: $model auc $auc"
        echo "$auc" >>"$dir/aucs"
        awk -v auc="$auc" 'BEGIN { exit !(auc > 0.66 && auc < 0.79) }' || fail "$model: auc $auc"
    fi

    # asking does nothing
    expect 0 tnet-train "$config" data.train="$few" data.valid=~ data.test=~ --dry-run
    expect 0 tnet-train "$config" data.train="$few" train.batch=128 --plan
    expect 0 tnet-train "$config" data.train="$few" train.batch=128 --plan --threads 1000
    grep -q '^foreseen for 1000 processors' "$dir/out" || fail "$model: 1000 threads are not foreseen: $(cat "$dir/out")"
    expect 0 tnet-train "$config" data.train="$few" --dot
    expect 0 tnet-train "$config" --print-config
    cp "$dir/out" "$dir/printed.yaml"
    expect 0 tnet-train "$config" data.train="$few" --print-graph
    { echo "include: [$config]" && cat "$dir/out"; } >"$dir/graph.yaml"
    [ -z "$(ls)" ] || fail "$model: a question left $(ls)"

    # what was printed is the same run
    train short "$config" "data.train=$few" "data.test=$few" train.max_steps=4
    train again "$dir/printed.yaml" "data.train=$few" "data.test=$few" train.max_steps=4
    [ "$(hash_of short)" = "$(hash_of again)" ] || fail "$model: --print-config has another hash"
    same_model "$dir/short" "$dir/again"
    train graph "$dir/graph.yaml" "data.train=$few" "data.test=$few" train.max_steps=4
    same_model "$dir/short" "$dir/graph"
    expect 0 tnet-eval "$dir/graph.yaml" --checkpoint "$dir/short" data.test="$few" data.train="$few"
done
sort -n "$dir/aucs" | sed -n '1p;$p' | tr '\n' ' ' |
    awk '{ exit !($2 - $1 < 0.035) }' || fail "models lie far apart: $(tr '\n' ' ' <"$dir/aucs")"

# Sets that must be fetched first (datasets/*/README.md): some rows of them.
for config in "$configs"/adult*.yaml "$configs"/frappe/*.yaml; do
    model=${config#"$configs"/}
    [ "$model" != frappe/common.yaml ] || continue
    expect 0 tnet-train "$config" --print-config
    set=$data/${model%%[-/.]*}
    [ -e "$set" ] || continue
    zcat "$set/train.csv.gz" | sed -n '1,20001p' >"$dir/train.csv"
    zcat "$set/test.csv.gz" | sed -n '1,3001p' >"$dir/test.csv"
    expect 0 tnet-train -q "$config" run.dir="$dir/real" data.train="$dir/train.csv" data.valid=~ \
        data.test="$dir/test.csv" data.shuffle=20000 train.batch=256 train.max_steps=60 \
        train.stop=~ train.reduce_on_plateau=~ checkpoint.resume=never checkpoint.every=never
    auc=$(auc_of "$dir/out")
    echo "configs: $model auc $auc"
    awk -v auc="$auc" 'BEGIN { exit !(auc > 0.6) }' || fail "$model: auc $auc"
done
