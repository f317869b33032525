#!/bin/sh
# docs_true.sh - what the documents say is so: manual pages and the page of options are those of the
# programs and say what --help says, every link and file name resolves, every YAML file and block is
# accepted, every command of every page runs, every exit code of its table is provoked by a test, and
# the samples are what their script makes.
#
# A block fenced as ```yaml is a whole configuration; ```yaml fragment is one without `data`. When
# its first line is `# name.yaml` it becomes that file for the commands of its page.
#
# Indented blocks with a command of ours run, too, unless the paragraph before is
# `<!-- not run: REASON -->`. Counts of rows are made small for it.
set -u
bin=$(cd "${TNET_BIN:?folder of the programs}" && pwd)
root=$(pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
fail() {
    echo "docs_true.sh: $*" >&2
    bad=1
}
pages="README.md CONTRIBUTING.md CHANGELOG.md docs/*.md datasets/*.md datasets/*/*.md"

# Manual pages and the page of all options.
for page in docs/man/*.1; do
    program=$(basename "$page" .1)
    [ "$program" != tnet-serve ] || [ -x "$bin/$program" ] || continue # built where libmicrohttpd is
    "$bin/$program" --man | cmp -s - "$page" || fail "$page differs from '$program --man'; run 'make docs'"
done
# Those of the headers: as their comments say, with text for each function.
for header in src/serve/tnet.h src/api/tnet_train.h; do
    page=docs/man/$(basename "$header" .h).3
    docs/man/of-header "$header" 2>"$tmp/err" | cmp -s - "$page" || fail "$page differs from what $header says: $(cat "$tmp/err"); run 'make docs'"
    grep -oE '^TNET_API .*' "$header" | grep -oE 'tnet_[a-z_]+\(' | tr -d '(' >"$tmp/names"
    [ "$(wc -l <"$tmp/names")" -gt 10 ] || fail "$header declares next to nothing"
    while read -r name; do
        awk -v name="$name" '/^\.SS / { on = index($0 ",", " " name ",") > 0; found += on; next } on && /^\.PP|\/\*/ { said = 1 }
            END { exit !(found == 1 && said) }' "$page" || fail "$page says nothing of $name"
        sed -n '/^\.SH NAME/{n;p;}' "$page" | grep -qE "[ ,]${name}[ ,]" || fail "$page does not have $name among its names"
    done <"$tmp/names"
done
"$bin/tnet-train" --print-config-doc | cmp -s - docs/config.md || fail "docs/config.md differs from 'tnet-train --print-config-doc'; run 'make docs'"

# Every operator, layer, model, metric, format, optimizer and loss stands on its page.
named() {
    "$bin/tnet-train" "--list-$1" | grep -oE '^[a-z][a-z0-9_]*' | sort -u >"$tmp/names"
    [ "$(wc -l <"$tmp/names")" -gt 5 ] || fail "tnet-train --list-$1 says next to nothing"
    while read -r name; do
        grep -qE "(^|[^a-z0-9_])$name([^a-z0-9_]|\$)" "$2" || fail "$2 does not name '$name' of 'tnet-train --list-$1'"
    done <"$tmp/names"
}
named ops docs/numerics.md
named layers docs/models.md
named models docs/models.md
named metrics docs/numerics.md
named formats docs/data.md
named optimizers docs/numerics.md
named losses docs/numerics.md
named losses docs/training.md

# --help and the manual page: the same options, keys and exit codes in the same words.
plain_man() { sed -e 's/\\f[BR]//g' -e 's/\\-/-/g' -e 's/^\\&//' -e 's/\\e/\\/g' "docs/man/$1.1"; }
for program in tnet-train tnet-data tnet-eval tnet-export tnet-score tnet-serve tnet-tune tnet-keygen; do
    [ $program != tnet-serve ] || [ -x "$bin/$program" ] || continue
    [ -f "docs/man/$program.1" ] || fail "no docs/man/$program.1"
    "$bin/$program" --help-all >"$tmp/help" 2>"$tmp/none" || "$bin/$program" --help >"$tmp/help"
    {
        sed -n '/^options:$/,/^$/p' "$tmp/help" | sed -e 1d -e '$d' -e 's/^ *//' | tr -s ' '
        sed -n '/^keys of the configuration/,$p' "$tmp/help" | sed -n 's/^  *\([a-z]\)/\1/p' | tr -s ' '
        sed -n '/^exit codes: /,$p' "$tmp/help" | sed 's/^exit codes: //'
    } >"$tmp/said"
    plain_man $program | awk '
        /^\.SH / { part = $2; next }
        part == "OPTIONS" && /^\.TP/ { getline flag; getline what; print flag " " what }
        part == "CONFIGURATION" && /^  *[a-z]/ { sub(/^ */, ""); print }
        part == "EXIT" { print }' | tr -s ' ' >"$tmp/written"
    [ "$(wc -l <"$tmp/said")" -gt 6 ] || fail "$program --help says next to nothing"
    cmp -s "$tmp/said" "$tmp/written" ||
        fail "docs/man/$program.1 and '$program --help' differ: $(diff "$tmp/said" "$tmp/written" | head -n 3)"
    # Options that the text names are the program's own, or another program's by name.
    sed -E 's/tnet-[a-z]+ --[a-z-]+//g' "$tmp/help" | grep -oE '(^|[ ,(])--[a-z][a-z-]*' | tr -d ' ,(' | sort -u >"$tmp/names"
    while read -r name; do
        grep -qE "^  (-[a-z], )?$name([ []|\$)" "$tmp/help" || fail "$program --help names $name, which it does not know"
    done <"$tmp/names"
done

# Links, relative to the page they stand on; a section behind # is not looked at.
for page in $pages; do
    grep -oE '\]\([^)]+\)' "$page" | sed -e 's/^](//' -e 's/)$//' -e 's/#.*//' | sort -u >"$tmp/links"
    while read -r link; do
        case $link in
        http://* | https://* | '') continue ;;
        esac
        [ -e "$(dirname "$page")/$link" ] || fail "$page: link to $link"
    done <"$tmp/links"
done

# Names of files in backquotes, and of pages in comments of the code. A line that begins with
# a number and a file in backquotes tells a reader to write that file.
for page in $pages; do
    # shellcheck disable=SC2016
    grep -vE '^[0-9]\. `' "$page" | grep -oE '`[^` ]+`' | tr -d '`' |
        grep -E '^(src|test|docs|configs|datasets|bench|cmake|\.ci)/[A-Za-z0-9_./-]+$' | sort -u >"$tmp/names"
    while read -r name; do
        [ -e "$name" ] || [ -n "$(ls "$name"* 2>/dev/null)" ] || fail "$page: names $name"
    done <"$tmp/names"
done
grep -rhoE '(docs|datasets)/[A-Za-z0-9_/]+\.md' src test bench configs cmake .ci datasets/*.sh datasets/*/make.sh Makefile | sort -u >"$tmp/names"
while read -r name; do
    [ -f "$name" ] || fail "the code names $name"
done <"$tmp/names"

# Sections that comments point to.
grep -rhoE 'docs/(formats|numerics)\.md,? section [0-9]+' src test bench | sort -u |
    sed -E 's/,? section / /' >"$tmp/sections"
while read -r page section; do
    grep -qE "^## $section\. " "$page" || fail "$page has no section $section"
done <"$tmp/sections"

# Targets of make.
# shellcheck disable=SC2086
grep -hoE 'make [a-z]+`' $pages | sed -e 's/make //' -e 's/`//' | sort -u >"$tmp/names"
while read -r name; do
    grep -qE "^$name:" Makefile || fail "there is no 'make $name'"
done <"$tmp/names"

# Exit codes: one table, and a test that provokes each code in use.
sed -n '/^exit codes: /,$p' "$tmp/help" | tr '\n,' '  ' >"$tmp/known"
sed -n '/^| exit code/,/^$/s/^| \([0-9]*\) | \(.*\) |$/\1 \2/p' README.md >"$tmp/codes"
[ "$(wc -l <"$tmp/codes")" -gt 10 ] || fail "README.md has no table of exit codes"
while read -r code meaning; do
    case $meaning in
    *'not used yet'*) continue ;;
    esac
    grep -qE "^ *expect $code |-eq $code \]" test/e2e/exit_codes.sh || fail "no test ends with exit code $code"
    grep -q " $code " "$tmp/known" || fail "--help does not know exit code $code"
done <"$tmp/codes"

# YAML files that are configurations.
find configs bench datasets docs test/golden -name '*.yaml' >"$tmp/names"
while read -r file; do
    "$bin/tnet-train" "$file" --print-config >/dev/null 2>"$tmp/err" || fail "$file: $(head -n 3 "$tmp/err")"
done <"$tmp/names"

# YAML blocks: a file each in $tmp/yaml/<page>/.
for page in $pages; do
    to="$tmp/yaml/$(echo "$page" | tr / _)"
    mkdir -p "$to"
    awk -v to="$to" '
        /^```yaml$/ { n++; file = to "/" n ".yaml"; next }
        /^```yaml fragment$/ {
            n++; file = to "/" n ".yaml"
            print "data: {format: libsvm, train: x, valid: x}" >file
            next
        }
        /^```/      { file = ""; next }
        file != ""  { print > file }' "$page"
    for block in "$to"/*.yaml; do
        [ -f "$block" ] || continue
        "$bin/tnet-train" "$block" --print-config >/dev/null 2>"$tmp/err" ||
            fail "$page: $(basename "$block" .yaml). yaml block: $(head -n 3 "$tmp/err")"
    done
done

# The commands of the README, in a folder of their own.
mkdir -p "$tmp/try"
ln -s "$root/datasets" "$root/configs" "$tmp/try"
# named_blocks PAGE FOLDER: the page's YAML blocks that begin with their name, as files.
named_blocks() {
    for block in "$tmp/yaml/$(echo "$1" | tr / _)"/*.yaml; do
        [ -f "$block" ] || continue
        name=$(sed -n '1s/^# \([a-z]*\.yaml\)$/\1/p' "$block")
        [ -z "$name" ] || cp "$block" "$2/$name"
    done
}
named_blocks README.md "$tmp/try"
awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' README.md >"$tmp/commands"
[ -s "$tmp/commands" ] || fail "README.md has no commands"
(cd "$tmp/try" && PATH="$bin:$PATH" sh -eu "$tmp/commands") >"$tmp/out" 2>"$tmp/err" ||
    fail "README.md: a command failed: $(tail -n 3 "$tmp/err")"

# What `make run` does, with less data; in the sanitizers' builds it would take long.
if [ -f "$bin/libtnet.a" ]; then
    (cd "$tmp/try" && ROWS=6000 TNET_BIN="$bin" datasets/demo.sh) >"$tmp/out" 2>"$tmp/err" ||
        fail "datasets/demo.sh failed: $(tail -n 3 "$tmp/err")"
    grep -q '^export  *runs/widedeep/export/' "$tmp/out" || fail "datasets/demo.sh does not say where its export is"
fi

# The commands of the other pages, each page in a folder with what its readers have by then: small data where
# `make run` puts it, a configuration widedeep.yaml, a log a.csv, and where a page names runs/, that of the demo.
mkdir -p "$tmp/demo"
"$bin/tnet-data" gen -q preset=criteo zipf=1.5 rows=500 --to "$tmp/demo/train.tsv" >"$tmp/out"
"$bin/tnet-data" gen -q preset=criteo zipf=1.5 rows=500 first_row=500 --to "$tmp/demo/valid.tsv" >"$tmp/out"
cp "$tmp/demo/valid.tsv" "$tmp/demo/test.tsv"
# A library with a sanitizer in it wants a program that has one too.
instrumented() { grep -qsE '__(asan|tsan)_init' "$bin/libtnet.so"; }
commands_of() {
    awk '
        function flush() { if (ours && !skip) printf "%s", block; if (block != "") skip = 0; block = ""; ours = 0 }
        /^```/ { flush(); fence = !fence; sh = $0 == "```sh"; next }
        fence { if (sh) print; next }
        /^    / {
            line = substr($0, 5)
            block = block line "\n"
            if (line ~ /^([A-Z_]+=[^ ]* )*((build\/[a-z]+\/)?tnet-[a-z]+|build\/[a-z]+\/[a-z_]+|srun|mpirun|numactl) /) ours = 1
            next
        }
        /^<!-- not run: .* -->$/ { flush(); skip = 1; next }
        /^$/ { if (block != "") block = block "\n"; next }
        { flush(); skip = 0 }
        END { flush() }' "$1" | sed -E 's/(rows|first_row)=[0-9]+[kM]/\1=500/g'
}
for page in $pages; do
    [ "$page" != README.md ] || continue
    commands_of "$page" >"$tmp/commands"
    [ -s "$tmp/commands" ] || continue
    if grep -q runs/ "$tmp/commands" && { instrumented || [ ! -f "$bin/libtnet.a" ]; }; then
        continue # wants what make run leaves, and programs that link it
    fi
    rm -rf "$tmp/page"
    mkdir -p "$tmp/page/data" "$tmp/page/build"
    ln -s "$root/datasets" "$root/configs" "$root/docs" "$root/src" "$tmp/page"
    ln -s "$bin" "$tmp/page/build/release"
    ! grep -q runs/ "$tmp/commands" || cp -R "$tmp/try/runs" "$tmp/page"
    ln -s "$tmp/demo" "$tmp/page/data/demo"
    echo "include: [configs/widedeep.yaml]" >"$tmp/page/widedeep.yaml"
    printf 'label,u,i\n1,4,5\n0,4,6\n1,7,5\n' >"$tmp/page/a.csv"
    named_blocks "$page" "$tmp/page"
    (cd "$tmp/page" && PATH="$bin:$PATH" sh -eux "$tmp/commands") >"$tmp/out" 2>"$tmp/err" </dev/null ||
        fail "$page: a command failed: $(grep '^+ ' "$tmp/err" | tail -n 1): $(grep -v '^+ ' "$tmp/err" | tail -n 3)"
done

# The program of docs/serving.md scores a row of what the README exported.
awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' docs/serving.md >"$tmp/score.c"
if [ -f "$bin/libtnet.so" ] && ! instrumented; then
    cc -std=c99 -Wall -Werror -Isrc/serve -o "$tmp/score" "$tmp/score.c" -L"$bin" -ltnet -Wl,-rpath,"$bin" ||
        fail "docs/serving.md: the C program does not compile"
    "$tmp/score" "$tmp"/try/export/*/ | grep -qE ' 0\.[0-9]+$' ||
        fail "docs/serving.md: the C program does not score"
fi

# Samples: the same bytes every time.
TNET_BIN="$bin" datasets/samples.sh "$tmp/samples" >/dev/null 2>&1 || fail "datasets/samples.sh failed"
for file in datasets/samples/*; do
    case $file in
    *.yaml) continue ;; # names the folder
    esac
    cmp -s "$file" "$tmp/samples/$(basename "$file")" || fail "$file is not what datasets/samples.sh makes"
    "$bin/tnet-train" "$file.yaml" -q run.dir="$tmp/run" checkpoint.resume=never >/dev/null 2>"$tmp/err" ||
        fail "$file.yaml: $(tail -n 2 "$tmp/err")"
done

[ "$bad" -eq 0 ] && echo "docs_true.sh: all true"
exit "$bad"
