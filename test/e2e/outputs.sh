#!/bin/sh
# Outputs as a user names them: streams are written to, links followed, inputs and checkpoints kept.
set -eu
bin=$(cd "${TNET_BIN:?}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() {
    echo "outputs: $1" >&2
    exit 1
}
# expect CODE WORDS.. : the exit code must be CODE
expect() {
    want=$1
    shift
    got=0
    PATH=$bin:$PATH "$@" >out 2>err || got=$?
    [ "$got" -eq "$want" ] || fail "exit code $got, expected $want, of: $*: $(cat err)"
}
# refused PATH WORDS.. : code 2, and the file is as it was
refused() {
    path=$1
    shift
    cp "$path" before
    expect 2 "$@"
    cmp -s before "$path" || fail "$path is not what it was, after: $*"
}

expect 0 tnet-data gen -q --to in.csv --format csv rows=500 slots=2 ids=20
cp in.csv other.csv
cp in.csv.yaml run.yaml
printf 'train: {epochs: 1, threads: 1}\nlog: {progress: false}\n' >>run.yaml
expect 0 tnet-train run.yaml data.train=in.csv data.valid=other.csv
expect 0 tnet-export run.yaml
export=$(cat out)

# --- files for TensorBoard: by default, one more of a run that goes on, kept aside, never in the way ---
events() { find "$1" -name 'events.out.tfevents.*' | wc -l; }
newest() { cksum <"runs/$1/$(cut -d' ' -f1 "runs/$1/LATEST")/$2"; }
expect 0 tnet-train run.yaml data.train=in.csv data.valid=other.csv run.name=board
[ "$(events runs/board/tb/train) $(events runs/board/tb/valid)" = '1 1' ] || fail "event files: $(find runs/board/tb)"
expect 0 tnet-train run.yaml data.train=in.csv data.valid=other.csv run.name=board train.epochs=2
[ "$(events runs/board/tb/train) $(events runs/board/tb/valid)" = '2 2' ] || fail "a run that goes on: $(find runs/board/tb)"
expect 0 tnet-train run.yaml data.train=in.csv data.valid=other.csv run.name=board --fresh
[ "$(events runs/board/tb)" = 2 ] || fail "--fresh leaves curves of before: $(find runs/board/tb)"
[ "$(events runs/board)" = 6 ] || fail "--fresh loses curves: $(find runs/board -name 'events*')"
expect 0 tnet-train run.yaml data.train=in.csv data.valid=other.csv run.name=plain log.tensorboard=false
[ ! -e runs/plain/tb ] || fail "log.tensorboard=false writes event files"
mkdir -p runs/barred
echo kept >runs/barred/tb
expect 0 tnet-train run.yaml data.train=in.csv data.valid=other.csv run.name=barred
[ "$(grep -c 'written for TensorBoard' err)" -eq 1 ] || fail "a folder that cannot be made is told $(grep -c TensorBoard err) times: $(cat err)"
[ "$(cat runs/barred/tb)" = kept ] || fail "a file of the user is gone"
for other in plain barred; do
    [ "$(newest board dense-0000.safetensors)" = "$(newest $other dense-0000.safetensors)" ] || fail "event files change the model of $other"
done
rm -rf runs/board runs/plain runs/barred

# --- what the run reads, by whatever name ---
ln -s in.csv soft.csv
ln in.csv hard.csv
for name in in.csv ./in.csv soft.csv hard.csv; do
    refused in.csv tnet-eval run.yaml --data in.csv --predictions "$name"
    refused in.csv tnet-eval run.yaml --data other.csv data.train=in.csv --report "$name"
    refused in.csv tnet-data sample run.yaml data.train=in.csv --rows 3 --to "$name"
    refused in.csv tnet-data convert run.yaml --from in.csv to.format=tsv --to "$name"
    refused in.csv tnet-data convert run.yaml --from in.csv to.format=tsv --to x --config-to "$name"
done
grep -q "'hard.csv' is 'in.csv', which is read by this run" err || fail "what is refused: $(cat err)"
refused run.yaml tnet-eval run.yaml --data in.csv --report run.yaml
refused run.yaml tnet-eval run.yaml --data in.csv --profile=run.yaml
refused run.yaml tnet-train run.yaml data.train=in.csv run.name=new --profile=run.yaml
refused in.csv tnet-train run.yaml data.train=other.csv data.test=in.csv run.name=new eval.predictions=in.csv
refused other.csv tnet-eval run.yaml --data in.csv --data other.csv data.test=x.csv --predictions other.csv
refused in.csv sh -c 'tnet-data sample run.yaml data.train=in.csv --rows 3 --to - >>in.csv'
[ ! -e runs/new ] || fail "a run began before its outputs were looked at"

# --- checkpoints and exports ---
ckpt=$(ls -d runs/*/ckpt-1)
for output in --predictions --report; do
    refused "$ckpt/MANIFEST" tnet-eval run.yaml --data in.csv $output "$ckpt/MANIFEST"
    expect 2 tnet-eval run.yaml --data in.csv $output "$ckpt/new"
    refused "$export/EXPORT.json" tnet-eval run.yaml --data in.csv $output "$export/EXPORT.json"
done
expect 2 tnet-data gen --to "$export/x.tsv" rows=1
expect 2 tnet-export run.yaml --to "$ckpt/export"

# --- groups beside predictions, words instead of hashes ---
expect 0 tnet-eval run.yaml --data in.csv --predictions grouped.tsv data.group=s0
sed 1d grouped.tsv | cut -f 6 >groups
head -n 1 grouped.tsv | grep -q "$(printf 'pctr\tgroup$')" || fail "no group in the head: $(head -n 1 grouped.tsv)"
sed 1d in.csv | cut -d , -f 2 | cmp - groups || fail "other groups than those of the data"
expect 0 tnet-data gen -q --to films.csv --format csv preset=movies rows=400
expect 0 tnet-train films.csv.yaml train.threads=1 log.progress=false run.name=films
for form in "" --json; do
    expect 0 tnet-eval films.csv.yaml run.name=films --data films.csv 'eval.slices=[device]' --report films.html $form
    grep -q phone out || fail "no word in the slices: $(cat out)"
    grep -q phone films.html || fail "no word in the report"
done

# --- streams ---
mkfifo pipe
cat pipe >by-pipe &
expect 0 tnet-eval run.yaml --data in.csv --predictions pipe
wait $!
[ -p pipe ] || fail "the pipe was replaced"
expect 0 tnet-eval run.yaml --data in.csv --predictions pred.tsv
cmp by-pipe pred.tsv || fail "other predictions through a pipe"
chmod 600 pred.tsv
expect 0 tnet-eval run.yaml --data in.csv --predictions pred.tsv
expect 0 tnet-eval run.yaml --data in.csv --predictions pred.tsv --report report.html
[ "$(stat -c %a pred.tsv)" = 600 ] || fail "private predictions are of mode $(stat -c %a pred.tsv) when they are written anew"
chmod 640 report.html
expect 0 tnet-eval run.yaml --data in.csv --report report.html
[ "$(stat -c %a report.html)" = 640 ] || fail "a report is of mode $(stat -c %a report.html) when it is written anew"
for name in - /dev/stdout; do
    expect 0 tnet-eval run.yaml --data in.csv --predictions $name
    cmp out pred.tsv || fail "$name holds more or less than the predictions"
    grep -q logloss err || fail "no table beside predictions on $name"
done
expect 0 tnet-eval run.yaml --data in.csv --data other.csv --predictions -
[ "$(grep -c '^id' out)" -eq 1 ] || fail "more than one head in a stream"
[ "$(grep -c '^1:' out)" -eq 500 ] || fail "the second file is missing in a stream"
expect 0 tnet-eval run.yaml --data in.csv --predictions /dev/null --report /dev/null
expect 8 tnet-data gen -q --to /dev/full rows=5
grep -q "cannot write '/dev/full': No space left on device" err || fail "$(cat err)"
for device in null full; do
    [ -c /dev/$device ] || fail "/dev/$device was replaced"
done
[ ! -e /dev/full.yaml ] || fail "a file beside a device"

# --- a link stays, and what it names is replaced ---
mkdir far
ln -s far/target link
expect 0 tnet-data gen -q --to link rows=5 --config-to c.yaml --truth-to t.json
[ -L link ] || fail "the link was replaced"
[ "$(wc -l <far/target)" -eq 5 ] || fail "the target of the link: $(cat far/target)"

# --- what a killed writer left goes with the next one; nothing of the user's does ---
tnet=$bin/tnet-data
"$tnet" gen -q --to g.tsv rows=20000000 >out 2>err &
pid=$!
until ls g.tsv.*.tmp >out 2>&1; do
    kill -0 $pid || fail "no file is being written: $(cat err)"
    sleep 0.05
done
echo mine >g.tsv.notes.tmp
expect 0 tnet-data gen -q --to g.tsv rows=5
set -- g.tsv.*.tmp
[ $# -eq 2 ] || fail "the file of a living writer is gone"
kill -KILL $pid
wait $pid || true
expect 0 tnet-data gen -q --to g.tsv rows=5
[ "$(ls g.tsv.*.tmp)" = g.tsv.notes.tmp ] || fail "left: $(ls g.tsv.*.tmp)"
