#!/bin/sh
# vectors.sh - slots that are lists of numbers (type: vector): every format gives the same model, exports score it,
# a row of another length is told with its line and slot, and a model that cannot read vectors refuses them.
. "$(dirname "$0")/kit"
cd "$dir"
# rows FROM TO: clicks that depend on a product of two numbers of a vector, which is missing in every 50th row.
rows() {
    awk -v from="$1" -v to="$2" 'BEGIN {
        print "label,u,title,price"
        for (i = from; i <= to; i++) {
            state = (i * 7919) % 10007; a = state / 10007 - .5
            state = (state * 7919 + 13) % 10007; b = state / 10007 - .5
            state = (state * 7919 + 17) % 10007; c = state / 10007 - .5
            printf "%d,%d,%s,%.1f\n", (a * b + c / 20 > 0), i % 17, i % 50 ? sprintf("%.4f|%.4f|%.4f", a, b, c) : "", i % 9
        }
    }'
}
rows 1 4000 >train.csv
rows 4001 5000 >test.csv
cat >c.yaml <<'END'
run: {name: csv}
data: {format: csv, train: train.csv, test: test.csv, list: "|"}
slots: [u, {name: title, type: vector, dim: 3}, {name: price, type: float, as: value}]
embedding: {dim: 4}
model: {type: widedeep, hidden: [16]}
train: {epochs: 8, batch: 50, optimizer: {type: adam, lr: 0.01}}
log: {progress: false}
END

# ---- the same rows in every format that has lists of numbers: the same bits
expect 0 tnet-train -q c.yaml
expect 0 tnet-eval runs/csv --predictions want.tsv
sed -n 's/^auc  *//p' out | awk '$1 < .9 { bad = 1 } END { exit bad || NR != 1 }' || fail "auc: $(cat out)"
same() { # FILE: its scores are those of want.tsv
    cut -f 2- "$1" >got
    cut -f 2- want.tsv | cmp -s - got
}
for format in tsv jsonl tfrecord; do
    case $format in
    tsv) to="to.header=true to.list=|" as="data.header=true" ;;
    *) to="" as="data.list=~" ;;
    esac
    for part in train test; do
        # shellcheck disable=SC2086 # words
        expect 0 tnet-data convert c.yaml data.train=$part.csv to.format=$format $to --to $part.$format
    done
    # shellcheck disable=SC2086 # words
    expect 0 tnet-train -q c.yaml run.name=$format data.format=$format data.train=train.$format data.test=test.$format $as
    expect 0 tnet-eval -q runs/$format --predictions $format.tsv
    same $format.tsv || fail "$format: other scores: $(head -n 3 $format.tsv)"
    # shellcheck disable=SC2086 # words
    expect 0 tnet-data convert c.yaml data.format=$format data.train=test.$format $as to.format=csv "to.list=|" --to back.csv
    expect 0 tnet-eval -q runs/csv --data back.csv --predictions back.tsv
    same back.tsv || fail "$format and back: $(head -n 3 back.csv)"
done
grep -q '"title":\[-*0\.[0-9]*,-*0\.[0-9]*,-*0\.[0-9]*\]' test.jsonl || fail "jsonl: $(head -n 2 test.jsonl)"

# ---- a graph takes them by name; its export scores and fetches the same
cat >graph.yaml <<'END'
include: [c.yaml]
run: {name: graph}
model:
  type: graph
  inputs: {deep: {embed: all}, title: {numeric: [title]}, num: {numeric: [price]}}
  layers:
    - {name: t, dense: title, units: 8, activation: tanh}
    - {name: pair, mul: [t, t]}
    - {name: logit, dense: [deep, num, t, pair], units: 1}
  output: logit
export: {graph: [native, onnx]}
END
expect 0 tnet-train -q graph.yaml
expect 0 tnet-train graph.yaml --dry-run
grep -q '^title  *3  vector  title$' out || fail "dry run: $(cat out)"
for run in csv graph; do
    expect 0 tnet-eval -q runs/$run --predictions want.tsv
    expect 0 tnet-export -q runs/$run --to export-$run
    expect 0 tnet-score "$(cat out)" --data test.csv
    cmp -s want.tsv out || fail "$run: the export scores otherwise: $(head -n 3 out)"
done
grep -qF '{"name":"in.title","cols":3},{"name":"in.num","cols":1,"first":3}' export-graph/*/model.json || fail "model.json: $(cat export-graph/*/model.json)"
grep -aq 'in\.title' export-graph/*/graph.onnx || fail "no vector in graph.onnx"
expect 0 tnet-eval -q runs/graph --fetch in.title
if command -v python3 >/dev/null && python3 -c 'import numpy' 2>null; then
    python3 - <<'END' || fail "fetched numbers are not those of the file"
import csv, numpy
got = numpy.load("fetch.npz")["in.title"]
rows = list(csv.DictReader(open("test.csv")))
want = [[float(x) for x in r["title"].split("|")] if r["title"] else [0, 0, 0] for r in rows]
assert got.shape == (len(rows), 3) and numpy.array_equal(got, numpy.float32(want)), got[:3]
END
fi
expect 0 tnet-eval runs/csv --importance 2
awk '$1 == "title" && $2 > 0.1 { found = 1 } END { exit !found }' out || fail "importance: $(cat out)"

# ---- what is wrong is told
told() { grep -qF -- "$1" err || fail "no '$1' in: $(cat err)"; }
refused() {
    fault=$1
    shift
    expect "$code" tnet-train -q c.yaml run.name=none "$@"
    told "$fault"
}
code=4
for line in '1,1,0.1|0.2,3;2 numbers in slot' '1,1,0.1|0.2|0.3|0.4,3;4 numbers in slot' '1,1,0.1||0.3,3;2 numbers in slot'; do
    printf 'label,u,title,price\n0,1,0.1|0.2|0.3,4\n%s\n' "${line%;*}" >bad.csv
    refused "bad.csv:3:1: error: ${line#*;} 'title', which is a vector of 3" data.train=bad.csv
done
printf 'label,u,title,price\n0,1,0.1|nan|0.3,4\n' >bad.csv
refused "bad.csv:2:9: error: number is not finite" data.train=bad.csv
printf '{"label":0,"u":1,"title":[0.1,0.2,null],"price":1}\n' >bad.jsonl
refused "bad.jsonl:1:1: error: 2 numbers in slot 'title'" data.format=jsonl data.train=bad.jsonl data.list=~
refused "hint: 'list' of slot 'title' is the byte between its numbers" data.list=~
code=3
refused "slot 'title' is a vector: it needs 'dim'" 'slots=[u, {name: title, type: vector}]'
refused "slot 'title' is a vector: it has neither 'as: weighted' nor 'values'" 'slots=[{name: title, type: vector, dim: 3, as: weighted}]'
refused "slot 'title': the model has no numeric input" model=fm 'slots=[u, {name: title, type: vector, dim: 3}]'
printf '1 0:1:1\n' >x.ffm
refused "slot 'title' is a vector, and records of format 'libffm' have none" data.format=libffm data.train=x.ffm data.list=~ \
    'slots=[{name: u, field: 0}, {name: title, type: vector, dim: 3, field: 1}]'
expect 3 tnet-data convert c.yaml data.train=test.csv to.format=vw --to x.vw
told "slot 'title' is a vector, and records of format 'vw' have none"
expect 3 tnet-train -q graph.yaml run.name=none 'model.inputs={deep: {embed: all}, title: {numeric: [title, titel]}}'
told "there is no number or vector 'titel' for input 'title'"
expect 3 tnet-eval -q runs/csv slots.title.dim=2
told "the model differs from that of checkpoint 1"
