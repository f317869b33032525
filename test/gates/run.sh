#!/bin/sh
# run.sh - shows that the gates see what they are there for: plants one fault after the other, each of which a step of .ci/run
# must refuse in the words of the fault.
#
#     test/gates/run.sh [WORD..]     every row of test/gates/list, or those that contain one of the words
#
# The steps run in a clone of the committed tree in build/gates, where all but the fault has passed already, and once without
# any fault. A fault that nobody refuses, or that is refused in other words, is printed, and the exit code is 1 then.
# `make nightly STEPS=gates` runs all.
set -eu
cd "$(dirname "$0")/../.."
list=test/gates/list
mkdir -p build/gates
printf '%s\n' "$@" | grep -F -f - "$list" | grep -v -e '^#' -e '^$' >build/gates/chosen || {
    echo "gates: no row holds '$*'" >&2
    exit 2
}
[ -d build/gates/tree ] || git clone -q . build/gates/tree
git -C build/gates/tree fetch -q ../../.. HEAD
git -C build/gates/tree checkout -q -f --detach FETCH_HEAD
git -C build/gates/tree update-ref refs/ci/green HEAD
cd build/gates/tree
tab=$(printf '\t')

# step NAME TESTS: what the gate says is in ../log
step() {
    tests=$2
    [ "$tests" != - ] || tests=
    TESTS=$tests .ci/run "$1" </dev/null >../log 2>&1
}

# What fails anyway refuses nothing.
cut -f 4,5 ../chosen | sort -u >../steps
while IFS=$tab read -r name tests; do
    step "$name" "$tests" || {
        echo "gates: '$name' of '$tests' fails without any fault" >&2
        tail -n 20 ../log >&2
        exit 1
    }
done <../steps

bad=0
n=0
while IFS=$tab read -r fault file edit name tests words; do
    n=$((n + 1))
    sed -i -e "$edit" "$file"
    verdict=refused
    if git diff --quiet; then
        verdict="changes nothing"
    elif step "$name" "$tests"; then
        verdict="NOT REFUSED"
    elif ! grep -qF -- "$words" ../log; then
        verdict="refused without '$words'"
        tail -n 20 ../log >&2
    fi
    printf '%-15s %-8s %s\n' "$fault" "$name" "$verdict"
    [ "$verdict" = refused ] || bad=$((bad + 1))
    git checkout -q -- .
done <../chosen
echo "gates: $((n - bad)) of $n faults refused"
[ "$bad" -eq 0 ]
