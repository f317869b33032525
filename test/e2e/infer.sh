#!/bin/sh
# infer.sh - tnet-data infer writes a configuration that trains as it is, for every format; check and stat need none.
. "$(dirname "$0")/kit"
cd "$dir"

# has TEXT: the last configuration has this line.
has() {
    grep -qF -- "$1" "$dir/i.yaml" || fail "no '$1' in: $(cat "$dir/i.yaml")"
}

# learns WORDS..: what infer writes for them is the same twice, and tnet-train takes it.
learns() {
    rm -f i.yaml
    expect 0 tnet-data infer "$@" --to i.yaml
    expect 0 tnet-data infer "$@" --threads 1
    cmp -s out i.yaml || fail "infer $*: not the same twice"
    expect 0 tnet-train -q i.yaml run.dir="run.$made" checkpoint.every=never log.progress=false train.epochs=1
    made=$((made + 1))
}
made=0

for format in csv tsv tfrecord libffm libsvm; do
    expect 0 tnet-data gen --to "a.$format" --format "$format" rows=2000 slots=3 ids=300 multi=1 numeric=1
done
expect 0 tnet-data convert a.csv.yaml to.format=jsonl --to a.jsonl

# By their first bytes alone, whatever they are called.
for format in csv tfrecord libffm libsvm jsonl; do
    cp "a.$format" data
    learns data
    has "format: $format"
done
learns a.csv
has 'label: label'
has '{name: s0, type: id}'
has '{name: s2, type: id, list: "|"}'
has '{name: x0, type: float}'
learns a.tfrecord
has '{name: s2, type: id}'
has '{name: x0, type: float}'

# Without a header columns are numbered, and nothing is called label.
expect 4 tnet-data infer a.tsv
says "no column of two values is called label"
grep -qF "'label=NAME' names it" err || fail "no hint"
grep -qF "of two values: 'c1'" err || fail "no candidates"
learns a.tsv label=c1
has 'columns: [c1, c2, c3, c4, c5]'
printf '0\t5\t5\n1\t5\t6\n1\t6\t5\n' >same.tsv # equal fields are columns each
learns same.tsv label=c1
has 'columns: [c1, c2, c3]'
gzip -c a.csv >a.csv.gz
learns a.csv.gz

# Words, blanks, quotes, gaps, ids of rows, and what says nothing.
awk 'BEGIN {
    print "age, workclass, hash, \"hours, per week\", price, row, same, user_id, empty, income"
    for (i = 0; i < 3000; i++)
        printf "%d, %s, %08x, %s, %.2f, r%d, x, %d, , %s\n", 20 + i % 40, i % 7 ? "Private" : "",
            4000000000 - i % 50 * 7919, i % 3 ? "\"40, or so\"" : "20", i % 1009 / 7 + .5, i, i % 2000, i % 4 ? "<=50K" : ">50K"
}' >adult.csv
expect 4 tnet-data infer adult.csv
grep -qF "'income'" err || fail "income is no candidate"
learns adult.csv label=income
has 'trim: true'
has 'label: {column: income, values: {">50K": 1, "<=50K": 0}}'
has 'record_id: row'
has "# left out: 'row' has another value in every row"
has "# left out: 'same' has one value in all rows"
has "# left out: 'empty' has no values"
has '{name: age, type: id}'
has '{name: workclass, type: str}  # 1 different, 85.7% filled'
has '{name: hash, type: hex}'
has '{name: c4_hours__per_week, column: "hours, per week", type: str}'
has '{name: price, type: float}'
has '{name: user_id, type: id}'
! grep -qF 'name: income' i.yaml || fail "the label is a slot"

# One that looks like a label is not enough where there are two; neither is a name without two values.
printf 'y,Click,u\n0,1,3\n1,0,4\n1,1,5\n' >two.csv
expect 4 tnet-data infer two.csv
says "more than one column may be the label"
grep -qF "'y', 'Click'" err || fail "no candidates"
printf 'y,Click,u\n0,1,3\n1,2,4\n1,3,5\n' >one.csv
learns one.csv
has 'label: y'

# What cannot be told is asked for; what is read is not written over.
echo hello >t
expect 4 tnet-data infer t
says "the format of 't' cannot be told by its first bytes"
cp a.csv own.csv
expect 2 tnet-data infer own.csv --to own.csv
cmp -s a.csv own.csv || fail "the data was written over"
expect 2 tnet-data infer a.csv 'slots=[{name: s0}]'
expect 4 tnet-data infer -

# check and stat without slots, and without a configuration.
expect 0 tnet-data stat --from adult.csv
grep -qF "no slots are listed: all 10 columns of 'adult.csv' (csv) are read, without a label" err || fail "not said"
grep -qF 'workclass (str): 85.70% filled, 1 different' out || fail "no workclass in: $(cat out)"
expect 0 tnet-data check --from a.tfrecord
printf 'data: {format: csv, train: a.csv, label: label}\n' >c.yaml
expect 0 tnet-data stat c.yaml
grep -q '^clicks [1-9]' out || fail "the label that is named is not read"
echo 1,2 >>own.csv
expect 4 tnet-data check --from own.csv
grep -qF 'own.csv:2002:4: error: too few fields' out || fail "the fault is not shown: $(cat out)"
