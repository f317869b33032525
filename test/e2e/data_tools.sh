#!/bin/sh
# The data tools as a user meets them: generate, describe, convert there and back, sample, check.
set -eu
data=${TNET_BIN:?}/tnet-data
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "data_tools: $1" >&2
    exit 1
}
# expect CODE WORDS.. : the exit code must be CODE
expect() {
    want=$1
    shift
    got=0
    "$@" >"$dir/out" 2>"$dir/err" || got=$?
    [ "$got" -eq "$want" ] || fail "exit code $got, expected $want, of: $*: $(cat "$dir/err")"
}

# help goes to stdout with code 0, for the program and for each tool
for tool in "" gen convert check stat sample lifecycle; do
    expect 0 "$data" $tool --help
    grep -q '^usage: tnet-data' "$dir/out" || fail "no help for '$tool'"
    [ ! -s "$dir/err" ] || fail "help of '$tool' is not silent on stderr"
done

# usage
expect 2 "$data"
expect 2 "$data" chek
grep -q "did you mean 'check'" "$dir/err" || fail "no suggestion for a tool"
expect 2 "$data" gen --tp x
grep -q "did you mean '--to'" "$dir/err" || fail "no suggestion for an option"
expect 2 "$data" gen
expect 2 "$data" sample --from x format=libsvm
expect 3 "$data" gen --to "$dir/x" modle=lr
grep -q "did you mean 'model'" "$dir/err" || fail "no suggestion for a key"
expect 2 "$data" gen --to "$dir/x" preset=criteo ids=5
expect 3 "$data" check --from x format=libsmv
expect 4 "$data" check --from "$dir/absent" format=libsvm

# options may stand in front of the tool's word
expect 0 "$data" -q --version gen
grep -q '^tnet-data gen ' "$dir/out" || fail "another tool answers: $(cat "$dir/out")"
expect 2 "$data" -q gen
grep -q "'--to PATH'" "$dir/err" || fail "-q gen: $(cat "$dir/err")"
expect 2 "$data" -q

# one world, on one thread and on three, from the start and from the middle
expect 0 "$data" gen --to "$dir/a.csv" --format csv rows=4000 model=fm multi=2 numeric=1 missing=0.1
expect 0 "$data" gen --to "$dir/b.csv" --format csv rows=4000 model=fm multi=2 numeric=1 missing=0.1 --threads 1
cmp "$dir/a.csv" "$dir/b.csv" || fail "threads show in generated rows"
# The same again replaces the rows and says so; a configuration that was edited stays.
expect 0 "$data" gen --to "$dir/b.csv" --format csv rows=4000 model=fm multi=2 numeric=1 missing=0.1
grep -qF "replaced '$dir/b.csv'" "$dir/err" || fail "rows were replaced without a word: $(cat "$dir/err")"
expect 0 "$data" gen --to "$dir/b.csv" --format csv rows=4000 model=fm multi=2 numeric=1 missing=0.1 -q
[ ! -s "$dir/out" ] || fail "-q prints: $(cat "$dir/out")"
echo '# mine' >>"$dir/b.csv.yaml"
cp "$dir/b.csv.yaml" "$dir/mine"
cp "$dir/b.csv" "$dir/rows"
expect 2 "$data" gen --to "$dir/b.csv" --format csv rows=10 model=fm
grep -qF "'$dir/b.csv.yaml' is there already" "$dir/err" || fail "not said: $(cat "$dir/err")"
cmp -s "$dir/mine" "$dir/b.csv.yaml" || fail "an edited configuration was replaced"
cmp -s "$dir/rows" "$dir/b.csv" || fail "rows were made though their configuration stays"
expect 0 "$data" gen --to "$dir/b.csv" --format csv rows=4000 model=fm multi=2 numeric=1 missing=0.1 --force
! grep -q mine "$dir/b.csv.yaml" || fail "--force does not replace"
expect 0 "$data" gen --to "$dir/tail.csv" --format csv rows=1000 first_row=3000 model=fm multi=2 numeric=1 missing=0.1
tail -n 1000 "$dir/a.csv" >"$dir/tail.want"
tail -n 1000 "$dir/tail.csv" >"$dir/tail.got"
cmp "$dir/tail.want" "$dir/tail.got" || fail "a range is not the same rows"
grep -q '"auc_expected":0\.[6-9]' "$dir/a.csv.truth.json" || fail "no oracle beside the rows"

# days: a file each, with its truth; a range of them alone, and all in one file; a configuration of all
days='rows=3000 model=fm drift=.2 days=3'
# shellcheck disable=SC2086
expect 0 "$data" gen --to "$dir/log-{day:%Y%m%d}.csv" --format csv $days --first-day 2026-12-30 --config-to "$dir/log.yaml"
# shellcheck disable=SC2086
expect 0 "$data" gen --to "$dir/by/{day:%F}/part.csv" --truth-to "$dir/true/{day:%F}/t.json" --format csv $days --first-day 2026-12-30
[ -s "$dir/true/2027-01-01/t.json" ] || fail "no folder of the truth of a day"
cmp "$dir/by/2026-12-31/part.csv" "$dir/log-20261231.csv" || fail "another day in a folder of its own"
# shellcheck disable=SC2086
expect 0 "$data" gen --to "$dir/log.csv" --format csv $days
sed 1d "$dir/log.csv" >"$dir/log.want"
for day in 20261230 20261231 20270101; do
    [ "$(wc -l <"$dir/log-$day.csv")" -eq 1001 ] || fail "$day has $(wc -l <"$dir/log-$day.csv") lines"
    sed 1d "$dir/log-$day.csv"
done >"$dir/log.got"
cmp "$dir/log.want" "$dir/log.got" || fail "days are not the rows of the log"
grep -q '"day":"2"' "$dir/log-20270101.csv.truth.json" || fail "$(cat "$dir/log-20270101.csv.truth.json")"
expect 0 "$data" gen --to "$dir/part.csv" --format csv rows=500 first_row=2100 model=fm drift=.2 day_rows=1000
sed -n '2101,2600p' "$dir/log.want" >"$dir/part.want"
sed 1d "$dir/part.csv" >"$dir/part.got"
cmp "$dir/part.want" "$dir/part.got" || fail "a range within a day is not the same rows"
expect 0 "$data" check "$dir/log.yaml"
grep -q '^rows 3000, blank 0, bad 0' "$dir/out" || fail "check of days: $(cat "$dir/out")"
expect 0 "$data" gen --to "$dir/from-{day:%Y%m%d}.csv" --format csv rows=1500 first_row=1500 model=fm drift=.2 day_rows=1000
[ "$(wc -l <"$dir/from-20261102.csv")-$(wc -l <"$dir/from-20261103.csv")" = 501-1001 ] ||
    fail "a range that begins within a day: $(wc -l "$dir"/from-*.csv)"
expect 0 "$data" check "$dir/from-20261102.csv.yaml"
grep -q '^rows 1500, blank 0, bad 0' "$dir/out" || fail "check of a range of days: $(cat "$dir/out")"
expect 2 "$data" gen --to "$dir/log-{day:%Y%m%d}.csv" --format csv rows=3000
expect 2 "$data" gen --to "$dir/log-{day:%F}.csv" --format csv rows=3000 days=3 --first-day 9999-12-30
expect 2 "$data" gen --to "$dir/log-{day:%Y%m%d}{hour:%H}.csv" --format csv rows=3000 days=3
expect 2 "$data" gen --to "$dir/log.csv" --format csv rows=3000 days=3 --first-day 2026-12-30
expect 3 "$data" gen --to "$dir/log-{day:%Y}.csv" --format csv rows=3000 days=3
expect 2 "$data" gen --to "$dir/log-{day:%F}.csv" --format csv rows=3000 days=3 --first-day 2026-12-32

# every written configuration reads its file
expect 0 "$data" check "$dir/a.csv.yaml"
grep -q '^rows 4000, blank 0, bad 0' "$dir/out" || fail "check: $(cat "$dir/out")"

# words mean what they say, or are refused: a bare key is one of `data`, also where a section is called so
head -n 11 "$dir/a.csv" >"$dir/ten.csv"
expect 0 "$data" stat "$dir/a.csv.yaml" train="$dir/ten.csv"
grep -q '^rows 10$' "$dir/out" || fail "train=FILE is not read: $(head -n 1 "$dir/out")"
for word in train.batch=3 train.type=x run.name=x 'model={type: lr}' to.slots.a.type=str to.train.batch=3; do
    expect 3 "$data" stat "$dir/a.csv.yaml" "$word"
    grep -q "'$word' changes nothing here" "$dir/err" || fail "$word: $(cat "$dir/err")"
done

# no rows are no rows
expect 0 "$data" gen --to "$dir/none.csv" --format csv rows=0
[ "$(wc -l <"$dir/none.csv")" -eq 1 ] || fail "rows of rows=0: $(cat "$dir/none.csv")"

# a reader that goes away is a failure with a sentence, not a signal
(
    code=0
    "$data" convert "$dir/a.csv.yaml" to.format=csv --to - 2>"$dir/err" || code=$?
    echo $code >"$dir/code"
) | head -n 1 >"$dir/out"
[ "$(cat "$dir/code")" -eq 8 ] || fail "code $(cat "$dir/code") when nobody reads: $(cat "$dir/err")"
grep -q "cannot write 'stdout': Broken pipe" "$dir/err" || fail "$(cat "$dir/err")"

# a tool that is stopped leaves no half of a file: stopped SIGNAL FILE N WORDS.. : while FILE is written, by the
# N-th write of the tool
stopped() {
    signal=$1
    file=$2
    nth=$3
    shift 3
    mkdir "$dir/stopped"
    TNET_FAIL=io.write#$nth:sleep=60000 "$data" "$@" >"$dir/out" 2>"$dir/err" &
    pid=$!
    until ls "$dir/stopped/$file".*.tmp >"$dir/out" 2>&1; do
        kill -0 $pid || fail "$*: no file is being written: $(cat "$dir/err")"
        sleep 0.01
    done
    kill -"$signal" $pid
    code=0
    wait $pid || code=$?
    [ "$code" -gt 128 ] || fail "$*: code $code after a signal"
    ls "$dir"/stopped/*.tmp >"$dir/out" 2>&1 && fail "$*: a signal leaves $(cat "$dir/out")"
    rm -r "$dir/stopped"
}
to=$dir/stopped/x
stopped TERM x 1 gen --to "$to" rows=1000000000 --format csv
stopped HUP x 1 gen --to "$to" rows=1000000000 --format csv
stopped TERM x.truth.json 2 gen --to "$to" rows=10
stopped TERM x.yaml 3 gen --to "$to" rows=10
stopped TERM x 1 sample "$dir/a.csv.yaml" --rows 50 --to "$to"
stopped TERM x 1 convert "$dir/a.csv.yaml" to.format=tsv --to "$to"
stopped TERM x.yaml 2 convert "$dir/a.csv.yaml" train="$dir/ten.csv" to.format=tsv --to "$to" --config-to "$to.yaml"

# there and back, through all formats that can say it
from=$dir/a.csv.yaml
for step in tfrecord:1 tsv:2 csv:3; do
    expect 0 "$data" convert "$from" "to.format=${step%:*}" --to "$dir/hop${step#*:}" \
        --config-to "$dir/hop${step#*:}.yaml"
    from=$dir/hop${step#*:}.yaml
done
cmp "$dir/a.csv" "$dir/hop3" || fail "rows changed on their way through tfrecord and tsv"

# blocks of crb, and what reads them; no compression around them, whatever the name says
printf '1 3:0.5 4:1\n0:2 5:1\n' >"$dir/svm"
printf '1 0:4:1 3:7:1\n0 1:5:-2\n' >"$dir/k.in"
printf 'data: {format: libffm, train: %s}\nslots: [{name: a, field: 0}, {name: b, field: 1}, {name: c, field: 3}]\n' "$dir/k.in" >"$dir/k.yaml"
expect 0 "$data" convert --from "$dir/svm" format=libsvm to.format=crb --to "$dir/svm.gz" --config-to "$dir/crb.yaml"
expect 0 "$data" convert "$dir/crb.yaml" to.format=libsvm --to "$dir/svm.back"
cmp "$dir/svm" "$dir/svm.back" || fail "rows changed on their way through crb"
expect 0 "$data" sample "$dir/crb.yaml" --rows 1 --to "$dir/one.crb"
grep -qx 'rows 1 of 2' "$dir/out" || fail "sample: $(cat "$dir/out")"
expect 0 "$data" convert "$dir/crb.yaml" --from "$dir/one.crb" to.format=libsvm --to "$dir/one"
expect 0 "$data" sample --from "$dir/svm" format=libsvm --rows 1 --to "$dir/one.svm"
cmp "$dir/one" "$dir/one.svm" || fail "a sample of crb holds another row"
expect 3 "$data" convert --from "$dir/svm" format=libsvm to.format=crb to.compression=gzip --to "$dir/none"
grep -q "files of format 'crb' are compressed within" "$dir/err" || fail "$(cat "$dir/err")"
[ ! -e "$dir/none" ] || fail "a refused conversion left a file"
expect 0 "$data" convert "$dir/k.yaml" to.format=crb to.slot_bits='low 2' --to "$dir/k.crb" --config-to "$dir/k.crb.yaml"
expect 0 "$data" convert "$dir/k.crb.yaml" to.format=libffm --to "$dir/k.back"
cmp "$dir/k.in" "$dir/k.back" || fail "rows changed on their way through fields of crb"
printf '1 0:4:1 3:3221225477:1\n0 1:1073741829:-2\n' >"$dir/k.in" # fields in the high bits of 4 bytes
expect 0 "$data" convert "$dir/k.yaml" to.format=crb to.slot_bits='high 2' --to "$dir/k4.crb" --config-to "$dir/k4.crb.yaml"
expect 0 "$data" convert "$dir/k4.crb.yaml" to.format=crb to.slot_bits='high 2' --to "$dir/k5.crb" --config-to "$dir/k5.crb.yaml"
expect 0 "$data" convert "$dir/k5.crb.yaml" to.format=libffm --to "$dir/k.back"
cmp "$dir/k.in" "$dir/k.back" || fail "rows changed on their way through short indices of crb"

# signs instead of words; compression by name
expect 0 "$data" gen --to "$dir/c.tsv" preset=criteo rows=500
expect 3 "$data" convert "$dir/c.tsv.yaml" to.format=libffm --to "$dir/c.ffm"
grep -q -e "--signs" "$dir/err" || fail "no hint at --signs"
expect 0 "$data" convert "$dir/c.tsv.yaml" to.format=libffm --signs --to "$dir/c.ffm.gz" --config-to "$dir/c.yaml"
expect 0 "$data" stat "$dir/c.yaml" --json
grep -q '"rows":"500"' "$dir/out" || fail "stat: $(cat "$dir/out")"
expect 0 "$data" stat "$dir/c.tsv.yaml" --quantiles I5 --parts 4
[ "$(wc -l <"$dir/out")" -eq 3 ] || fail "three bounds make four parts"

# pipes
printf '1 3:0.5 4\n0 5\n' |
    "$data" convert --from - format=libsvm to.format=libsvm --to - >"$dir/pipe" 2>"$dir/err"
printf '1 3:0.5 4:1\n0 5:1\n' | cmp - "$dir/pipe" || fail "a pipe changed rows"

# samples are lines of the file
expect 0 "$data" sample "$dir/a.csv.yaml" --rows 50 --to "$dir/some.csv"
[ "$(wc -l <"$dir/some.csv")" -eq 51 ] || fail "a header and 50 rows"
[ "$(grep -c -x -F -f "$dir/some.csv" "$dir/a.csv")" -ge 51 ] || fail "a sample holds other lines"

# faults: all of them, with their places, and code 4
printf '1 2\n1 x\n0 3:z\n' >"$dir/bad"
expect 4 "$data" check --from "$dir/bad" format=libsvm
[ "$(grep -c 'bad:[23]:.*error: ' "$dir/out")" -eq 2 ] || fail "check: $(cat "$dir/out")"
grep -q '^rows 1, blank 0, bad 2' "$dir/out" || fail "check: $(cat "$dir/out")"
expect 4 "$data" convert --from "$dir/bad" format=libsvm to.format=libsvm --to "$dir/none"
[ ! -e "$dir/none" ] || fail "a failed conversion left a file"

exit 0
