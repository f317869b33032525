#!/bin/sh
# overrides.sh - every kind of value can be set on the command line, whatever the file says, and what
# --print-config shows of it is the same configuration again.
. "$(dirname "$0")/kit"
configs=$(pwd)/configs
clicks "$dir/train.tsv" 200 0
cd "$dir"

# takes CONFIG WORDS..: accepted, a batch can be read, and printed and read again it is the same.
takes() {
    yaml=$configs/$1.yaml
    shift
    expect 0 tnet-train "$yaml" data.train=train.tsv data.valid=~ data.test=~ "$@" --print-config
    cp out printed.yaml
    expect 0 tnet-train printed.yaml --print-config
    sed 's/ *#.*//' printed.yaml >one
    sed 's/ *#.*//' out >two
    cmp one two || fail "another configuration after: $*"
    expect 0 tnet-train printed.yaml --dry-run
}

# a configuration may come from a pipe
expect 0 tnet-train "$configs/widedeep.yaml" --print-config
cp out plain.yaml
expect 0 sh -c "tnet-train - --print-config <plain.yaml"
expect 0 sh -c "cat plain.yaml | tnet-train - --print-config"
grep -q 'hidden: \[128, 64, 32\] *# /dev/stdin:' out || fail "not what was piped: $(cat out)"

# shows TEXT: printed.yaml has this.
shows() {
    grep -qE -- "$1" printed.yaml || fail "no '$1' in: $(cat printed.yaml)"
}

# --- another type of a rule begins it anew ---
takes widedeep train.sparse.type=ftrl
takes widedeep train.sparse.wide.type=ftrl
takes widedeep train.sparse.deep=adagrad
takes widedeep train.sparse.wide.alpha=0.25 train.sparse.wide.type=ftrl
shows 'alpha: 0.25'
takes lr-ftrl train.sparse.wide=adam
takes widedeep 'train.sparse={wide: {type: ftrl}, deep: {type: group_ftrl}}'
for rule in $(tnet-train --list-optimizers | sed -n 's/^\([a-z_][a-z_]*\) .*/\1/p'); do
    takes deepfm "train.sparse.type=$rule"
    case $rule in
    group_ftrl | adagrad_decay) ;;
    *) takes deepfm "train.optimizer.type=$rule" ;;
    esac
done
takes widedeep train.optimizer.schedule=cosine train.optimizer.schedule.warmup=5
takes widedeep train.optimizer.schedule.warmup=5 train.optimizer.schedule.type=linear
takes widedeep slots.C1.optimizer=ftrl slots.C1.optimizer.alpha=0.5
takes widedeep train.optimizer.lr=3 train.optimizer.type=sgd
shows 'lr: 3 +# command line'

# --- every kind ---
takes widedeep model.type=deepfm
shows 'hidden: \[128, 64, 32\]'
takes widedeep 'model.hidden=[8]' model.hidden= train.epochs=2 'eval.metrics=[auc]' eval.metrics=logloss
takes widedeep 'slots.C1={dim: 4}' slots.C2.dim=2 'slots.I{1..3}.dim=1' train.max_steps=~
takes widedeep 'embedding.init={normal: [0, 0.1]}' 'embedding.init.uniform=[-1, 1]'
takes widedeep data.shuffle=64k train.max_time=2h30m 'run.name=a name with ä' log.level=debug
takes widedeep 'data={format: criteo, train: train.tsv, bad_records_max: 5%}' data.trim=yes
