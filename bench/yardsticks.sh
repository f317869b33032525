#!/bin/sh
# yardsticks.sh - P1, P2, P3 and the memory of P15: TNet beside PyTorch and TensorFlow, in turns.
#
#     bench/yardsticks.sh RUN_PY VENV [--cases CASE,..] [--peers .. | --reps N | ..]
#
# RUN_PY is the program of the yardsticks (run.py, no part of this repository), VENV the folder of its environments,
# which it makes: 3 GB of disk. What follows goes to it. It is started for each case (all of P1 to P3 unless told), since
# it repeats a peer's disturbed turns in its first minutes alone; bench_train repeats TNet's by the same rule (machine.h).
# It prints its table; then come lines as bench/row prints them: TNet over the best peer in one process, and over the best
# in as many processes as cores, all with rows in memory; what TNet makes of the same rows from a file. Its "of peak" and
# "roofline" are of vectors of 256 bits; shares of the limit in our lines are of the widest.
set -eu
[ $# -ge 2 ] || {
    echo "usage: bench/yardsticks.sh RUN_PY VENV [words for RUN_PY]" >&2
    exit 2
}
run=$1 venv=$2
shift 2
cases=$(for net in big tiny; do
    for case in widedeep:8:$net:1024 deepfm:8:$net:1024 dcn:8:$net:1024 dcnv2:8:$net:1024 widedeep:16:$net:1024 widedeep:8:$net:4096; do
        echo "$case:all"
    done
done
echo widedeep:8:big:1024:1 widedeep:8:tiny:1024:1)
[ "${1:-}" != --cases ] || {
    cases=$(echo "$2" | tr , ' ')
    shift 2
}
here=$(cd "$(dirname "$0")/.." && pwd)
bin=${TNET_BIN:-$here/build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/bench_rates" machine
for case in $cases; do
    : >"$work/all"
    : >"$work/ours"
    python3 "$run" "$venv" --cases "$case" --json "$work/all" --tnet "taskset -c 0-\$(({threads} - 1)) '$bin/bench_train' \
'$here/bench/configs/speed.yaml' 2 both data.train='{data}/train.libsvm' model.type={model} embedding.dim={dim} \
'model.hidden=[{hidden}]' train.batch={batch} train.threads={threads} | sed 's/^{/{\"case\":\"$case\",/' | tee -a '$work/ours' |
sed -E 's/.*(\"rows_per_s\":[0-9]+).*(\"cpu_s_per_mrow\".*\"first_step_s\":[0-9.]+).*/{\1,\2}/'" "$@" # names run.py has are left out
python3 - "$work/all" "$work/ours" <<'END'
import json, statistics, sys

cases = {}
for line in open(sys.argv[1]):
    x = json.loads(line)
    cases.setdefault(x['case'], []).append(x)
turns = [json.loads(line) for line in open(sys.argv[2])]


def best(peers, key, least=False):
    return (min if least else max)(peers, key=lambda x: x[key], default=None)


def say(row, what, target, ours, theirs, met):
    print(f'{row:4} {what:44} {target:>9} {ours["rows_per_s"] / 1e3:8.1f} [{ours["min"] / 1e3:.1f} {ours["max"] / 1e3:.1f}] k rows/s; '
          f'yardstick {theirs["rows_per_s"] / 1e3:.1f} [{theirs["min"] / 1e3:.1f} {theirs["max"] / 1e3:.1f}] ({theirs["run"]}); '
          f'ratio {ours["rows_per_s"] / theirs["rows_per_s"]:.2f}, {met}')


for name, runs in cases.items():
    big, one = ':big:' in name, runs[0]['threads'] == 1
    row = 'P3' if one else 'P1' if big else 'P2'
    ours = next(x for x in runs if x['run'] == 'tnet')
    peers = [x for x in runs if x is not ours]
    alone = best([x for x in peers if '*' not in x['run']], 'rows_per_s')
    several = best([x for x in peers if '*' in x['run']], 'rows_per_s')
    wants = {'P1': (1.4, 1.25), 'P2': (3, 2.1), 'P3': (1.3, None) if big else (2.2, None)}[row]
    for theirs, target in zip((alone, several), wants):
        if theirs and target:
            met = 'met' if ours['rows_per_s'] >= target * theirs['rows_per_s'] else 'missed'
            say(row, name, f'>= {target} x', ours, theirs, met)
    own = [x for x in turns if x['case'] == name]
    share = statistics.median(x['file_share'] for x in own)
    file = sorted(x['file_rows_per_s'] / 1e3 for x in own)
    print(f'{row:4} {name + ", from a file":44} {"":9} {statistics.median(file):8.1f} [{file[0]:.1f} {file[-1]:.1f}] k rows/s, {share:.3f} of the limit; '
          f'from memory {statistics.median(x["share"] for x in own):.3f}; {2 * len(own)} turns, {sum(x["again"] for x in own)} again, '
          f'{sum((x["others"] > .08) + (x["file_others"] > .08) for x in own)} disturbed')
    small = best([x for x in peers if x.get('rss_mb')], 'rss_mb', True)
    if small and ours.get('rss_mb'):
        ratio = ours['rss_mb'] / small['rss_mb']
        print(f'P15  {name + ", memory":44} {"<= 0.33 x":>9} {ours["rss_mb"]:8.0f} MB; yardstick {small["rss_mb"]:.0f} ({small["run"]}); '
              f'ratio {ratio:.2f}, {"met" if ratio <= 1 / 3 else "missed"}')
END
done
