#!/bin/sh
# linear_models.sh - a run begins with a model that VW or xLearn printed, and predicts what they predicted
# (test/golden/linear); features and lines that do not fit are told with file and line.
. "$(dirname "$0")/kit"
golden=$dir/golden
mkdir "$golden"
tar xzf test/golden/linear/models.tar.gz -C "$golden"

# told TEXT: the last command succeeded, and said so on stderr.
told() {
    grep -qF -- "$1" "$dir/err" || fail "no '$1' in: $(cat "$dir/err")"
}

# config FORMAT MODEL: what the next commands use.
config() {
    cat >"$dir/c.yaml" <<END
run: {name: c, dir: $dir/run}
data: {format: $1, train: $golden/rows.${1#lib}, test: $golden/rows.${1#lib}}
model: $2
END
}

# predicts NAME WORDS..: the raw predictions of NAME, to 1e-5.
predicts() {
    pred=$1
    shift
    expect 0 tnet-eval -q "$dir/c.yaml" --predictions "$dir/out.tsv" "$@"
    awk -v want="$golden/$pred.pred" '
        NR > 1 { n++; getline w <want; d = $4 - w; if (d < -1e-5 || d > 1e-5) { print n, $4, w; bad = 1 } }
        END { exit bad || n != 40 }' "$dir/out.tsv" >"$dir/differ" || fail "$pred: $(head -n 3 "$dir/differ")"
}

# ---- the programs' own models ----

config vw '{type: lr}'
predicts vw checkpoint.from="{vw: $golden/vw.txt}"
expect 0 tnet-train "$dir/c.yaml" train.epochs=0 checkpoint.from="{vw: $golden/vw.txt}"
told "begins with the weights of VW's '$golden/vw.txt': 2 taken, 0 new, 0 left"
told "rows       wide                      taken  19 weights; states new"
predicts vw # of the checkpoint
predicts vw --peers 2 run.dir="$dir/unborn" checkpoint.from="{vw: $golden/vw.txt}"
config vw '{type: fm}'
predicts vw-lrq run.dir="$dir/fm" embedding.dim=3 checkpoint.from="{vw: $golden/vw-lrq.txt}"
config libsvm '{type: lr}'
predicts xlearn-lr checkpoint.from="{xlearn: $golden/xlearn-lr.txt}" run.dir="$dir/lr"
config libsvm '{type: fm}'
predicts xlearn-fm embedding.dim=3 checkpoint.from="{xlearn: $golden/xlearn-fm.txt}" run.dir="$dir/fm"
expect 0 tnet-train -q "$dir/c.yaml" train.epochs=0 embedding.dim=3 checkpoint.from="{xlearn: $golden/xlearn-fm.txt}" run.dir="$dir/fm-told"
told "warning: an FM of xLearn that had no --no-norm divides its pairs by the fourth power of a row's norm"
config libffm '{type: ffm, k: 3, within_slot: true}'
predicts xlearn-ffm data.row_norm=true checkpoint.from="{xlearn: $golden/xlearn-ffm.txt}" run.dir="$dir/ffm"
expect 0 tnet-train -q "$dir/c.yaml" train.epochs=0 checkpoint.from="{xlearn: $golden/xlearn-ffm.txt}" run.dir="$dir/ffm-told"
told "warning: an FFM of xLearn that had no --no-norm needs data.row_norm=true"
expect 0 tnet-train -q "$dir/c.yaml" train.epochs=0 data.row_norm=true checkpoint.from="{xlearn: $golden/xlearn-ffm.txt}" run.dir="$dir/ffm-norm"
! grep -q 'xLearn' "$dir/err" || fail "a warning for nothing: $(cat "$dir/err")"
# .. and with one table for all slots
predicts xlearn-ffm data.row_norm=true checkpoint.from="{xlearn: $golden/xlearn-ffm.txt}" run.dir="$dir/ffm" \
    'slots=[{name: a, field: 0, share: all}, {name: b, field: 1, share: all}, {name: c, field: 2, share: all}]'
# fields in another order
predicts xlearn-ffm data.row_norm=true checkpoint.from="{xlearn: $golden/xlearn-ffm.txt}" run.dir="$dir/ffm" \
    'slots=[{name: c, field: 2}, {name: a, field: 0}, {name: b, field: 1}]'

# ---- weights of a linear model in one that has vectors; features that nothing takes ----

config vw '{type: fm}'
expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/deep" train.epochs=0 checkpoint.from="{vw: $golden/vw.txt}"
told "rows       deep                      new    no vectors in the file"
config vw '{type: lr}'
expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/some" train.epochs=0 checkpoint.from="{vw: $golden/vw.txt}" \
    data.unknown_field=ignore 'slots=[{name: user, type: str}, {name: page, type: str}]'
told "taken  13 weights; states new"
told "left   6 weights without a name, or of a feature that no slot takes"
sed 's/^user^frank//; s/^user^dave:/lrq^u^dave^1:/' "$golden/vw.txt" | sed 's/^:672204/672204/' >"$dir/unnamed"
expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/unnamed.run" train.epochs=0 checkpoint.from="{vw: $dir/unnamed}"
told "taken  17 weights; states new"
told "left   2 weights"
grep -v '^Constant' "$golden/vw.txt" >"$dir/constant"
expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/constant.run" train.epochs=0 checkpoint.from="{vw: $dir/constant}"
told "parameter  bias                      new    "
config libsvm '{type: lr}'
expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/base" train.epochs=0 data.index_base=1 \
    data.train="$dir/based" data.test="$dir/based" checkpoint.from="{xlearn: $golden/xlearn-lr.txt}" <<END
$(sed 's/ 0:/ 1:/' "$golden/rows.svm" >"$dir/based")
END
told "taken  13 weights; states new"
told "left   1 weights"

# ---- faults ----

# refuses MODEL CODE WORDS..: as checkpoint.from of a run that then does not begin.
refuses() {
    from=$1
    code=$2
    shift 2
    expect "$code" tnet-train -q "$dir/c.yaml" run.dir="$dir/none" train.epochs=0 checkpoint.from="$from" "$@"
}
# wrong SED MODEL TEXT WORDS..: a golden model that sed has changed is refused with that text, which says "broken" for its name.
wrong() {
    sed "$1" "$golden/$2" >"$dir/broken"
    text=$3
    from="{${2%%[-.]*}: $dir/broken}"
    shift 3
    refuses "$from" 4 "$@"
    says "$text"
}

config vw '{type: lr}'
refuses "{vw: $golden/vw.txt}" 4 'slots=[{name: user, type: str}, {name: page, type: str}]' data.train="$dir/two" <<END
$(sed 's/|tag.*//' "$golden/rows.vw" >"$dir/two")
END
says "vw.txt:31:" # the feature tag^x
says "no slot takes namespace 'tag'"
refuses "{vw: $golden/vw-lrq.txt}" 4
says "vw-lrq.txt:9: error: --lrq of 3 numbers, and 'deep' of lr has 0"
wrong 's/^\(user^dave:[0-9]*\):-[0-9.]*/\1:many/' vw.txt \
    "broken:32: error: expected 'name:index:weight' of VW, found \"user^dave:1856026:many"
wrong 's/^user^dave:1856026/user^a|b:1856026/' vw.txt \
    "broken:32: error: expected 'name:index:weight' of VW, found \"user^a|b:1856026"
wrong 's/^options:.*/options: --ftrl --quadratic up/' vw.txt \
    "broken:9: error: expected a linear model of VW, or one of --lrq, found \"--quadratic\""
wrong 's/ --lrq pt3//' vw-lrq.txt "broken:9: error: expected an --lrq for each two of its namespaces, found"
wrong 's/ --lrq pt3/ --lrq pt4/' vw-lrq.txt \
    "broken:9: error: expected --lrq of two namespaces, all of one width, found \"pt4\""
head -c 1000 "$golden/vw.txt" >"$dir/broken"
refuses "{vw: $dir/broken}" 4
says "error: expected the end of the line, found"
head -n 5 "$golden/vw.txt" >"$dir/broken"
refuses "{vw: $dir/broken}" 4
says "broken:5: error: expected ':0' or ':1' behind the head"
wrong 's/^[^ :]*^[^:]*://; /^Constant/d' vw.txt "has no weight with a name"
refuses "{vw: $golden/xlearn-lr.txt}" 4
says "xlearn-lr.txt:1: error: expected 'Version ..' of VW, found \"bias: "
refuses "{vw: $dir/absent}" 5
says "checkpoint.from.vw: there is no file '$dir/absent'"
refuses "{vw: $golden/vw.txt, dense: x}" 3
says "checkpoint.from.vw is not {vw: FILE} alone"
refuses "{xlearn: $golden/xlearn-lr.txt}" 3
says "checkpoint.from.xlearn finds the features of xLearn's data, libsvm, and data.format is vw"
config vw '{type: fwfm, linear: per_field}'
refuses "{vw: $golden/vw.txt}" 3
says "a model of VW becomes one with a parameter 'bias', a weight 'wide' per key"

config libsvm '{type: fm}'
refuses "{xlearn: $golden/xlearn-fm.txt}" 4 embedding.dim=4
says "xlearn-fm.txt:16: error: a vector of 3 numbers alone, and 'deep' of fm has 4 for 1 slots"
wrong '1d' xlearn-fm.txt "broken:1: error: expected 'bias: w', found \"i_0\"" embedding.dim=3
wrong 's/^i_3: .*/i_3: nan/' xlearn-fm.txt "broken:5: error: expected a number, found \"nan\"" embedding.dim=3
wrong 's/^i_3: .*/i_3: 1 2/' xlearn-fm.txt "broken:5: error: expected one number, found \" 1 2\"" embedding.dim=3
wrong '/^i_3: /d' xlearn-fm.txt "broken:5: error: expected the next feature, found \"i_4\"" embedding.dim=3
wrong '/^v_13: /d' xlearn-fm.txt "broken:28: error: expected vector 0 of feature 13, found \"the end\"" embedding.dim=3
wrong '/^i_13: /d' xlearn-fm.txt "broken:28: error: expected the end, found \"v_13\"" embedding.dim=3
wrong 's/^v_3: \([^ ]*\) .*/v_3: \1/' xlearn-fm.txt \
    "broken:19: error: a vector of 1 numbers alone, and 'deep'" embedding.dim=3
wrong 's/^v_3: /v_x: /' xlearn-fm.txt \
    "broken:19: error: expected 'bias: w', 'i_N: w' or 'v_N: w ..' of xLearn, found \"v_x: " embedding.dim=3
printf 'bias: 1' >"$dir/broken"
refuses "{xlearn: $dir/broken}" 4 embedding.dim=3
says "broken:1: error: expected the end of the line"
refuses "{xlearn: $golden/xlearn-ffm.txt}" 4 embedding.dim=3
says "xlearn-ffm.txt:16: error: a vector of 3 numbers for one field, and 'deep' of fm has 3 for 1 slots"
config libsvm '{type: ffm, k: 3}'
ranges='slots=[{name: a, range: [0, 5]}, {name: b, range: [6, 20]}]'
refuses "{xlearn: $golden/xlearn-ffm.txt}" 4 "$ranges"
says "for one field, and 'deep' of ffm has 6 for 2 slots"
refuses "{xlearn: $golden/xlearn-fm.txt}" 4 "$ranges"
says "a vector of 3 numbers alone, and 'deep' of ffm has 6 for 2 slots"
config libffm '{type: fm}'
refuses "{xlearn: $golden/xlearn-ffm.txt}" 4 embedding.dim=9
says "for one field, and 'deep' of fm has 9 for 3 slots"
config libffm '{type: ffm, k: 4}'
refuses "{xlearn: $golden/xlearn-ffm.txt}" 4
says "a vector of 3 numbers for one field, and 'deep' of ffm has 12 for 3 slots"
config libffm '{type: ffm, k: 3}'
wrong '/^v_13_2: /d' xlearn-ffm.txt "broken:56: error: expected vector 2 of feature 13, found \"the end\""
wrong '/^v_3_1: /d' xlearn-ffm.txt "error: expected vector 1 of feature 3, found \"v_3_2\""
[ ! -e "$dir/none" ] || [ ! -e "$dir/none/ckpt-1" ] || fail "a model at fault left a checkpoint"
