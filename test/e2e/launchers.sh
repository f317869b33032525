#!/bin/sh
# launchers.sh - real launchers: what mpirun and Slurm tell their processes is enough to know rank, size and rank 0.
#
# Slurm is a controller and two nodes of this machine, in a folder of their own and at ports of their own. What is not
# installed is left out with a line that says so.
. "$(dirname "$0")/kit"
show=$bin/test_cluster
[ -x "$show" ] || {
    echo "skipped: needs test_cluster"
    exit 77
}
left_out=0

# lines WANT..: what the processes said, sorted, is this
lines() {
    sort "$dir/out" >"$dir/said"
    for want in "$@"; do
        grep -qE "^$want\$" "$dir/said" || fail "no line '$want' in: $(cat "$dir/said")"
    done
    [ "$(wc -l <"$dir/said")" -eq $# ] || fail "not $# lines: $(cat "$dir/said")"
}

if command -v mpirun >/dev/null; then
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        timeout 60 mpirun --oversubscribe -np 3 "$show" launcher show runs/x >"$dir/out" 2>"$dir/err" || fail "mpirun: $(cat "$dir/err")"
    socket=ipc://runs/x/sockets
    lines "0 of 3 root $socket/0.sock bind $socket/0.sock host - meet -: rank 0 of 3 by MPI, job .*" \
        "1 of 3 root $socket/0.sock bind $socket/1.sock host - meet -: rank 1 of 3 by MPI, job .*" \
        "2 of 3 root $socket/0.sock bind $socket/2.sock host - meet -: rank 2 of 3 by MPI, job .*"
    echo "$name: mpirun"
else
    echo "left out: mpirun is not installed"
    left_out=$((left_out + 1))
fi

# Waits, at most 30 s, until both nodes are idle.
nodes_are_up() {
    for _ in $(seq 300); do
        [ "$(sinfo -h -o '%T %D' 2>"$dir/null")" = "idle 2" ] && return 0
        sleep .1
    done
    return 1
}

start_slurm() {
    base=$((20000 + $$ % 20000))
    here=$(hostname)
    cat >"$dir/slurm.conf" <<END
ClusterName=tnet
SlurmctldHost=$here(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
CredType=cred/none
SlurmctldPort=$base
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/ctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
NodeName=n01 NodeHostname=$here NodeAddr=127.0.0.1 Port=$((base + 1)) CPUs=1 State=UNKNOWN
NodeName=n02 NodeHostname=$here NodeAddr=127.0.0.1 Port=$((base + 2)) CPUs=1 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES OverSubscribe=FORCE State=UP
END
    mkdir "$dir/state" "$dir/spool.n01" "$dir/spool.n02"
    export SLURM_CONF="$dir/slurm.conf"
    slurmctld -D -f "$SLURM_CONF" >"$dir/ctld.log" 2>&1 &
    children="$children $!"
    for node in n01 n02; do
        slurmd -D -f "$SLURM_CONF" -N $node >"$dir/$node.log" 2>&1 &
        children="$children $!"
    done
    nodes_are_up
}

# tasks [OPTION ..]: what the tasks of a step say
tasks() {
    timeout 60 srun -N2 --overcommit "$@" "$show" launcher show runs/x >"$dir/out" 2>"$dir/err" || fail "srun $*: $(cat "$dir/err" "$dir/out")"
}

if command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v srun >/dev/null; then
    PATH=$PATH:/usr/sbin
    if start_slurm; then
        port='2[0-9]{4}|3[01][0-9]{3}'
        own='tcp://.*:0'
        tasks -n3
        lines "0 of 3 root tcp://n01:($port) bind tcp://n01:($port) host n01 meet -: rank 0 of 3 by Slurm, job 1.0" \
            "1 of 3 root tcp://n01:($port) bind $own host n01 meet -: rank 1 of 3 by Slurm, job 1.0" \
            "2 of 3 root tcp://n01:($port) bind $own host n02 meet -: rank 2 of 3 by Slurm, job 1.0"
        tasks -n4 -m cyclic
        cut -d' ' -f 1,9 "$dir/out" | sort | tr '\n' ' ' >"$dir/hosts"
        [ "$(cat "$dir/hosts")" = "0 n01 1 n02 2 n01 3 n02 " ] || fail "cyclic: $(cat "$dir/hosts")"
        tasks -n4 -m plane=2
        cut -d' ' -f 1,9 "$dir/out" | sort | tr '\n' ' ' >"$dir/hosts"
        [ "$(cat "$dir/hosts")" = "0 n01 1 n01 2 n02 3 n01 " ] || fail "plane: $(cat "$dir/hosts")"
        TNET_BIND=lo TNET_PORT=5555 tasks -n2
        lines "0 of 2 root tcp://n01:5555 bind tcp://lo:5555 host n01 meet -: .*" \
            "1 of 2 root tcp://n01:5555 bind tcp://lo:0 host n02 meet -: .*"
        # a batch script is no task of a step
        printf '#!/bin/sh\n#SBATCH -N2 -n2 --overcommit -o %s/out\n%s launcher show runs/x\n' "$dir" "$show" >"$dir/job.sh"
        timeout 60 sbatch --wait "$dir/job.sh" >"$dir/null" || fail "sbatch"
        lines "0 of 1 root - bind - host - meet -: alone: in a Slurm job .*"
        echo "$name: Slurm"
    else
        echo "left out: Slurm does not start here: $(tail -n 3 "$dir/ctld.log" "$dir/n01.log" "$dir/n02.log" | tr '\n' ' ')"
        left_out=$((left_out + 1))
    fi
else
    echo "left out: slurmctld, slurmd or srun is not installed"
    left_out=$((left_out + 1))
fi
[ "$left_out" -lt 2 ] || exit 77
