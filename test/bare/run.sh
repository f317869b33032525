#!/bin/sh
# run.sh - runs the tests of the rooms in two bare worlds, so that none comes to need what some machines lack.
#
#     test/bare/run.sh [WORD..]     as root, every file of tests, or those that contain one of the words, as in 'test_base file'
#
# A world is a mount, network and process namespace: the checkout and the system's programs and libraries, which cannot be
# written, /proc, an empty /tmp, and null, zero and urandom in /dev. It has no file of /etc but what the loader reads, so
# no hosts and no passwd, no terminal, no /dev/shm, no network but lo without IPv6, no variable but PATH, and stdin is closed.
# In the world `root` root has the umask 022. In `nobody` a user without rights has the umask 077 and a TMPDIR of 70
# characters. The files of tests of build/strict run one on each core, for 120 seconds at most; what they print stays in
# build/bare/<world>. The exit code is 1 when one failed, and 77 when no world could be made.
set -eu
cd "$(dirname "$0")/../.."
here=$PWD
out=$here/build/bare
long=/tmp/a-folder-of-so-long-a-name-that-no-address-of-a-socket-in-it-fits

# world NAME USER UMASK [TMPDIR]: makes a world in the namespaces that this process has of its own, and runs the tests in it
world() {
    mount -t tmpfs -o mode=755 tmpfs "$out/world"
    cd "$out/world"
    mkdir -p usr dev etc proc tmp log ".$here"
    cp -P /bin /sbin /lib* .
    cp -a /etc/ld.so.cache /etc/alternatives etc
    mount -o bind,ro /usr usr
    mount -o bind,ro "$here" ".$here"
    mount --bind "$out/$1" log
    mount -t proc proc proc
    mount -t tmpfs -o mode=1777 tmpfs tmp
    for device in null zero urandom; do
        : >"dev/$device"
        mount --bind "/dev/$device" "dev/$device"
    done
    mount -o remount,ro "$out/world"
    [ -z "${4:-}" ] || mkdir -m 1777 ".$4"
    [ ! -d proc/sys/net/ipv6 ] || echo 1 >proc/sys/net/ipv6/conf/all/disable_ipv6
    ip link set lo up
    chroot . setpriv --reuid "$2" --regid "$2" --clear-groups \
        env -i PATH=/usr/bin:/bin ${4:+"TMPDIR=$4"} "$here/test/bare/run.sh" --inside "$3"
}

case ${1:-} in
--world)
    shift
    world "$@"
    exit
    ;;
--inside)
    umask "$2"
    exec xargs -L 1 -P "$(nproc)" test/bare/run.sh --one <build/bare/list
    ;;
--one)
    code=0
    timeout -k 10 120 "build/strict/$2" "$3" <&- >"/log/$2.$3" 2>&1 || code=$?
    echo "$code $2 $3" >>/log/codes
    exit
    ;;
esac

unshare -m -n -p --fork true 2>/dev/null || {
    echo "bare: nothing was tested, because a bare world needs root and its namespaces" >&2
    exit 77
}
umask 022
rm -rf "$out"
mkdir -p "$out/world"
cmake --preset strict >/dev/null
cmake --build build/strict -- --quiet
for program in build/strict/test_*; do
    "$program" 2>&1 </dev/null | sed -n "s/^    /${program##*/} /p" | grep . || echo "${program##*/} none"
done >"$out/all"
# No words are one that stands in every row.
printf '%s\n' "$@" | grep -F -f - "$out/all" >"$out/list" || {
    echo "bare: no file of tests holds '$*'" >&2
    exit 2
}
failed=
for name in root nobody; do
    user=0 mask=022 tmp=
    [ $name = root ] || user=65534 mask=077 tmp=$long
    install -d -o $user -g $user "$out/$name"
    unshare -m -n -p --fork --kill-child test/bare/run.sh --world $name $user $mask $tmp || {
        failed="$failed world:$name"
        continue
    }
    sed -n -E 's/^(0|77) //p' "$out/$name/codes" | grep -vxF -f - "$out/list" >"$out/$name/failed" || true
    while read -r program file; do
        failed="$failed $name:$program:$file"
        echo "== $program $file in the world '$name', exit code $(sed -n "s/ $program $file$//p" "$out/$name/codes")"
        cat "$out/$name/$program.$file"
    done <"$out/$name/failed"
done
skipped=$(cat "$out"/*/codes "$out"/*/test_* | awk '/^\[  SKIPPED \] [0-9]+ test/ { n += $4 } /^77 / { n++ } END { print n + 0 }')
echo "bare: $(wc -l <"$out/list") files of tests in 2 worlds, ${failed:+failed:}${failed:-all passed}; $skipped tests skipped"
[ -z "$failed" ]
