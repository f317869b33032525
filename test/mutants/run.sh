#!/bin/sh
# run.sh - shows that tests see one-line faults in the code that decides what is kept, restored, retried or dropped.
#
#     test/mutants/run.sh [WORD..]     every row of test/mutants/list, or those that contain one of the words
#     PART=3/10 ..                     every tenth of these rows, from the fourth on
#
# A row is FILE, a sed expression that changes a line of it, and a regular expression of the ctest tests that must fail
# then, with tabs between. Each mutant is built in a copy of the committed tree in build/mutants and those tests run. A mutant that
# lives, changes nothing or does not compile is printed; the exit code is 1 then. `make nightly` runs a tenth each night, `NIGHT=all` all.
set -eu
cd "$(dirname "$0")/../.."
list=test/mutants/list
rm -rf build/mutants/src build/mutants/test build/mutants/bench # files may have moved since
mkdir -p build/mutants
# No words are one that stands in every row.
printf '%s\n' "$@" | grep -F -f - "$list" | grep -v -e '^#' -e '^$' | test/part >build/mutants/chosen
[ -s build/mutants/chosen ] || {
    echo "mutants: no row holds '$*'" >&2
    exit 2
}
git archive HEAD | tar -x -m -C build/mutants # -m: as new, or Ninja takes what it built of another commit for today's
cd build/mutants
cmake --preset gcc -DTNET_WERROR=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-g1 -O1" >/dev/null
cmake --build build/gcc -- --quiet
bad=0
n=0

# Tests that fail anyway kill nothing.
all=$(cut -f 3 chosen | sort -u | paste -s -d '|')
ctest --test-dir build/gcc -R "$all" --no-tests=error --timeout 300 -j "$(nproc)" </dev/null >log 2>&1 || {
    echo "mutants: these tests fail without any mutant" >&2
    grep -A 99 'tests FAILED' log >&2
    exit 1
}

# verdict FILE EDIT WHAT
verdict() {
    printf '%-9s %s  %s\n' "$3" "$1" "$2"
    [ "$3" = killed ] || bad=$((bad + 1))
}

# targets REGEX: what the tests that it matches run
targets() {
    for room in src/*; do
        room=${room#src/}
        case $1 in *"$room"/*) echo "test_$room" ;; esac
    done
    case $1 in *e2e/*) echo tnet-train tnet-eval tnet-export tnet-data tnet-score tnet-serve tnet-tune tnet-keygen ;; esac
}

tab=$(printf '\t')
while IFS=$tab read -r file edit regex; do
    n=$((n + 1))
    cp "$file" original
    sed -i -e "$edit" "$file"
    if cmp -s "$file" original; then
        verdict "$file" "$edit" unchanged
        continue
    fi
    # A session of its own: a mutant may kill all processes of its group. Names of targets hold no spaces.
    # shellcheck disable=SC2046
    if ! cmake --build build/gcc --target $(targets "$regex") -- --quiet >log 2>&1; then
        verdict "$file" "$edit" broken
    elif setsid -w ctest --test-dir build/gcc -R "$regex" --no-tests=error --timeout 120 -j "$(nproc)" </dev/null >log 2>&1; then
        verdict "$file" "$edit" lives
    elif grep -q 'No tests were found' log; then
        verdict "$file" "$edit" untested
    else
        verdict "$file" "$edit" killed
    fi
    cp original "$file"
done <chosen
echo "mutants: $n, of which $bad were not killed"
[ "$bad" -eq 0 ] && [ "$n" -gt 0 ]
