#!/bin/sh
# once.sh - by the row policy of the recipe's test, rows of keys that came once leave, in all slots or in one.
# shellcheck source=test/e2e/kit
. "$(dirname "$0")/kit"
cd "$dir"
for day in 1 2 3 4 5; do
    awk -v day=$day 'BEGIN {
        print "y,a,b"
        for (i = 0; i < 200; i++) printf "%d,%s,%s\n", i % 2, day == 1 && i < 100 ? "a" i : "often", day == 1 && i < 100 ? "b" i : "often"
    }' >log-2026110$day.csv
done
cat >run.yaml <<'END'
data: {format: csv, train: 'log-{day:%Y%m%d}.csv', days: 2026-11-01..2026-11-05, label: y}
slots: [{name: a, type: str}, {name: b, type: str}]
model: lr
log: {progress: false}
END
# rows after each day, of all slots
rows_of() { awk -F '"rows":' '/"sweep"/ { print $2 + 0 }' "$1/metrics.jsonl" | paste -s -d ' '; }
sed 's/{name: a,/{name: a, once: 2,/' run.yaml >slot.yaml
expect 0 tnet-train run.yaml run.dir=all embedding.once=2
expect 0 tnet-train slot.yaml run.dir=slot
expect 0 tnet-train run.yaml run.dir=none embedding.once=9
[ "$(rows_of all)" = "202 202 202 2 2" ] || fail "all slots: $(rows_of all)"
[ "$(rows_of slot)" = "202 202 202 102 102" ] || fail "slot a: $(rows_of slot)"
[ "$(rows_of none)" = "202 202 202 202 202" ] || fail "too early: $(rows_of none)"
