#!/bin/sh
# run.sh - shows that docs/way.md is true: trains on one line of a log with every call recorded, and compares the
# functions between the line's bytes and its update with the list of that page.
#
#     test/way/run.sh              fails with the first line that differs
#     test/way/run.sh --write      writes the list of the page anew: `make way`
#
# The tree is build/way (the preset `way`: nothing inlined, one set of instructions, AVX2); calls.c records, rules says
# where the way begins and what is left out, way.awk makes the list. One process, one thread, a batch of one row.
# Backquotes in single quotes are those of the page.
# shellcheck disable=SC2016
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
page=docs/way.md
out=$root/build/way/out

fail() {
    echo "way: $*" >&2
    exit 1
}

if ! grep -q '\<avx2\>' /proc/cpuinfo; then
    echo "way: nothing compared, this processor has no AVX2" >&2
    exit 0
fi
cmake --preset way >/dev/null
cmake --build build/way --target tnet-train -- --quiet
rm -rf "$out"
mkdir -p "$out"
cc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -shared -fPIC -o "$out/calls.so" test/way/calls.c
head -n 1 datasets/samples/criteo.tsv >"$out/one.tsv"
(
    cd "$out"
    TN_CALLS=$out/calls LD_PRELOAD=$out/calls.so ../tnet-train "$root/configs/widedeep.yaml" \
        data.train=one.tsv data.valid= data.test= data.readers=1 train.batch=1 train.threads=1 run.dir=run >log 2>&1
) || {
    cat "$out/log" >&2
    fail "the run failed"
}
cut -f 3 "$out/calls" | sort -u >"$out/addresses"
addr2line -f -e build/way/tnet-train <"$out/addresses" | paste - - >"$out/places"
paste "$out/addresses" "$out/places" | sed 's|\t[^\t]*/src/|\t|; s|:[0-9?]*\( (discriminator.*)\)\?$||' >"$out/names"
awk -v counts="$out/counts" -f test/way/way.awk "$out/names" test/way/rules "$out/calls" >"$out/list"

# The list is the block behind this line of the page.
mark='<!-- test/way/run.sh writes this list: make way -->'
grep -qxF -e "$mark" "$page" || fail "$page has no line '$mark'"
if [ "${1:-}" = --write ]; then
    {
        sed "\|^$mark\$|q" "$page"
        printf '\n```text\n'
        cat "$out/list"
        printf '```\n'
    } >"$out/page"
    cp "$out/page" "$page"
fi
awk -v mark="$mark" '$0 == mark { behind = 1 } /^```/ { inside = behind && !inside; next } inside' "$page" >"$out/listed"
cmp -s "$out/listed" "$out/list" || {
    diff "$out/listed" "$out/list" | sed -n '1,6p' >&2
    fail "$page lists other functions than one row goes through ('<' is the page, '>' what ran); mend its stations, then: make way"
}

# Stations: "| `function` | file | ..". One that only moved to another file follows it with --write.
sed 's/^ *//; s/  \.\.$//' "$out/list" >"$out/flat"
grep -E '^\| `[a-z0-9_]+` \| ' "$page" | sed 's/^| `\([a-z0-9_]*\)` | \([^ ]*\) |.*/\1  \2/' >"$out/stations"
lost=0
while read -r function file; do
    grep -qxF -e "$function  $file" "$out/flat" && continue
    now=$(sed -n "s/^$function  //p" "$out/flat" | sort -u)
    if [ "${1:-}" = --write ] && [ "$(printf '%s' "$now" | grep -c .)" -eq 1 ]; then
        sed -i "s#^| \`$function\` | $file |#| \`$function\` | $now |#" "$page"
        continue
    fi
    echo "way: the list has no '$function  $file', a station of $page" >&2
    lost=$((lost + 1))
done <"$out/stations"
[ "$lost" -eq 0 ] || fail "name the functions that do this now: stations are mended by hand"
[ -s "$out/stations" ] || fail "$page has no stations"
echo "way: $(cat "$out/counts"); $(wc -l <"$out/stations") stations"
