#!/bin/sh
# crosses.sh - a slot that is the cross of two: lr learns an exclusive or of their values, of which neither tells anything alone; what
# is exported computes it from the two, in whole rows and in other formats; another cross is another model.
. "$(dirname "$0")/kit"
for part in train test; do
    awk -v part="$part" 'BEGIN { srand(part == "train" ? 1 : 2); print "label,user,item,hour"
        for (i = 0; i < (part == "train" ? 40000 : 20000); i++) { u = int(rand() * 20); t = int(rand() * 20)
            printf "%d,u%d,i%d,%d\n", rand() < ((u + t) % 2 ? .8 : .2), u, t, rand() * 24 } }' >"$dir/$part.csv"
done
cat >"$dir/c.yaml" <<EOF
data: {format: csv, train: $dir/train.csv, test: $dir/test.csv}
slots: [{name: user, type: str}, {name: item, type: str}, {name: both, cross: [user, item]}, {name: hour}]
model: lr
train: {epochs: 3}
run: {dir: $dir/run}
EOF
auc_of() { awk '$1 == "auc" { print $2 }' "$dir/out"; }
expect 0 tnet-train -q "$dir/c.yaml" 'slots=[{name: user, type: str}, {name: item, type: str}, {name: hour}]' run.dir="$dir/alone"
awk -v auc="$(auc_of)" 'BEGIN { exit !(auc > .47 && auc < .53) }' || fail "user and item alone: auc $(auc_of)"
expect 0 tnet-train -q "$dir/c.yaml"
auc=$(auc_of)
# the ceiling on these very rows: scored by their own truth
best=$(awk -F, 'NR > 1 { n[$1 * 2 + (substr($2, 2) + substr($3, 2)) % 2]++ }
    END { printf "%.6f", (n[3] * n[0] + .5 * (n[3] * n[1] + n[2] * n[0])) / (n[3] + n[2]) / (n[1] + n[0]) }' "$dir/test.csv")
awk -v auc="$auc" -v best="$best" 'BEGIN { exit !(auc > best - .002) }' || fail "auc $auc, by the truth $best"

# What is exported reads the two columns and no third.
expect 0 tnet-export -q "$dir/c.yaml" --to "$dir/export"
export=$(tail -n 1 "$dir/out")
expect 0 tnet-eval -q "$dir/c.yaml" --data "$dir/test.csv" --predictions "$dir/p.tsv"
expect 0 tnet-score -q "$export" --data "$dir/test.csv"
cmp -s "$dir/out" "$dir/p.tsv" || fail "tnet-score computes other scores"

# The same as JSON; files have no cross.
expect 0 tnet-data convert "$dir/c.yaml" data.train="$dir/test.csv" --to "$dir/test.jsonl" to.format=jsonl
grep -q both "$dir/test.jsonl" && fail "a cross was written"
expect 0 tnet-score -q "$export" --data "$dir/test.jsonl" data.format=jsonl
cut -f 4,5 "$dir/out" >"$dir/json"
cut -f 4,5 "$dir/p.tsv" | cmp -s - "$dir/json" || fail "another format has other crosses"

# It matters, and its slots alone do not.
expect 0 tnet-eval -q "$dir/c.yaml" --data "$dir/test.csv" --importance 1
awk '$1 == "both" { cross = $2 > .25 } $1 == "user" || $1 == "item" { bad += $2 > .01 || $2 < -.01 } END { exit !cross || bad }' "$dir/out" ||
    fail "another importance: $(cat "$dir/out")"

# Its slots, in their order, are a part of its keys.
expect 3 tnet-eval "$dir/c.yaml" --data "$dir/test.csv" slots.both.cross='[item, user]'
grep -q 'slots.both.cross' "$dir/err" || fail "not said what differs: $(cat "$dir/err")"
echo "crosses: auc $auc of $best"
