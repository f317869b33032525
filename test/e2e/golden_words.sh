#!/bin/sh
# golden_words.sh - what a new user reads: each file of golden-words/ holds a command, its exit code and
# all that it says, of the commonest mistakes, of a run that goes well, and of `make run`.
#
#     test/e2e/golden_words.sh                compares; a difference is shown as a diff
#     test/e2e/golden_words.sh --write        renews the files; read the diff before it is committed
#     echo '$ COMMAND' > test/e2e/golden-words/NAME, then --write: one more
#
# Commands run in copies of one folder (see below). Numbers with a point, rates and names that differ
# from machine to machine are masked by N.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kit"
root=$(pwd)
base=$dir/base
mkdir "$base" "$dir/words"
cd "$base"

# A small log, a configuration, and a run that is finished.
tnet-data gen -q preset=plain slots=3 ids=20 rows=300 --to rows.csv --format csv --config-to generated.yaml >"$dir/null"
tnet-data gen -q preset=plain slots=3 ids=20 rows=300 first_row=300 --to other.csv --format csv --config-to other.yaml >"$dir/null"
rm -f other.yaml other.csv.truth.json
{
    sed 's/model:/run: {name: done}\n&/' generated.yaml
    echo "train: {epochs: 1, batch: 100, threads: 1, shuffle: 0}"
} | sed 's/, shuffle: 0//' >clicks.yaml
printf 'data: {format: csv, train: rows.csv}\nmodel: lr\n' >noslots.yaml
sed 's/^model:/modle:/' clicks.yaml >typo.yaml
printf 'data:\n\tformat: csv\n' >tab.yaml
cat >many.yaml <<'END'
data: {format: cvs, train: rows.csv}
slots: [s0, {name: s1, tpye: str}]
model: {type: deepfm, hiden: [8]}
train: {epochs: x, batch: -3}
eval: {metrics: [auk]}
END
cat >graph.yaml <<'END'
include: [clicks.yaml]
model:
  type: graph
  inputs: {left: {embed: [s0, s1]}, right: {embed: [s1, s2]}}
  layers: [{name: logit, dense: [left, right], units: 1}]
  output: logit
END
: >empty.csv
mkdir folder
sed '7s/,[0-9]*,/,4x2,/' rows.csv >badnumber.csv
sed '7s/^[01]/maybe/' rows.csv >badlabel.csv
sed '7s/$/,9/' rows.csv >wide.csv
awk 'NR > 1 { print "1 3:1 5:1" }' rows.csv >rows.libsvm
ln -s "$root/configs" "$root/datasets" .
# What CMake and Ninja print into a pipe; FAILS: how far they come.
ln -s "$root/.ci" ci
mkdir fake
cat >fake/cmake <<'END'
#!/bin/sh
[ "$1" = --build ] || exit 0
awk -v fails="${FAILS:-101}" 'BEGIN {
    for (i = 0; i < 300 && i / 3 < fails; i++) printf "[%3d%%] Building C object %d.o\n", (i + 1) / 3, i
    if (i < 300) print "FAILED: x.o\nx.c:1:1: error: expected a declaration\nninja: build stopped: subcommand failed."
    exit i < 300
}'
END
chmod +x fake/cmake
tnet-train -q clicks.yaml >"$dir/null"

mask() {
    sed -E -e "s,$dir/[a-z]*,DIR,g" -e '/^epoch [0-9]/d' -e '/^(asked|heard)/d' \
        -e 's/^rows .* % of .*/rows   N of this machine/' -e 's/[0-9]+(\.[0-9]+)?[kM]? ?rows\/s/N rows\/s/g' -e 's/[0-9a-f]{32}/ID/g' \
        -e 's/-?[0-9]+\.[0-9]+(e-?[0-9]+)?/N/g' -e 's/[0-9]+ (kB|MB)/N MB/g' -e 's/N kB/N MB/g' -e 's/ in [0-9]:[0-9:]+,/ in N s,/'
}

bad=0
n=0
for file in "$here"/golden-words/*; do
    case_name=$(basename "$file")
    command=$(sed -n '1s/^\$ //p' "$file")
    [ -n "$command" ] || fail "$file does not begin with '\$ COMMAND'"
    cp -R "$base" "$dir/case"
    code=0
    (cd "$dir/case" && ROWS=3000 TNET_BIN="$bin" sh -c "$command") >"$dir/said" 2>&1 </dev/null || code=$?
    {
        echo "\$ $command"
        echo "exit code $code"
        mask <"$dir/said"
    } >"$dir/words/$case_name"
    rm -rf "$dir/case"
    n=$((n + 1))
    if [ "${1:-}" = --write ]; then
        cp "$dir/words/$case_name" "$file"
    elif ! diff -u "$file" "$dir/words/$case_name"; then
        bad=1
    fi
done
[ "$bad" -eq 0 ] || fail "other words than those kept (left); where they are better: $0 --write"
echo "$name: $n texts"
