#!/bin/sh
# serve.sh - tnet-serve over real sockets: the scores of tnet-score in every text format, limits, slow and broken clients,
# versions that change under load, a Unix socket, and the end by SIGTERM. serve.py is the client.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kit"
[ -x "$bin/tnet-serve" ] || skip "tnet-serve is not built: libmicrohttpd is missing"
python=/usr/bin/python3
[ -x "$python" ] || skip "python3 is not installed"
cd "$dir"

# One log in every text format, a model of each, and what tnet-score prints for it.
tnet-data gen -q preset=plain slots=3 ids=20 rows=400 --to rows.csv --format csv --config-to csv.yaml >null
models=
for format in csv tsv jsonl vw libsvm libffm; do
    case $format in
    csv) ;;
    libsvm) tnet-data gen -q preset=plain slots=3 ids=20 rows=400 --to rows.libsvm --format libsvm --config-to libsvm.yaml >null ;;
    *) tnet-data convert -q csv.yaml --to rows.$format --config-to $format.yaml to.format=$format >null ;;
    esac
    tnet-train -q $format.yaml run.dir=run.$format train.epochs=1 train.threads=1 >null 2>&1
    tnet-export -q $format.yaml run.dir=run.$format --to export.$format >null
    tnet-score export.$format --data rows.$format | awk 'NR > 1 { print $5 }' >scores.$format
    [ "$(wc -l <scores.$format)" -eq 400 ] || fail "tnet-score has no scores of $format"
    models="$models $format"
done

# Another version of the model of csv, in the same folder.
tnet-train -q csv.yaml run.dir=run.other train.epochs=2 train.threads=1 >null 2>&1
tnet-export -q csv.yaml run.dir=run.other --to export.csv >second
tnet-score "$(cat second)" --data rows.csv | awk 'NR > 1 { print $5 }' >scores.other
first=$(find export.csv -mindepth 1 -maxdepth 1 ! -name "$(basename "$(cat second)")" -exec basename {} \;)
echo "$first" >export.csv/LATEST

# A model of two tasks.
awk 'BEGIN { print "click,buy,user,item"
    for (i = 0; i < 400; i++) { c = i * 7919 % 10 < 4; print c "," (c && i % 3 == 0) "," i * 31 % 23 "," i * 17 % 29 } }' >rows.tasks
cat >tasks.yaml <<'YAML'
data: {format: csv, train: rows.tasks}
slots: [user, item]
tasks: {click: {label: click}, buy: {label: buy, of: click}}
model: {type: esmm, tower: [8]}
train: {epochs: 1, batch: 50, threads: 1}
YAML
tnet-train -q tasks.yaml run.dir=run.tasks >null 2>&1
tnet-export -q tasks.yaml run.dir=run.tasks --to export.tasks >null
tnet-score export.tasks --data rows.tasks | awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "buy.pctr") at = i; next } { print $5 "\t" $at }' >scores.tasks
[ "$(grep -c '0\..*0\.' scores.tasks)" -eq 400 ] || fail "tnet-score has no scores of tasks: $(head -n 2 scores.tasks)"

# start NAME OPTIONS..: a server in the background; $pid, and $dir/NAME.log says its port.
start() {
    log=$1.log
    shift
    tnet-serve "$@" >null 2>"$log" &
    pid=$!
    children="$children $pid"
    tries=0
    until grep -q '^listening on ' "$log" 2>null; do
        kill -0 $pid 2>null || fail "the server has ended: $(cat "$log")"
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || fail "the server does not listen: $(cat "$log")"
        sleep 0.05
    done
}
# shellcheck disable=SC2120 # see `start`
port() { sed -n 's/^listening on .*:\([0-9]*\),.*/\1/p' "$log"; }
# ends: the server ends by SIGTERM with code 0.
ends() {
    code=0
    wait "$pid" || code=$?
    [ $code -eq 0 ] || fail "the server ended with code $code: $(cat "$log")"
}

# shellcheck disable=SC2046,SC2086 # words
start main $(printf ' export.%s' $models) export.tasks $(printf ' --name=%s' $models) --name tasks --port 0 --host 127.0.0.1 --threads 2 --poll 100ms
# shellcheck disable=SC2086
"$python" "$here/serve.py" scores "$(port)" $models
"$python" "$here/serve.py" tasks "$(port)"
"$python" "$here/serve.py" clients "$(port)"
"$python" "$here/serve.py" swaps "$(port)" "$first" "$(basename "$(cat second)")"
"$python" "$here/serve.py" drains "$(port)" $pid
ends

# A version that answers otherwise than before stays out: by its scores, or since it refuses a request.
start shift export.csv --name ads --port 0 --host 127.0.0.1 --threads 1 --poll 100ms --max-shift 1.0001
echo "$first" >export.csv/LATEST
"$python" "$here/serve.py" shift "$(port)" "$(basename "$(cat second)")" "$log" 'beyond --max-shift 1.0001'
kill -TERM $pid
ends
echo "$first" >export.csv/LATEST
cp -R export.tsv/* export.csv
start schema export.csv --name ads --port 0 --host 127.0.0.1 --threads 1 --poll 100ms
"$python" "$here/serve.py" shift "$(port)" "$(basename export.tsv/*)" "$log" 'a request that was answered is refused'
kill -TERM $pid
ends

# Limits.
start small export.jsonl --name ads --port 0 --host 127.0.0.1 --threads 1 --body-max 2kB --rows-max 5 --queue 1 --read-timeout 700ms \
    --keep-alive 1s --drain 1s
"$python" "$here/serve.py" limits "$(port)"
kill -TERM $pid
ends

# A Unix socket, whose file is replaced when nobody listens there, and goes with the server.
start unix export.jsonl --name ads --unix-socket "$dir/socket" --threads 1
"$python" "$here/serve.py" unix "$dir/socket"
kill -9 $pid
wait $pid 2>null || true
start unix export.jsonl --name ads --unix-socket "$dir/socket" --threads 1
"$python" "$here/serve.py" unix "$dir/socket"
expect 8 tnet-serve export.jsonl --unix-socket "$dir/socket"
says "cannot listen at"
kill -TERM $pid
ends
[ ! -e socket ] || fail "the socket was left behind"

# What platforms say, and limits of files that are too low for the connections.
expect 3 sh -c 'ulimit -n 300; exec tnet-serve export.jsonl --port 0'
says "1024 connections"
expect 2 tnet-serve
says "no export is named"
expect 5 tnet-serve nowhere
expect 2 tnet-serve export.csv export.jsonl --name x --name x
says "two models are called 'x'"
PORT=0 AIP_PREDICT_ROUTE=/vertex start vertex serve --model_dir=export.jsonl --model_name=ads --threads 1
"$python" "$here/serve.py" vertex "$(port)"
kill -TERM $pid
ends
echo "$name: all answered"
