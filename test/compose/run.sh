#!/bin/sh
# run.sh - composition: configurations that are drawn over all features, each run and judged by what must hold of any.
#
#     TNET_BIN=build/gcc test/compose/run.sh           60 configurations, by the day of the newest commit
#     COMPOSE_RUNS=2000 ..                             as many
#     COMPOSE_SEED=7 ..                                of another seed, which is printed
#     COMPOSE_SEED=7 COMPOSE_INDEX=12 ..               configuration 12 of it alone, in words; its folder is kept
#
# generate.awk draws a configuration from seed and index; rows.awk and `tnet-data gen` make the rows, `tnet-data convert`
# writes them in its format. A judge looks at every configuration to which it applies:
#
#     again      the same command with other threads and readers leaves the same bits, exports and figures
#     killed     so does one that is killed or stopped, at points that the seed chooses, and started again
#     days       so do its days in one command each
#     served     predictions of the checkpoint are those of its export, by tnet-eval and tnet-score
#     deltas     a delta on an older checkpoint's export scores as a full export does
#     published  so does the newest that the run has published
#     meaning    a later command with an option of another meaning is refused with code 3
#     figures    summary.json, metrics.jsonl and the table say the same
#     folder     tnet-eval with nothing but the run folder finds the figures of the end
#     begun      a run that begins with another program's model and learns nothing scores as that model does, exported too
#
# A configuration that the program refuses with code 3 and one sentence is counted, and its sentence told; more than a
# third of them is a fault of generate.awk. What fails is kept in build/compose/SEED-INDEX, and the command that
# replays it is told. What was found and mended stands, reduced, in test/compose/seeds, and is judged in every run.
# shellcheck disable=SC2154 # variables of plan
[ -w /dev/shm ] && export TMPDIR=/dev/shm # thousands of checkpoints
. "$(dirname "$0")/../e2e/kit"
here=$(cd "$(dirname "$0")" && pwd)
root=$(pwd)
day=$(git log -1 --format=%cd --date=format:%Y%m%d 2>/dev/null || date +%Y%m%d) # whoever tests a commit draws the same
seed=${COMPOSE_SEED:-$day}
runs=${COMPOSE_RUNS:-60}
if sanitized && [ -z "${COMPOSE_RUNS:-}" ]; then runs=10; fi # programs are slow then
kept=$root/build/compose

# ---- one configuration, in a process of its own: run.sh one SEED INDEX POOL RESULT ----

keep() {
    rm -rf "$kept/$seed-$index"
    mkdir -p "$kept"
    cp -r "$dir" "$kept/$seed-$index"
}

# broken WORDS: tells what is wrong and how to see it again, and keeps the folder.
broken() {
    keep
    {
        echo "failed $judge"
        echo "compose: seed $seed, index $index, judge '$judge': $*" | cut -c 1-600
        echo "    replay: TNET_BIN=$bin COMPOSE_SEED=$seed COMPOSE_INDEX=$index test/compose/run.sh"
        echo "    kept: $kept/$seed-$index (c.yaml, plan, the runs)"
    } >"$result"
    exit 1
}

# cut FILE FIRST ROWS: these rows of the pool, in the configuration's format.
cut_rows() {
    mkdir -p "$(dirname "$1")"
    case $format in
    criteo) tail -n +$(($2 + 1)) "$pool/criteo.tsv" | head -n "$3" >part ;;
    avazu) { head -n 1 "$pool/avazu.csv" && tail -n +$(($2 + 2)) "$pool/avazu.csv" | head -n "$3"; } >part ;;
    esac
    case $format:$1 in
    criteo:*.gz | avazu:*.gz) gzip -nc part >"$1" ;;
    criteo:* | avazu:*) mv part "$1" ;;
    esac
    case $format in criteo | avazu) return ;; esac
    { head -n 1 "$pool/rows.csv" && tail -n +$(($2 + 2)) "$pool/rows.csv" | head -n "$3"; } >part.csv
    if [ "$1" = "${1%.csv}.csv" ]; then
        mv part.csv "$1"
        return
    fi
    set -- --to "$1"
    [ "$format" != csv ] || set -- "$@" 'to.list="|"'
    [ "$format" != tsv ] || set -- "$@" to.header=true 'to.list="|"'
    expect 0 tnet-data convert -q source.yaml --from part.csv to.format="$format" "$@"
}

# cut_set PREFIX FIRST ROWS: one file, or two.
cut_set() {
    if [ "$two_files" = 1 ]; then
        half=$(($3 / 3))
        cut_rows "$1-0.$ending" "$2" "$half"
        cut_rows "$1-1.$ending" $(($2 + half)) $(($3 - half))
    else
        cut_rows "$1-0.$ending" "$2" "$3"
    fi
}

make_data() {
    if [ "$days" -gt 0 ]; then
        day=0
        while [ $day -le "$days" ]; do # one more, for valid: next
            cut_set "2026110$((day + 1))/part" $((day * rows)) "$rows"
            day=$((day + 1))
        done
    else
        cut_set train 0 "$rows"
    fi
    cut_rows "judge.$ending" 3000 150
    [ "$valid" != files ] || cut_rows "valid.$ending" 2000 400
    [ "$tested" = 0 ] || cut_rows "test.$ending" 2500 300
}

# train RUN WORDS..
train() {
    run=$1
    shift
    tnet-train c.yaml --peers "$peers" run.dir="$run" export.to="$run-published" "$@" >out 2>err
}
newest() { echo "$1/$(cut -d' ' -f1 "$1/LATEST")"; }

# evaluations RUN: data, step and loss of every evaluation, once.
evaluations() {
    sed -n 's/.*"kind":"eval","step":\([0-9]*\),.*"data":"\([^"]*\)".*"loss_hex":\("[^"]*"\|null\).*/\2 \1 \3/p' "$1/metrics.jsonl" | sort -u
}

# same_weights A B: of the newest checkpoints, without the heads that name a run.
same_weights() {
    one=$(newest "$1")
    two=$(newest "$2")
    ls "$one" >ls.one
    ls "$two" >ls.two
    cmp -s ls.one ls.two || broken "$one and $two hold other files"
    for run in "$1" "$2"; do # of deltas, which hold what has changed since another one
        grep -q '"kind":"delta"' "$one/MANIFEST" "$two/MANIFEST" || break
        tnet-export -q c.yaml run.dir="$run" export.to="$run-merged" export.values=f32 "export.dict=[tnd, tsv]" >place 2>err ||
            broken "no export of $run: $(cat err)"
        grep -v '^#' "$(cat place)/dict.tsv" >"$run.rows"
        rm -rf "$run-merged"
    done
    files=$(ls "$one"/sparse-* "$one"/dense-*)
    if [ -e "$1.rows" ]; then
        cmp -s "$1.rows" "$2.rows" || broken "other rows in $one and $two"
        rm "$1.rows" "$2.rows"
        files=$(ls "$one"/dense-*)
    fi
    for file in $files; do
        tail -c +65 "$file" >body.one
        tail -c +65 "$two/$(basename "$file")" >body.two
        cmp -s body.one body.two || broken "$(basename "$file") of $one and $two differ"
    done
}
same_exports() {
    [ "$publish" != none ] || return 0
    diff -r "$1-published" "$2-published" >differs 2>&1 || broken "other exports in $1 and $2: $(head -n 3 differs)"
}

# calibration RUN: that of its newest checkpoint; one of an earlier model stays where a later fit failed.
calibration() {
    [ -e "$1/calibration.json" ] || return 0
    step=$(grep -o '"step":[0-9]*,' "$(newest "$1")/MANIFEST" | head -n 1)
    grep "$step" "$1/calibration.json" || true
}
same_calibration() {
    [ "$(calibration "$1")" = "$(calibration "$2")" ] || broken "other calibrations of $1 and $2"
}

# same_run A B: whatever users get.
same_run() {
    [ "$checkpoints" = 0 ] || same_weights "$1" "$2"
    same_exports "$1" "$2"
    same_calibration "$1" "$2"
    evaluations "$1" >evals.one
    evaluations "$2" >evals.two
    cmp -s evals.one evals.two || broken "other evaluations of $1 and $2: $(diff evals.one evals.two | head -n 4)"
    if ! cmp -s table.a out; then # a run over days that has nothing new to learn shows none
        { [ "$days" -gt 0 ] && [ ! -s out ]; } || broken "another table of $2: $(diff table.a out | head -n 4)"
    fi
}

judge_again() {
    train again train.threads="$other_threads" data.readers="$other_readers" || broken "code $?: $(tail -n 3 err)"
    cp out again.out
    if (same_run a again); then return; fi
    train twice || broken "code $?: $(tail -n 3 err)" # by other threads, or by chance?
    judge='again, with the same threads'
    same_run a twice
    judge='again, with other threads'
    cp again.out out
    same_run a again
}

judge_killed() {
    for blow in $blows; do
        got=0
        { TNET_FAIL=$blow train killed || got=$?; } 2>null
        case $got in
        0) # the run has not come there
            same_run a killed
            return
            ;;
        75 | 137) ;;
        6) [ "$peers" -gt 1 ] || broken "code 6 of $blow" ;;
        *) broken "code $got at $blow: $(tail -n 3 err)" ;;
        esac
        # Children of a group that was killed end a moment later.
        [ "$peers" -eq 1 ] || sleep 0.1
    done
    tries=0
    until train killed; do
        tries=$((tries + 1))
        { grep -q 'is in use by' err && [ $tries -lt 100 ]; } || broken "does not go on after $blows: $(tail -n 3 err)"
        sleep 0.1
    done
    same_run a killed
    for left in killed/*.tmp killed-published/*.tmp; do
        [ ! -e "$left" ] || broken "left behind: $left"
    done
}

judge_days() {
    day=1
    while [ $day -le "$days" ]; do
        train daily data.days=2026-11-0$day || broken "day $day: code $?: $(tail -n 3 err)"
        day=$((day + 1))
    done
    same_weights a daily
    # All words but `day` also publish at the end of a command.
    [ "$publish" != day ] || same_exports a daily
    same_calibration a daily
}

# near FILE FILE SLOPE: the same rows, logits and probabilities but for rounding that is SLOPE times as large.
near() {
    # A batch norm that is folded into weights multiplies what they are rounded by, the more the less its input varies.
    most=2e-6
    ! grep -q 'batch_norm: true' c.yaml || most=2e-5
    paste "$1" "$2" | awk -F '\t' -v slope="$3" -v most=$most '
        NR == 1 { n = NF / 2; for (i = 4; i <= n; i++) { rounds[i] = i == 4 || $i ~ /(logit|pctr|given|prediction)$/ } next }
        {
            for (i = 1; i <= n; i++) {
                d = $i - $(i + n); size = $i < 0 ? -$i : $i
                if (rounds[i] && !(i == 5 && $4 == $5)) {
                    if ((d < 0 ? -d : d) > most * (size > 1 ? size : 1) * (slope > 1 ? slope : 1)) bad = NR ": " $0
                } else if ($i != $(i + n)) {
                    bad = NR ": " $0
                }
            }
            rows++
        }
        END { if (bad != "" || rows != 150) { print bad, rows; exit 1 } }' >differs
}

judge_served() {
    export="export.values=f32 export.min_score=~ export.dict=tnd"
    # shellcheck disable=SC2086 # words
    expect 0 tnet-export -q a --to full $export eval.calibrate=none
    id=$(basename "$(cat out)")
    expect 0 tnet-eval -q a --data "judge.$ending" --predictions checkpoint.tsv eval.calibrate=none
    expect 0 tnet-score "full/$id" --data "judge.$ending"
    mv out score.tsv
    expect 0 tnet-eval -q c.yaml --export "full/$id" --data "judge.$ending" --predictions export.tsv
    cmp -s export.tsv score.tsv || broken "tnet-eval --export and tnet-score say other things"
    near checkpoint.tsv export.tsv 1 || broken "the export scores otherwise than the checkpoint: $(head -n 2 differs)"
    # A map stretches what rounding differs in; an isotonic one has steps.
    slope=$(grep -o '"kind":"platt","a":[^,]*' a/calibration.json 2>null | cut -d : -f 3 | sort -g | tail -n 1) || true
    [ -n "$slope" ] || return 0
    # shellcheck disable=SC2086
    expect 0 tnet-export -q a --to calibrated $export
    expect 0 tnet-eval -q a --data "judge.$ending" --predictions checkpoint.tsv
    expect 0 tnet-eval -q c.yaml --export calibrated --data "judge.$ending" --predictions export.tsv
    near checkpoint.tsv export.tsv "$slope" || broken "the calibrated export scores otherwise than the checkpoint: $(head -n 2 differs)"
}

judge_deltas() {
    last=$(newest a)
    older=
    for file in a/ckpt-*; do
        case $file in
        "$last" | *.*) ;;
        *) older=$file ;;
        esac
    done
    [ -n "$older" ] || return 1
    ! grep -q 'check_groups: false' c.yaml || return 1
    # shellcheck disable=SC2086
    expect 0 tnet-export -q a --checkpoint "$older" --to chain $export eval.calibrate=none
    base=$(basename "$(cat out)")
    [ "$base" != "$id" ] || return 1 # the best is the last
    # shellcheck disable=SC2086
    expect 0 tnet-export -q a --to chain --delta-from "$base" $export eval.calibrate=none
    expect 0 tnet-score "$(cat out)" --data "judge.$ending"
    cmp -s out score.tsv || broken "a delta scores otherwise than the full export"
}

judge_published() {
    [ -e a-published/LATEST ] || broken "nothing is published"
    expect 0 tnet-export -q a --to beside
    [ "$(basename "$(cat out)")" = "$(cat a-published/LATEST)" ] || return 1
    expect 0 tnet-score "$(cat out)" --data "judge.$ending"
    mv out beside.tsv
    expect 0 tnet-score a-published --data "judge.$ending"
    cmp -s out beside.tsv || broken "what is published scores otherwise than tnet-export's"
}

judge_meaning() {
    expect 3 tnet-eval a --data "judge.$ending" "$change"
    grep -q 'here .*, in the checkpoint' err || broken "$change: $(cat err)"
}

# figure DATA NAME: of summary.json; logged DATA NAME: of such evaluations in metrics.jsonl.
figure() { sed -n 's/.*"'"$1"'":{\([^}]*\)}.*/\1/p' a/summary.json | sed -n 's/.*"'"$2"'":\([^,}]*\).*/\1/p'; }
logged() { grep '"kind":"eval"' a/metrics.jsonl | grep '"data":"'"$1"'"' | { if grep -q 'restore: best\|epochs: auto' c.yaml; then cat; else tail -n 1; fi } | sed -n 's/.*"kind":"eval"[^{]*"'"$2"'":\([^,}]*\).*/\1/p'; }

judge_figures() {
    columns=$(sed -n '1s/(raw)//g; 1s/^metric//p' table.a)
    place=1
    for column in $columns; do
        place=$((place + 1))
        for metric in auc logloss copc ne rmse mae; do
            shown=$(awk -v m=$metric -v p=$place '$1 == m { print $p; exit }' table.a)
            [ -n "$shown" ] || continue
            kept_figure=$(figure "$column" $metric)
            [ -z "$kept_figure" ] || awk -v a="$shown" -v b="$kept_figure" 'BEGIN { exit !(a == b || a - b < 1e-6 && b - a < 1e-6) }' ||
                broken "$column $metric: the table says $shown, summary.json $kept_figure"
            logged "$column" $metric >figures # of the last evaluation, or of the best, whose model was kept
            [ ! -s figures ] || [ "$rounded" = 1 ] || awk -v a="$shown" '{ d = a - $1; if (a == $1 || d < 1e-6 && d > -1e-6) found = 1 } END { exit !found }' figures ||
                broken "$column $metric: the table says $shown, metrics.jsonl $(tail -n 1 figures)"
        done
    done
}

# column NAME FILE: names and values of a table's column.
column() { awk -v name="$1" 'NR == 1 { gsub(/ \(raw\)/, ""); for (i = 2; i <= NF; i++) if ($i == name) p = i; next } p && NF >= p && !/,|calibrated|^auc_error / { print $1, $p } NF == 0 { exit }' "$2"; }

judge_folder() {
    part="test"
    raw=
    [ "$tested" = 1 ] || part=valid
    [ "$part" = test ] || raw=eval.calibrate=none # figures of valid are raw while a run trains
    # shellcheck disable=SC2086
    expect 0 tnet-eval a $raw
    columns=$(head -n 1 table.a | tr -s " " "\n" | grep "^$part\(\.\|$\)") || broken "no $part in the table: $(cat table.a)"
    for shown in $columns; do # one for each task
        column "$shown" table.a >columns.one
        column "$shown" out >columns.two
        [ -s columns.one ] || broken "no $shown in the table: $(cat table.a)"
        cmp -s columns.one columns.two || broken "other figures of $shown: $(diff columns.one columns.two | head -n 4)"
    done
}

# ---- models of other programs ----

# warm_up WORDS..: the run that others begin with, five steps from nothing.
warm_up() { train warm "$@" checkpoint.from=~ train.freeze=~ checkpoint.every=1epoch train.max_steps=5 export.every=~; }

# write_linear: a model as xLearn or VW prints it, of the features that rows.awk makes.
write_linear() {
    awk -v begins="$begins" -v model="$model" -v dim="$(sed -n 's/^embedding: {dim: \([0-9]*\).*/\1/p' c.yaml)" '
        function weight() { state = state * 16807 % 2147483647; return state / 2147483647 - .5 }
        function vw(name) { printf "%s:%d:%.6g\n", name, ++n, weight() }
        BEGIN {
            state = 7
            if (begins == "vw") {
                print "Version 9.11.9\noptions:\n:0"
                for (i = 0; i < 60; i++) vw("u^" i)
                for (i = 0; i < 40; i++) vw("t^" i)
                n_words = split("red green blue north south east west up down left", words, " ")
                for (i = 1; i <= n_words; i++) { vw("w^" words[i]); vw("s^" words[i]) }
                printf "Constant:%d:-0.4\n", ++n
                exit
            }
            print "bias: -0.4"
            for (i = 0; i < 2030; i++) printf "i_%d: %.6g\n", i, weight()
            for (i = 0; i < 2030 && model == "fm"; i++) {
                printf "v_%d:", i
                for (k = 0; k < dim; k++) printf " %.6g", weight() / 4
                print ""
            }
        }' >begin.txt
}

# make_begin: what checkpoint.from names. Fails where the program says that it cannot write it.
make_begin() {
    case $begins in
    vw | xlearn) write_linear ;;
    dump)
        warm_up || return 1
        expect 0 tnet-export -q warm --to dump export.values=f32 export.min_score=~ "export.dict=[tnd, tsv]" export.check_groups=true eval.calibrate=none
        mv "$(cat out)" begin
        ;;
    tensornet)
        warm_up || return 1
        {
            echo "sparse:"
            echo "  - {layer: linear_input, segment: wide, optimizer: adagrad, share: all}"
            [ "$model" = lr ] || echo "  - {layer: deep_input, segment: deep, optimizer: adagrad, share: all}"
            echo 'dense: [{name: "bias:0", shape: [1], to: bias}]'
        } >begin.map
        got=0
        tnet-data ckpt export c.yaml run.dir=warm checkpoint.from=~ --map begin.map --tensornet begin --dt 2026-11-01 >out 2>err || got=$?
        [ $got -eq 0 ] || { [ $got -eq 3 ] && return 1; } || broken "ckpt export: code $got: $(tail -n 3 err)"
        ;;
    esac
}

begin_with_nothing() {
    sed -i 's/^\(checkpoint: {.*\), from: .*}$/\1}/; s/, freeze: \[[^]]*\]//' c.yaml
    begins=none
}

judge_begun() {
    export="export.values=f32 export.min_score=~ export.dict=tnd eval.calibrate=none"
    train begun train.epochs=0 checkpoint.every=1epoch export.every=~ || broken "code $?: $(tail -n 3 err)"
    expect 0 tnet-eval -q begun --data "judge.$ending" --predictions begun.tsv eval.calibrate=none
    expect 0 tnet-eval -q c.yaml run.dir=unborn --data "judge.$ending" --predictions unborn.tsv eval.calibrate=none
    cmp -s begun.tsv unborn.tsv || broken "checkpoint.from scores otherwise before and after it is a checkpoint"
    # shellcheck disable=SC2086 # words
    expect 0 tnet-export -q begun --to begun-export $export
    expect 0 tnet-score "$(cat out)" --data "judge.$ending"
    mv out begun-export.tsv
    near begun.tsv begun-export.tsv 1 || broken "the export of what was begun with scores otherwise: $(head -n 2 differs)"
    case $begins in vw | xlearn) return ;; esac
    expect 0 tnet-eval -q warm --data "judge.$ending" --predictions warm.tsv eval.calibrate=none
    near warm.tsv begun.tsv 1 || broken "what began with $begins scores otherwise than that model: $(head -n 2 differs)"
}

# look JUDGE: as far as it applies.
look() {
    judge=$1
    if "judge_$1"; then done_judges="$done_judges $1"; fi
}

one() {
    index=$2
    pool=$3
    result=$4
    judge=plan
    done_judges=
    raw=
    stale=0 # unless the plan says otherwise
    begins=none
    fail() { broken "$@"; }
    cd "$dir"
    if [ -e "$here/seeds/$index" ]; then
        awk -v out="$dir" '$1 == "==" { file = out "/" $2; next } file != "" { print >file }' "$here/seeds/$index"
    else
        awk -v seed="$seed" -v place="$index" -v out="$dir" -f "$here/generate.awk"
    fi
    # shellcheck disable=SC1091 # made above
    . ./plan
    judge=data
    make_data
    judge=train
    # The run to begin with may diverge, or its model be one that the other program has no words for.
    [ "$warm" = 0 ] || warm_up run.seed=1 || begin_with_nothing
    judge=begin
    [ "$begins" = none ] || make_begin || begin_with_nothing
    judge=train
    got=0
    train a || got=$?
    case $got in
    0) ;;
    3)
        grep -q ': error: ' err || broken "refused without a word: $(cat err)"
        echo "refused $index $(sed -n 's/.*: error: //p' err | head -n 1)" >"$result"
        return
        ;;
    9)
        echo "diverged $(sed -n 's/.*error: //p' err)" >"$result"
        return
        ;;
    *) broken "code $got: $(tail -n 3 err)" ;;
    esac
    cp out table.a
    # What rounding takes from a gradient that travels the next one brings, and no checkpoint knows of it.
    case $stale$rounded in
    00) look again && look killed ;;
    01) look again ;;
    esac
    [ "$days" -eq 0 ] || [ "$checkpoints" = 0 ] || [ "$rounded$stale" != 00 ] || look days
    look figures
    [ "$begins" = none ] || look begun
    if [ "$checkpoints" = 1 ]; then
        look served
        look deltas
        [ "$publish" = none ] || look published
        look meaning
        # Peers round the rows that they send each other, evaluations of a run among them.
        case $tested:$valid:$rounded in
        1:*:0 | 0:files:0 | 0:share:0 | 0:last:0) look folder ;;
        esac
    fi
    echo "ok$done_judges" >"$result"
}

if [ "${1:-}" = one ]; then
    seed=$2
    shift
    one "$@"
    [ -z "${COMPOSE_INDEX:-}" ] || keep
    exit 0
fi

# ---- all of them ----
mkdir "$dir/pool" "$dir/results"
awk -v rows=4000 -f "$here/rows.awk" >"$dir/pool/rows.csv"
tnet-data gen -q preset=criteo rows=4000 zipf=1.4 --to "$dir/pool/criteo.tsv"
awk -F '\t' 'BEGIN {
        OFS = ","
        print "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,app_category,device_id,device_ip,device_model,device_type,device_conn_type,C14,C15,C16,C17,C18,C19,C20,C21"
    }
    { print NR, $1, 26110100 + NR % 24, $3 + 0, $4 + 0, $15, $16, $17, $18, $19, $20, $21, $22, $23, $5 + 0, $6 + 0, $7 + 0, $8 + 0, $9 + 0, $10 + 0, $11 + 0, $12 + 0, $13 + 0, $14 + 0 }' \
    "$dir/pool/criteo.tsv" >"$dir/pool/avazu.csv"
echo "compose: seed $seed"
if [ -n "${COMPOSE_INDEX:-}" ]; then
    "$0" one "$seed" "$COMPOSE_INDEX" "$dir/pool" "$dir/results/$COMPOSE_INDEX" || true
    cat "$dir/results/$COMPOSE_INDEX"
    if grep -q '^failed' "$dir/results/$COMPOSE_INDEX"; then exit 1; fi
    exit 0
fi
cases=$(ls "$here/seeds")
{
    echo "$cases"
    awk -v n="$runs" 'BEGIN { for (i = 1; i <= n; i++) print i }'
} >"$dir/places"
# shellcheck disable=SC2016 # words of the inner shell
xargs -P "$(nproc)" -I {} sh -c '"$0" one "$1" {} "$2" "$3/{}" || true' "$0" "$seed" "$dir/pool" "$dir/results" <"$dir/places"
cat "$dir"/results/* >"$dir/all"
grep -h '^compose\|^    ' "$dir/all" || true
awk '
    $1 == "refused" { refused++; sub(/^refused /, ""); place = $1; sub(/^[0-9]* /, ""); gsub(/\047[^\047]*\047/, "\047..\047"); said[$0]++; where[$0] = place }
    $1 == "diverged" { diverged++ }
    $1 == "failed" { failed++ }
    $1 == "ok" { ok++; for (i = 2; i <= NF; i++) judged[$i]++ }
    END {
        for (text in said) printf "compose: refused %d times, as index %d: %s\n", said[text], where[text], text
        line = ""
        n = split("again killed days served deltas published meaning figures folder begun", judges, " ")
        for (i = 1; i <= n; i++) line = line " " judges[i] " " judged[judges[i]] + 0
        print "compose: judged:" line
        printf "compose: %d good, %d refused, %d diverged, %d failed\n", ok, refused, diverged, failed
        exit failed > 0 || ok + refused + diverged + failed != runs + cases || refused * 3 > runs
    }' runs="$runs" cases="$(echo "$cases" | wc -l)" "$dir/all"
