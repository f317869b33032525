#!/bin/sh
# Builds every fuzz target with clang, libFuzzer and the sanitizers, and runs each for a while.
#
#     test/fuzz/run.sh [SECONDS [NAME..]]     30 seconds each; `format` is test/fuzz/fuzz_format.c
#     PART=1/3 ..                             every third target, from the second on
#
# As many run at once as there are cores.
# A run starts from test/fuzz/corpus/<name> and what earlier runs found in <build>/corpus/<name>. An input that
# makes a target fail is kept in <build>/findings: `<build>/fuzz_<name> FILE` repeats it; once the fault is mended,
# the file belongs into test/fuzz/corpus/<name>, which ordinary tests replay. <build> is $TNET_FUZZ, build/fuzz
# when unset. Ends with one line; 0 when nothing was found, 1 otherwise.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-30}
case $seconds in
'' | *[!0-9]* | 0)
    echo "usage: test/fuzz/run.sh [SECONDS [NAME..]]" >&2
    exit 2
    ;;
esac
[ $# -eq 0 ] || shift
build=${TNET_FUZZ:-build/fuzz}

names=$*
if [ -z "$names" ]; then
    names=$(for file in test/fuzz/fuzz_*.c; do basename "$file" .c; done | sed 's/^fuzz_//' | test/part)
fi
if ! printf 'int LLVMFuzzerTestOneInput(void *data, long size) { return data && size < 0; }' |
    clang -x c -fsanitize=fuzzer,address -o /dev/null - 2>/dev/null; then
    echo "clang cannot link libFuzzer; Debian's package is libclang-rt-14-dev" >&2
    exit 2
fi
cmake --preset fuzz -B "$build" >/dev/null
# Names are words without blanks.
# shellcheck disable=SC2046,SC2086
cmake --build "$build" --target $(printf 'fuzz_%s ' $names) -- --quiet

mkdir -p "$build/findings"

# fuzz NAME: runs one target and prints its line; what it found makes the file NAME.found
fuzz() {
    log=$build/$1.log
    mkdir -p "$build/corpus/$1"
    status=0
    "$build/fuzz_$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/findings/$1-" "$build/corpus/$1" "test/fuzz/corpus/$1" \
        >"$log" 2>&1 || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    if [ "$status" -eq 0 ]; then
        printf '%-12s ok    %s runs\n' "$1" "${runs:-?}"
    else
        touch "$build/$1.found"
        printf '%-12s FAIL  code %s, see %s\n' "$1" "$status" "$log"
        grep -E 'ERROR: |runtime error: |SUMMARY: |Test unit written to|assertion' "$log" | head -n 8 || :
    fi
}

rm -f "$build"/*.found
n=0
for name in $names; do
    n=$((n + 1))
    fuzz "$name" &
    [ $((n % $(nproc))) -ne 0 ] || wait
done
wait
bad=$(cd "$build" && find . -name '*.found' | sort | sed 's/^.\// /; s/.found$//' | tr -d '\n')
if [ -n "$bad" ]; then
    echo "fuzz: FOUND faults in$bad; $n targets, ${seconds} s each; inputs are in $build/findings"
    exit 1
fi
echo "fuzz: nothing found; $n targets, ${seconds} s each"
