#!/bin/sh
# install.sh - what `cmake --install` puts into a folder works there, and after the folder has moved: programs, completions,
# manual pages, the schema, and the libraries by pkg-config and by find_package. No file knows where it was built.
set -u
bin=$(cd "${TNET_BIN:?folder of the programs}" && pwd)
root=$(pwd)
[ -z "${TNET_SANITIZE:-}" ] && [ -f "$bin/libtnet.a" ] || exit 77 # instrumented libraries want instrumented programs
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
fail() {
    echo "install.sh: $*" >&2
    bad=1
}
must() { "$@" >"$tmp/out" 2>&1 || { fail "$* ends with $?: $(tail -n 5 "$tmp/out")"; exit 1; }; }

# Installed, staged for a package, and moved: the same files.
must cmake --install "$bin" --prefix "$tmp/first"
DESTDIR=$tmp/stage must cmake --install "$bin" --prefix /opt/tnet
diff -r "$tmp/first" "$tmp/stage/opt/tnet" >"$tmp/diff" || fail "DESTDIR changes files: $(head -n 3 "$tmp/diff")"
at=$tmp/moved/tnet
mkdir "$tmp/moved"
mv "$tmp/first" "$at"
for path in "$bin" "$root/" "$tmp/first"; do
    found=$(grep -rlF -e "$path" "$at")
    [ -z "$found" ] || fail "these files name $path: $found"
done

# Programs, each with its page and its completions.
PATH=$at/bin:$PATH
programs=$(cd "$bin" && ls tnet-*)
[ "$(echo "$programs" | wc -l)" -ge 6 ] || fail "fewer than six programs: $programs"
for program in $programs; do
    [ "$(command -v "$program")" = "$at/bin/$program" ] || fail "$program is not installed"
    "$program" --man | cmp -s - "$at/share/man/man1/$program.1" || fail "the manual page of $program is not its own"
    bash -c "source '$at/share/bash-completion/completions/$program'; complete -p $program" >"$tmp/out" 2>&1 ||
        fail "bash does not complete $program: $(cat "$tmp/out")"
    grep -q "^#compdef $program$" "$at/share/zsh/site-functions/_$program" || fail "zsh does not complete $program"
    grep -q "^complete -c $program " "$at/share/fish/vendor_completions.d/$program.fish" || fail "fish does not complete $program"
done
# completed WORD..: what bash offers for the last word
completed() {
    # shellcheck disable=SC2016
    bash -c '. "$0/share/bash-completion/completions/$1"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "_${1//-/_}" && echo "${COMPREPLY[*]}"' "$at" "$@"
}
[ "$(completed tnet-train --no-such)" = '' ] || fail "bash completes an option that is not there"
[ "$(completed tnet-train --dry)" = --dry-run ] || fail "bash does not complete --dry: $(completed tnet-train --dry)"
[ "$(completed tnet-train train.epoc)" = train.epochs= ] || fail "bash does not complete train.epoc: $(completed tnet-train train.epoc)"
[ "$(completed tnet-data samp)" = sample ] || fail "bash does not complete tnet-data samp: $(completed tnet-data samp)"
[ "$(completed tnet-data sample --shar)" = --share ] || fail "bash does not complete tnet-data sample --shar"
for page in tnet tnet_train; do
    cmp -s "$root/docs/man/$page.3" "$at/share/man/man3/$page.3" || fail "the manual page $page(3) is not installed"
done
grep -q '"title":"TNet configuration"' "$at/share/tnet/tnet.schema.json" || fail "the schema is not there"

# A model to score.
cd "$tmp" || exit 1
must tnet-data infer "$root/datasets/samples/clicks.csv" --to clicks.yaml
must tnet-train -q clicks.yaml train.epochs=1
must tnet-export clicks.yaml --to export
set -- export/*/
[ $# -eq 1 ] || fail "one export is expected: $*"
awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$root/docs/serving.md" >score.c
scores() {
    LD_LIBRARY_PATH=$at/lib must "$1" export/*/
    grep -qE ' 0\.[0-9]+$' "$tmp/out" || fail "$1 does not score: $(cat "$tmp/out")"
}

# The library by pkg-config, shared and static.
export PKG_CONFIG_PATH="$at/lib/pkgconfig"
for name in "$PKG_CONFIG_PATH"/*.pc; do
    must pkg-config --validate "$(basename "$name" .pc)"
done
# shellcheck disable=SC2046
must cc -std=c99 score.c $(pkg-config --cflags --libs tnet) -o by-pc
# shellcheck disable=SC2046
must cc -std=c99 score.c $(pkg-config --cflags tnet) "$at/lib/libtnet.a" $(pkg-config --static --libs-only-l tnet | sed 's/-ltnet//') -o by-archive
scores ./by-pc
scores ./by-archive
[ "$(pkg-config --modversion tnet)" = "$(tnet-train --version | cut -d' ' -f2)" ] || fail "tnet.pc has another version than the programs"

# And by the CMake package, with the library that trains where there is one.
mkdir use
cat >use/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.20)
project(use C)
find_package(tnet 0.1 REQUIRED)
add_executable(shared ../score.c)
target_link_libraries(shared tnet::tnet)
add_executable(static ../score.c)
target_link_libraries(static tnet::static)
if(TARGET tnet::train)
  add_executable(train ../train.c)
  target_link_libraries(train tnet::train)
endif()
EOF
if [ -f "$at/include/tnet_train.h" ]; then
    printf '#include <tnet_train.h>\nint main(void) { tnet_run_free(0); return 0; }\n' >train.c
    # shellcheck disable=SC2046
    must cc -std=c99 train.c $(pkg-config --cflags --libs tnet-train) -o train-by-pc
    LD_LIBRARY_PATH=$at/lib must ./train-by-pc
fi
must cmake -S use -B use/build -DCMAKE_PREFIX_PATH="$at"
must cmake --build use/build
scores use/build/shared
scores use/build/static
[ ! -f train.c ] || must use/build/train

[ "$bad" -eq 0 ] && echo "install.sh: installed, moved, linked and completed"
exit "$bad"
