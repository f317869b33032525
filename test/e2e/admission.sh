#!/bin/sh
# admission.sh - keys that wait, with rows that expire and tables that are full: of every combination a full
# checkpoint and a base with its deltas are the same model, alone and among three peers, who keep the rows that one
# process keeps; a dictionary with its delta is the whole one. Kills and threads change nothing. What an evaluation
# reads is what an export serves. Words that contradict each other are one sentence.
. "$(dirname "$0")/kit"
cd "$dir"
# few keys, and many, which fill a table
expect 0 tnet-data gen --to 'few-{day:%Y%m%d}.ffm' rows=6000 days=4 drift=.3 slots=4 ids=10000 zipf=.7 --config-to few.yaml
expect 0 tnet-data gen --to 'many-{day:%Y%m%d}.ffm' rows=40000 days=4 drift=.3 slots=4 ids=30000 zipf=0 --config-to many.yaml
tail -n 500 few-20261104.ffm >test.ffm
cat >base.yaml <<'END2'
model: {type: deepfm, hidden: [4]}
embedding: {dim: 8}
train: {batch: 100, threads: 2}
checkpoint: {keep: 200}
log: {progress: false}
eval: {calibrate: none}
export: {dict: [tnd, tsv], state: true}
END2

newest() { echo "runs/$1/$(cut -d' ' -f1 "runs/$1/LATEST")"; }

slot=embedding.cvm=false # what combine adds

# exported RUN CHECKPOINT [OPTIONS]: RUN.rows, all rows with their states; *.keys: key, counts and day, and what is there
exported() {
    run=$1
    from=$2
    shift 2
    expect 0 tnet-export -q w.yaml "$slot" --checkpoint "$from" --to "ex/$run" "$@"
    cp out "$run.export"
    tail -n +4 "$(cat out)/dict.tsv" | sort >"$run.rows"
    awk -F '\t' '{print $1, $2, $3, $4, $5, $6 != "", $NF != ""}' "$run.rows" >"$run.keys"
}

# whole OR: how many rows have all segments, or wait
count_rows() { awk '{n[$7]++} END {print n[1] + 0, n[0] + 0}' "$1.keys"; }

combine() { # ADMISSION EXPIRY CAP: w.yaml, $code; how many steps a delta has: some of them an epoch
    code=0
    every=7
    slot=embedding.cvm=false
    log=few
    [ "$3" = none ] || log=many
    {
        printf 'include: [%s.yaml, base.yaml]\nembedding:\n' $log
        case $1 in
        exact) echo '  admission: {threshold: 1}' ;;
        bloom) # of one slot: others fill the table
            echo '  dim: 8'
            slot='slots.s1.admission={threshold: 1, filter: {type: bloom, keys: 60000, error: 0.01}}'
            ;;
        *) echo '  dim: 8' ;;
        esac
        case $2 in
        ttl) echo '  expiry: {ttl_days: 1}' ;;
        score) echo '  expiry: {score_below: 0.12}' ;;
        *) ;;
        esac
        case $3 in
        evict)
            printf '  memory: 6500kB\n  on_full: evict\ntrain: {batch: 200}\n'
            every=15
            ;;
        stop)
            case $1 in # kB, a little more than the first rows of all partitions take
            none) stop=1800 ;;
            exact) stop=2600 ;;
            *) stop=3600 ;;
            esac
            echo "  memory: ${stop}kB"
            code=7
            ;;
        *) echo '  memory: none' ;;
        esac
    } >w.yaml
}

# learn RUN WHOLE [OPTIONS]: RUN with deltas; WHOLE without, which ends with the step at which a full table ended RUN
learn() {
    run=$1
    whole=$2
    shift 2
    expect $code tnet-train -q w.yaml "$slot" run.name="$run" checkpoint.every=1epoch checkpoint.delta_every=${every}steps "$@"
    # of an option that is said twice the last one counts
    if [ $code -eq 7 ]; then
        step=$(grep -o '"step":[0-9]*' "$(newest "$run")/MANIFEST" | head -n 1 | cut -d: -f2)
        expect 0 tnet-train -q w.yaml "$slot" run.name="$whole" checkpoint.every=1epoch "$@" embedding.memory=none train.max_steps="$step"
    else
        expect 0 tnet-train -q w.yaml "$slot" run.name="$whole" checkpoint.every=1epoch "$@"
    fi
}

# ---- words
printf 'include: [few.yaml, base.yaml]\n' >w.yaml
refused() { # TEXT OPTION..
    text=$1
    shift
    expect 3 tnet-train w.yaml "$@"
    grep -qF -- "$text" err || fail "no '$text' in: $(cat err)"
}
refused "'filter: bloom' counts keys that have no row, and with 'uses' every key has one" 'embedding.admission={threshold: 2, filter: bloom, uses: [deep]}'
refused "'filter: bloom' counts to 255, and 'threshold' is larger" 'embedding.admission={threshold: 256, filter: bloom}'
refused "'l1_shrk' asks the weights of inputs that do not wait, and all wait" embedding.admission.l1_shrk=true
refused "'uses' names 'wdie', which is no embedding input of the model" 'embedding.admission={threshold: 2, uses: [wdie]}'
refused "'missing: init' says that they read as they would begin" embedding.admission.threshold=2 embedding.missing=init
refused "slot 's1': admission: one filter counts the keys of all slots" 'embedding.admission={threshold: 2, filter: bloom}' 'slots.s1.admission={filter: {type: bloom, keys: 5000}}'
for text in "'filter: bloom' counts keys that have no row" "'filter: bloom' counts to 255" "'missing: init' says that they read"; do # each
    refused "$text" 'embedding.admission={threshold: 256, filter: bloom, uses: [deep]}' embedding.missing=init
done
refused "slots 's0' and 's1' share vectors, so only one may set admission" slots.s0.share=x slots.s1.share=x slots.s0.admission=2 slots.s1.admission=2
refused "so only one may set decay or expiry" slots.s0.share=x slots.s1.share=x slots.s0.decay=.5 slots.s1.expiry=3
refused "so only one may set optimizer, lr, l2 or init" slots.s0.share=x slots.s1.share=x slots.s0.lr=.5 slots.s1.l2=.1
refused "unknown key 'treshold' (did you mean 'threshold'?)" slots.s1.admission.treshold=2
refused 'is 1.5, not within 0 .. 1' embedding.admission.probability=1.5
expect 0 tnet-train w.yaml --dry-run 'slots.s1.admission={threshold: 2, filter: bloom}'

# ---- killed again and again, with deltas: the files of a run that was not
draw
signals=KILL
for how in '{threshold: 2, probability: 0.5}' '{threshold: 2, uses: [wide]}' '{threshold: 2, filter: {type: bloom, keys: 20000, error: 0.01}}' '{threshold: 2, uses: [deep], l1_shrk: true}'; do
    rm -rf runs ex
    rule='train.sparse.wide={type: ftrl, alpha: 0.1, l1: 0.02}'
    set -- w.yaml "embedding.admission=$how" "$rule" checkpoint.every=20steps checkpoint.delta_every=4steps embedding.expiry.ttl_days=1 \
        train.threads=1
    expect 0 tnet-train -q "$@" run.name=whole train.threads=2
    killed 3 450 tnet-train -q "$@" run.name=cut
    for run in whole cut; do
        expect 0 tnet-export -q w.yaml "embedding.admission=$how" --checkpoint "$(newest $run)" --to "ex/$run" "$rule"
        tail -n +3 "$(cat out)/dict.tsv" >$run.rows
        for file in "$(newest $run)"/admit-*; do
            [ ! -e "$file" ] || cat "$file"
        done | cksum >$run.counts
    done
    cmp whole.rows cut.rows || fail "$how: kills have changed the model"
    cmp whole.counts cut.counts || fail "$how: kills have changed the filter"
    # what waits, or reads as zeros, does so when it is served, and when another run begins with these weights
    whole=$(newest whole)
    expect 0 tnet-eval -q w.yaml "embedding.admission=$how" "$rule" --checkpoint "$whole" --data test.ffm --predictions eval.tsv
    expect 0 tnet-score "$(ls -d ex/whole/*/)" --data test.ffm
    cut -f 5 eval.tsv | paste out - | awk '
        NR > 1 {d = $5 - $6; if (d < -1e-6 || d > 1e-6) bad++} END {exit bad > 0 || NR < 400}' ||
        fail "$how: an export scores otherwise than an evaluation: $(head -n 3 out eval.tsv)"
    expect 0 tnet-train -q w.yaml "embedding.admission=$how" "$rule" run.name=moved checkpoint.from="$whole" train.epochs=0 data.days=~ data.train=test.ffm
    expect 0 tnet-export -q w.yaml "embedding.admission=$how" "$rule" --checkpoint "$(newest moved)" --to ex/moved
    tail -n +3 "$(cat out)/dict.tsv" | cmp - whole.rows || fail "$how: checkpoint.from begins with other rows"
    # (the import said train.epochs=0, which is not for those that go on)
    expect 0 tnet-train -q w.yaml "$rule" run.name=at_once checkpoint.from="$whole" train.epochs=0 data.days=~ data.train=test.ffm
    expect 0 tnet-export -q w.yaml "$rule" --checkpoint "$(newest at_once)" --to ex/at_once
    tail -n +4 "$(cat out)/dict.tsv" >at_once.rows
    [ "$(wc -l <at_once.rows)" -eq $(($(wc -l <whole.rows) - 1)) ] || fail "$how: checkpoint.from loses rows that wait"
    awk -F '\t' '$NF == "" {exit 1}' at_once.rows || fail "$how: a row waits where none may"
done
rm -rf ex

# ---- counts are those of the data, by however many they are learned, and whoever is admitted when
cut -d' ' -f2- few-*.ffm | tr ' ' '\n' | sed 's/.*-2026.*//' | awk -F: '{n[$1 ":" $2]++} END {for (k in n) print n[k]}' | sort -n >want
for peers in 1 3; do
    printf 'include: [few.yaml, base.yaml]\nembedding: {decay: 1, admission: {threshold: 3}}\n' >w.yaml
    expect 0 tnet-train -q w.yaml run.name=counts-$peers --peers $peers
    exported counts-$peers "$(newest counts-$peers)"
    awk '{print $3}' counts-$peers.keys | sort -n | cmp - want || fail "$peers processes count otherwise than the data"
done
cut -d' ' -f1-5 counts-1.keys >one.counts
cut -d' ' -f1-5 counts-3.keys | cmp - one.counts || fail "three processes count otherwise than one"
rm -rf runs ex

# ---- combinations
waited=0
left=0
tried=0
for admission in none exact bloom; do
    for expiry in none ttl score; do
        for cap in none evict stop; do
            what="$admission $expiry $cap"
            case "$what" in # nine of them, each two words once together; COMBINATIONS=all: 27
            'none none none' | 'none ttl evict' | 'none score stop' | 'exact none evict' | 'exact ttl stop' | 'exact score none') ;;
            'bloom none stop' | 'bloom ttl none' | 'bloom score evict') ;;
            *) [ "${COMBINATIONS:-nine}" = all ] || continue ;;
            esac
            tried=$((tried + 1))
            combine $admission $expiry $cap
            rm -rf runs ex
            learn delta full
            case $cap in
            evict) learn peers peers_full --peers 3 embedding.memory=2200kB ;;
            stop) learn peers peers_full --peers 3 embedding.memory=$((stop / 3))kB ;;
            *) learn peers peers_full --peers 3 ;;
            esac
            newest=$(newest delta)
            grep -q '"base":{' "$newest/MANIFEST" || newest="runs/delta/ckpt-$(($(basename "$newest" | tr -dc 0-9) - 1))"
            grep -q '"base":{' "$newest/MANIFEST" || fail "$what: no delta: $(ls runs/delta)"
            exported full "$(newest full)"
            exported delta "$(newest delta)"
            exported peers_full "$(newest peers_full)"
            exported peers "$(newest peers)"
            [ -s full.rows ] || fail "$what: no rows"
            cmp full.rows delta.rows || fail "$what: base and deltas are another model"
            cmp peers_full.rows peers.rows || fail "$what: base and deltas of peers are another model"
            # a cap is each process's own, and the steps of three processes are three times as long
            case $what in
            'none '*' none') cmp full.keys peers.keys || fail "$what: peers keep other rows" ;;
            'exact none none' | 'exact ttl none')
                for run in full peers; do awk '{print $1, $2, $5}' $run.keys >$run.days; done
                cmp full.days peers.days || fail "$what: peers keep other rows"
                ;;
            *) ;;
            esac
            read -r n_whole n_waiting <<END2
$(count_rows full)
END2
            [ "$n_whole" -gt 100 ] || fail "$what: $n_whole whole rows"
            if [ $admission = exact ]; then
                [ "$n_waiting" -gt 100 ] || fail "$what: $n_waiting rows wait"
                waited=$((waited + 1))
            else
                [ "$n_waiting" -eq 0 ] || fail "$what: $n_waiting rows wait"
            fi
            if grep '"kind":"sweep"' runs/full/metrics.jsonl | grep -qE '"(expired|evicted)":[1-9]'; then
                left=$((left + 1))
            elif [ $cap != stop ] && [ "$expiry$cap" != nonenone ]; then
                fail "$what: nothing leaves"
            fi
            # a dictionary of an earlier checkpoint and its delta serve as the whole one
            early=$(find runs/full -maxdepth 1 -name 'ckpt-*' | sort -V | head -n 1)
            if [ $cap != stop ]; then
                expect 0 tnet-export -q w.yaml "$slot" --checkpoint "$early" --to ex/stack export.dict=tnd
                base=$(basename "$(cat out)")
                expect 0 tnet-export -q w.yaml "$slot" --checkpoint "$(newest full)" --to ex/stack --delta-from "$base" export.dict=tnd
                stack=$(cat out)
                expect 0 tnet-score "$stack" --data test.ffm
                cp out stack.scores
                expect 0 tnet-score "$(cat full.export)" --data test.ffm
                cmp out stack.scores || fail "$what: a delta of exports scores otherwise"
                expect 0 tnet-eval -q w.yaml "$slot" --checkpoint "$(newest full)" --data test.ffm --predictions eval.tsv
                cut -f 5 eval.tsv | paste stack.scores - | awk '
                    NR > 1 {d = $5 - $6; if (d < -1e-6 || d > 1e-6) bad++} END {exit bad > 0 || NR < 400}' ||
                    fail "$what: an export scores otherwise than an evaluation: $(head -n 3 out eval.tsv)"
            fi
        done
    done
done
[ $waited -eq $((tried / 3)) ] || fail "$waited combinations with rows that wait"
[ $left -ge $((tried / 2)) ] || fail "rows leave in $left combinations"
