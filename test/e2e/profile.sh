#!/bin/sh
# profile.sh - `--profile` as a user meets it: a table, a file that viewers read, the same model; and what cannot be written.
. "$(dirname "$0")/kit"
clicks "$dir/clicks.tsv" 3000 0
cat >"$dir/c.yaml" <<END
run: {dir: $dir/run}
data: {format: criteo, train: $dir/clicks.tsv, valid: $dir/clicks.tsv}
embedding: {dim: 4}
model: {type: deepfm, hidden: [16]}
train: {batch: 128, threads: 2, epochs: 2}
log: {progress: false}
END
config=$dir/c.yaml

# the file beside the run, when none is named
expect 0 tnet-train "$config" --profile
for words in '^thread  *phase ' '^main ' ' localize ' ' pull ' '^ *forward ' '^ *evaluate ' '^ *checkpoint ' '^team ' '^read ' '^parse ' \
    '^6000 rows in ' 'of the multiply-add peak' 'the roofline is '; do
    grep -q "$words" "$dir/out" || fail "no '$words' in: $(cat "$dir/out")"
done
[ -s "$dir/run/trace.json" ] || fail "no trace beside the run"

# shares of a thread sum to 100 %, within rounding: a tenth for two lines
awk 'NR > 1 && NF == 0 { exit }
    /^thread/ { at = index($0, "%"); table = 1; next }
    !table { next }
    /^[a-z]/ { if (n > 0 && (sum < 100 - n / 20 || sum > 100 + n / 20)) exit 1; sum = 0; n = 0 }
    { sum += substr($0, at - 6, 7); n++ }
    END { if (n == 0 || sum < 100 - n / 20 || sum > 100 + n / 20) exit 1 }' "$dir/out" ||
    fail "shares do not sum to 100: $(cat "$dir/out")"

# JSON by another reader than ours; complete events that nest, threads with names
if command -v python3 >/dev/null; then
    python3 - "$dir/run/trace.json" <<'END' || fail "the trace is not what viewers read"
import json, sys
events = json.load(open(sys.argv[1]))
names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert {"main", "team", "read", "parse", "batch"} <= set(names.values()), names
open_until, last = {}, {}
for e in events:
    if e["ph"] == "M":
        continue
    assert e["ph"] == "X" and e["tid"] in names and e["args"]["step"] >= 0, e
    begin = round(e["ts"] * 1000)
    end = begin + round(e["dur"] * 1000)
    assert begin >= last.get(e["tid"], 0), e
    stack = open_until.setdefault(e["tid"], [])
    while stack and stack[-1] <= begin:
        stack.pop()
    assert not stack or end <= stack[-1], e
    stack.append(end)
    last[e["tid"]] = begin
assert any(e["name"] == "deep.1" and e["cat"] == "forward" for e in events if e["ph"] == "X")
END
fi

# the same model without; another place for the file
cp "$dir/out" "$dir/with"
expect 0 tnet-train "$config" run.dir="$dir/plain"
head -n "$(wc -l <"$dir/out")" "$dir/with" | cmp - "$dir/out" || fail "recording changes the results"
[ ! -e "$dir/plain/trace.json" ] || fail "a trace that nobody asked for"
expect 0 tnet-train "$config" run.dir="$dir/named" --profile="$dir/t.json"
[ -s "$dir/t.json" ] || fail "no trace in the file that was named"
[ ! -e "$dir/named/trace.json" ] || fail "a second trace"

# 8: a file that cannot be written is said before anything is trained
expect 8 tnet-train "$config" run.dir="$dir/never" --profile="$dir/none/t.json"
says "there is no folder '$dir/none'"
[ ! -e "$dir/never" ] || fail "trained first, looked at the file then"
expect 8 tnet-train "$config" run.dir="$dir/never" --profile="$dir"
says "it is a folder"
# .. and one that turns out so at the end, behind results and model
mkdir "$dir/late"
ln -s none/t.json "$dir/late/trace.json"
expect 8 tnet-train "$config" run.dir="$dir/late" --profile
says "there is no folder '$dir/late/none'"
grep -q '^metric  *valid' "$dir/out" || fail "no results before the failure: $(cat "$dir/out")"
[ -e "$dir/late/ckpt-1" ] || fail "no model is left"

# tnet-eval records what it does, too
expect 0 tnet-eval "$config" --profile="$dir/e.json"
grep -q '^3000 rows in ' "$dir/out" || fail "no totals: $(cat "$dir/out")"
grep -q '"name":"forward"' "$dir/e.json" || fail "no forward in $dir/e.json"
if grep -q '"name":"backward"' "$dir/e.json"; then
    fail "an evaluation that goes backward"
fi
expect 0 tnet-eval "$config" --json --profile="$dir/e.json"
[ "$(grep -c . "$dir/out")" -eq 1 ] || fail "not one JSON object: $(cat "$dir/out")"
grep -q '^thread ' "$dir/err" || fail "no table: $(cat "$dir/err")"
expect 8 tnet-eval "$config" --profile="$dir/none/e.json"
says "there is no folder '$dir/none'"
expect 2 tnet-eval "$config" --export "$dir/x" --profile
says "'--profile' needs a checkpoint"
