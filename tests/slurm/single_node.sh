#!/usr/bin/env bash
# The tiny study on a Slurm of one node, and what happens when Snakemake is killed there: tests/slurm/single_node.sh FOLDER
#
# As root, on Debian or Ubuntu; not part of .ci/run, because it installs Debian's packages slurm-wlm and munge and starts their
# daemons, which it ends again. `snakemake` on the PATH has sgtune and snakemake-executor-plugin-slurm. FOLDER is new: it
# gets a clone of this repository's HEAD and all files of the daemons. What it saw is printed at the end.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
cores=$(nproc)
export DEBIAN_FRONTEND=noninteractive
# Where srun looks inside a job, in which the plugin clears the variables of Slurm.
conf=/etc/slurm/slurm.conf
if [ -e $conf ]; then
    echo "$conf: this machine has a Slurm already; use another one" >&2
    exit 1
fi

# An installation may start the daemon.
has_munged=$(pgrep munged || true)
apt-get install -y --no-install-recommends slurm-wlm munge >"$work/apt.log" 2>&1
mkdir -p /etc/slurm
export USER="${USER:-root}"
ended() {
    scancel --quiet --user="$USER" || true
    pkill -F "$work/slurmd.pid" || true
    pkill -F "$work/slurmctld.pid" || true
    [ -n "$has_munged" ] || pkill munged || true
    rm -f $conf
}
trap ended EXIT
cat >$conf <<CONF
ClusterName=single
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
# Twice the cores that there are, so that jobs run beside those that a killed Snakemake left.
SlurmdParameters=config_overrides
# Without accounting, as on many small clusters; the times of all jobs are in a text file.
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc=$work/jobs.txt
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$((2 * cores)) RealMemory=$(free -m | awk '/Mem:/ {print int(0.9 * $2)}') State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
mkdir -p "$work/state" "$work/spool" /run/munge
touch "$work/jobs.txt"
chown munge: /run/munge
pgrep munged >/dev/null || su munge -s /bin/sh -c /usr/sbin/munged
slurmctld
slurmd
failed=0
until sinfo --noheader --format=%T | grep -q idle; do sleep 1; done

git clone --quiet "$root" "$work/clone"
cd "$work/clone"
mkdir "$work/profile"
sed "s/^cores: .*/cores: $cores/; s/^latency-wait: .*/latency-wait: 5/" profiles/slurm/profile.yaml >"$work/profile/profile.yaml"
submit=(snakemake --workflow-profile "$work/profile" --slurm-status-command squeue)

echo "== the tiny study, $cores cores"
if "${submit[@]}" --configfile tests/tiny.yaml >"$work/run.log" 2>&1; then echo "ended well"; else echo "FAILED"; failed=1; tail -n 40 "$work/run.log"; fi
grep -E "^[0-9]+ of [0-9]+ steps" "$work/run.log" | tail -n 1 || true

echo "== jobs that ran beside a timed one"
# The first line of a job's log has its number in Slurm; jobs.txt has when it ran, in seconds.
python3 - "$work" <<'PYTHON' || failed=1
import re
import sys
from pathlib import Path

work = Path(sys.argv[1])
profile = (work / "profile/profile.yaml").read_text()
timed = set(re.findall(r"^  (\w+):\n    slurm_extra: \"'--exclusive'\"", profile, re.M))
rules = {}
for log in (work / "clone/results/tiny/logs").rglob("*.log"):
    number = re.search(r"Slurm job (\d+)", log.read_text("utf-8").partition("\n")[0])
    if number:
        rules[number[1]] = log.relative_to(work / "clone/results/tiny/logs").as_posix()
spans = {}
for line in (work / "jobs.txt").read_text().splitlines():
    fields = dict(item.split("=", 1) for item in line.split() if "=" in item)
    spans[fields["JobId"]] = fields["StartTime"], fields["EndTime"]
alone = [number for number, log in rules.items() if set(Path(log).with_suffix("").parts) & timed]
beside = [
    (rules[number], rules.get(other, other))
    for number in alone
    for other in spans
    if other != number and spans[other][0] < spans[number][1] and spans[number][0] < spans[other][1]
]
print(f"{len(spans)} jobs, {len(alone)} of them timed; beside a timed one: {beside or 'none'}")
sys.exit(bool(beside) or not alone)
PYTHON

echo "== Snakemake is killed while a chain of NUTS runs"
printf 'run: killed\nreference: {n_warmup: 100, n_draws: 2000000, block: 20000}\n' >"$work/killed.yaml"
killed=(results/killed/reference/logistic/nuts.json --configfile tests/tiny.yaml "$work/killed.yaml")
logs=results/killed/logs/sample_nuts
"${submit[@]}" "${killed[@]}" >"$work/killed.log" 2>&1 &
head=$!
until grep -qs "Slurm job" $logs/logistic-0.log || ! kill -0 $head; do sleep 1; done
sleep 20
kill -KILL "$head"
sleep 5
running=$(squeue --noheader | wc -l)
echo "jobs that run on: $running"
[ "$running" -gt 0 ] || failed=1
"${submit[@]}" "${killed[@]}" --unlock >"$work/unlock.log" 2>&1
echo "started again beside them:"
if "${submit[@]}" "${killed[@]}" --retries 0 >"$work/again.log" 2>&1; then echo "FAILED: both worked on the same results"; failed=1; fi
grep -h "another process" -r $logs "$work/again.log" .snakemake/slurm_logs | sort -u || failed=1
scancel --user="$USER"
sleep 5
"${submit[@]}" "${killed[@]}" --unlock >"$work/unlock.log" 2>&1 || true
echo "after scancel:"
if "${submit[@]}" "${killed[@]}" >"$work/after.log" 2>&1; then echo "ended well"; else echo "FAILED"; failed=1; tail -n 40 "$work/after.log"; fi
grep -h "continues after iteration" $logs/*.log || { echo "no chain continued"; failed=1; }
exit $failed
