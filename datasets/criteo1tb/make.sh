#!/bin/bash
# make.sh - data/criteo1tb of Criteo 1TB: links to the days to train on, and the last day halved as in MLPerf, the first
# half to test, the second to validate.
. "$(dirname "$0")/../kit"
takes 1 "the folder of day_0.gz to day_23.gz" "$@"
days=$(cd "$1" && pwd)
[ -r "$days/day_23.gz" ] || fail "cannot read '$days/day_23.gz', which is halved to validate and test"
makes data/criteo1tb test.tsv.gz valid.tsv.gz
rows=$(gzip -dc "$days/day_23.gz" | wc -l)
gzip -dc "$days/day_23.gz" | awk -v half=$((rows / 2)) 'NR <= half' | gzip -n >"$making/test.tsv.gz"
gzip -dc "$days/day_23.gz" | awk -v half=$((rows / 2)) 'NR > half' | gzip -n >"$making/valid.tsv.gz"
for day in "$days"/day_?.gz "$days"/day_1?.gz "$days"/day_2[0-2].gz; do
    [ ! -e "$day" ] || ln -sfn "$day" data/criteo1tb/
done
made
