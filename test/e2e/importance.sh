#!/bin/sh
# importance.sh - tnet-eval --importance: planted slots matter in the order in which they were planted, noise does not; the same
# bits by any number of threads; what it cannot be asked with is refused.
. "$(dirname "$0")/kit"
for seed in 1 2; do
    awk -v seed="$seed" 'BEGIN { srand(seed); print "label,noise,weak,size,strong"
        for (i = 0; i < 12000; i++) { n = int(rand() * 20); w = int(rand() * 20); x = rand(); s = int(rand() * 20)
            z = 2 * (s % 2 * 2 - 1) + .8 * (w % 2 * 2 - 1) + .9 * (x - .5)
            printf "%d,n%d,w%d,%.3f,s%d\n", rand() < 1 / (1 + exp(-z)), n, w, x, s } }' >"$dir/$seed.csv"
done
cat >"$dir/c.yaml" <<EOF
data: {format: csv, train: $dir/1.csv, valid: $dir/2.csv}
slots: [{name: noise, type: str}, {name: weak, type: str}, {name: size, type: float, as: value}, {name: strong, type: str}]
model: lr
train: {epochs: 8}
run: {dir: $dir/run}
EOF
expect 0 tnet-train -q "$dir/c.yaml"
expect 0 tnet-eval -q "$dir/c.yaml" --importance 2
grep -A 4 '^slot  *auc lost  *logloss lost$' "$dir/out" >"$dir/table" || fail "no table: $(cat "$dir/out")"
[ "$(sed 1d "$dir/table" | cut -d' ' -f1 | tr '\n' ' ')" = "strong weak size noise " ] || fail "another order: $(cat "$dir/table")"
awk '$1 == "strong" { bad = !($2 > .15 && $3 > .2) } $1 == "size" { bad += !($2 > .004) }
    $1 == "noise" { bad += $2 > .004 || $2 < -.004 || $3 > .004 || $3 < -.004 } END { exit bad }' "$dir/table" || fail "other losses: $(cat "$dir/table")"

# found FILE WORDS..: the losses as bits
found() {
    file=$1
    shift
    expect 0 tnet-eval -q "$dir/c.yaml" --importance 2 --json "$@"
    grep -o '"importance":\[[^]]*\]' "$dir/out" >"$file" || fail "no importance in $(cat "$dir/out")"
}
found "$dir/two" train.threads=2
found "$dir/one" train.threads=1 data.readers=1
cmp -s "$dir/one" "$dir/two" || fail "one thread finds $(cat "$dir/one"), two $(cat "$dir/two")"
found "$dir/other" run.seed=43
cmp -s "$dir/other" "$dir/two" && fail "another seed deals as this one"
grep -q '^"importance":\[{"slot":"noise",.*{"slot":"strong","auc":0\.[0-9]*,"logloss":0\.[0-9]*}\]$' "$dir/one" || fail "other members: $(cat "$dir/one")"

# Of a model of numbers: metrics that are the smaller the better.
expect 0 tnet-train -q "$dir/c.yaml" run.dir="$dir/mse" loss=mse
expect 0 tnet-eval -q "$dir/c.yaml" run.dir="$dir/mse" loss=mse --importance 1
grep -A 4 '^slot  *rmse lost  *mae lost$' "$dir/out" | sed 1d | cut -d' ' -f1 | head -n 1 | grep -qx strong || fail "rmse: $(cat "$dir/out")"

# Of several labels: the first task's metrics, and no label among the slots.
awk -F, -v OFS=, 'NR == 1 { print $0, "buy" } NR > 1 { print $0, $1 && NR % 3 == 0 ? 1 : 0 }' "$dir/1.csv" >"$dir/tasks.csv"
sed -e "s|$dir/1.csv, valid: $dir/2.csv|$dir/tasks.csv, valid: $dir/tasks.csv|; s|^model: .*|model: {type: esmm, tower: [4]}|; s|/run}|/run-tasks}|" "$dir/c.yaml" >"$dir/t.yaml"
echo 'tasks: {label: {label: label}, buy: {label: buy, of: label}}' >>"$dir/t.yaml"
expect 0 tnet-train -q "$dir/t.yaml"
expect 0 tnet-eval -q "$dir/t.yaml" --importance 1
[ "$(sed -n '/^slot /,$p' "$dir/out" | sed 1d | cut -d' ' -f1 | sort | tr '\n' ' ')" = "noise size strong weak " ] || fail "tasks: $(cat "$dir/out")"

expect 0 tnet-export -q "$dir/c.yaml" --to "$dir/export"
expect 2 tnet-eval "$dir/c.yaml" --importance 1 --export "$dir"/export/*
says "'--importance' does not go together with '--export'"
expect 2 tnet-eval "$dir/c.yaml" --importance 1 --compare "$dir/mse"
says "'--importance' does not go together with '--compare'"
expect 2 tnet-eval "$dir/c.yaml" --importance 1 --peers 2
says "'--importance' does not go together with '--peers'"
expect 2 tnet-eval "$dir/c.yaml" --importance 1 --data -
says "'--importance' reads the data twice"
expect 3 tnet-eval "$dir/c.yaml" --importance 1 data.label=none
says "'--importance' needs labels"
expect 2 tnet-eval "$dir/c.yaml" --importance 101
says "101"
