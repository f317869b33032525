#!/bin/sh
# run.sh - soak: one long run over days of ever new ids, whose memory may not grow once its table is full.
#
#     TNET_BIN=build/release test/soak/run.sh           40 minutes
#     SOAK_MINUTES=10 SOAK_LIMIT=10 ..                  minutes; growth in percent an hour that fails, 3
#
# Days come as fast as they are learned, on one thread. Each is evaluated, saved and published; rows leave after two
# days, and at the cap. Every two seconds the memory of the process is written down: seconds, then kB in all, of the
# heap and other private pages, of files, of huge pages, then threads and descriptors. A fifth of the time warms up; the
# lower quartile of the second fifth is compared with that of the last, and so are the most threads and descriptors. A huge
# page is 2 %, and a histogram of scores takes another when the first score beyond 8 is met, up to 8 of them; here rates are low.
# SOAK_KEEP=FILE keeps what was written down. Linux alone; nothing of the gates.
. "$(dirname "$0")/../e2e/kit"
name=soak
minutes=${SOAK_MINUTES:-40}
limit=${SOAK_LIMIT:-3}
root=$(pwd)
cd "$dir"

# Ten days of 20,000 rows; the users of a day come again after ten days, when all their rows have left.
awk 'BEGIN {
    srand(7)
    for (d = 0; d < 10; d++) {
        file = "rows-" d ".csv"
        print "label,user,item,price" >file
        for (i = 0; i < 20000; i++) {
            item = int(exp(rand() * log(3000)))
            printf "%d,%d,%d,%.2f\n", rand() < .05 + .4 * (item % 7 == 0), d * 1000000 + int(rand() * 15000), item, 100 * rand() >file
        }
        close(file)
    }
}'
mkdir logs published
day=0
while [ $day -lt 4000 ]; do # ten years are more than any soak learns
    ln "rows-$((day % 10)).csv" "logs/$(date -u -d "2010-01-01 + $day days" +%Y%m%d).csv"
    day=$((day + 1))
done
cat >soak.yaml <<'CONFIG'
data:
  format: csv
  label: label
  train: logs/{day:%Y%m%d}.csv
  days: 2010-01-01..2020-12-13
  valid: next
  valid_rows: 5000
slots: [{name: user}, {name: item}, {name: price, type: float}]
embedding: {memory: 8MB, on_full: evict, expiry: {ttl_days: 2}}
model: deepfm
train: {batch: 256, threads: 1, optimizer: {type: adam, lr: 1e-4}, sparse: {type: adam, lr: 3e-4}}
export: {to: published, every: day}
run: {dir: run}
log: {progress: false, every: 1s}
CONFIG

tnet-train soak.yaml >out 2>err &
trained=$!
children=$trained
begin=$(date +%s)
now=$begin
while [ $((now - begin)) -lt $((60 * minutes)) ]; do
    sleep 2
    kill -0 "$trained" 2>"$dir/null" || fail "the run has ended: $(tail -n 3 err)"
    now=$(date +%s)
    awk -v t=$((now - begin)) -v fds="$(find /proc/$trained/fd -type l 2>"$dir/null" | wc -l)" '
        /^(Rss|Pss_Anon|Pss_File|AnonHugePages|Threads):/ {v[$1] = $2}
        END {print t, v["Rss:"], v["Pss_Anon:"], v["Pss_File:"], v["AnonHugePages:"], v["Threads:"], fds}' \
        /proc/$trained/smaps_rollup /proc/$trained/status >>samples
    # Nobody serves them. One that is just published loses its name meanwhile.
    find published -mindepth 1 -maxdepth 1 -type d -mmin +2 -exec rm -rf {} + 2>"$dir/null" || true
done
kill -TERM $trained
wait $trained || [ $? -eq 75 ] || fail "$(cat err)"
children=""
[ -z "${SOAK_KEEP:-}" ] || (cd "$root" && cp "$dir/samples" "$SOAK_KEEP")
echo "soak: $(grep -c 'is learned' err) days"

# quartile COLUMN FROM TO: below which a quarter of these samples are: between two saves and exports.
quartile() { sed -n "$2,$3p" samples | cut -d' ' -f"$1" | sort -n | sed -n "$((($3 - $2) / 4 + 1))p"; }
most() { sed -n "$2,$3p" samples | cut -d' ' -f"$1" | sort -n | tail -n 1; }
n=$(wc -l <samples)
before=$(quartile 2 $((n / 5 + 1)) $((2 * n / 5)))
after=$(quartile 2 $((4 * n / 5 + 1)) "$n")
for column in 6 7; do # threads, descriptors
    was=$(most $column 1 $((2 * n / 5)))
    is=$(most $column $((4 * n / 5 + 1)) "$n")
    [ "$is" -le $((was + 2)) ] || fail "column $column of the samples: $was, and $is in the end"
done
awk -v before="$before" -v after="$after" -v limit="$limit" -v minutes="$minutes" 'BEGIN {
    rate = 100 * (after - before) / before / (.6 * minutes / 60)
    printf "soak: %.1f MB, then %.1f MB: %.2f %% an hour\n", before / 1e3, after / 1e3, rate
    exit rate > limit
}' || fail "more than $limit % an hour"
