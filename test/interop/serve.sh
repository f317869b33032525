#!/bin/sh
# serve.sh - tnet-serve as clients of others see it: tritonclient speaks to /v2, binary and JSON, and promtool reads /metrics,
# each where it can be installed or is.
#
# Packages go into a virtual environment of their own, build/interop.
. "$(dirname "$0")/../e2e/kit"
root=$(pwd)
[ -x "$bin/tnet-serve" ] || skip "tnet-serve is not built: libmicrohttpd is missing"
python=$root/build/interop/bin/python
command -v python3 >"$dir/null" || skip "no python3"
"$python" -c 'import tritonclient.http' 2>"$dir/null" || {
    echo "serve: installing tritonclient into build/interop"
    { python3 -m venv "$root/build/interop" && "$python" -m pip install -q 'tritonclient[http]' numpy; } >"$dir/pip.log" 2>&1 ||
        skip "tritonclient cannot be installed: $(tail -n 1 "$dir/pip.log")"
}
cd "$dir"
tnet-data gen -q preset=plain slots=3 ids=20 rows=400 --to rows.csv --format csv --config-to run.yaml >null
tnet-train -q run.yaml run.dir=run train.epochs=1 >null 2>&1
tnet-export -q run.yaml run.dir=run --to export >null
tnet-score export --data rows.csv | awk 'NR > 1 { print $5 }' >scores
tnet-serve export --name ads --port 0 --host 127.0.0.1 --threads 1 >null 2>log &
pid=$!
children="$children $pid"
tries=0
until grep -q '^listening on ' log 2>null; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || fail "the server does not listen: $(cat log)"
    sleep 0.05
done
port=$(sed -n 's/^listening on .*:\([0-9]*\),.*/\1/p' log)
"$python" "$root/test/interop/serve_check.py" "127.0.0.1:$port" rows.csv scores || fail "tritonclient: see above"
if command -v promtool >null; then
    curl -s "http://127.0.0.1:$port/metrics" | promtool check metrics || fail "promtool refuses /metrics"
    echo "$name: promtool agrees"
fi
echo "$name: tritonclient agrees"
