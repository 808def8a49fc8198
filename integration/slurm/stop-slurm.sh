#!/usr/bin/env bash
# stop-slurm.sh PREFIX - stop what start-slurm.sh started for PREFIX, and nothing else.
# A pid is only signalled when /proc/PID/environ carries SLURM_TESTBED=PREFIX.
P=$(readlink -f "${1:?usage: stop-slurm.sh PREFIX}") || exit 0; [ -d "$P/run" ] || exit 0
mine(){ { [ -r "/proc/$1/environ" ] && tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | grep -qx "SLURM_TESTBED=$P"; } 2>/dev/null; }
stop(){ local f="$P/run/$1.pid" pid; [ -f "$f" ] || return 0; pid=$(cat "$f")
  if [ -n "$pid" ] && mine "$pid"; then kill -"${2:-TERM}" "$pid" 2>/dev/null
    for _ in $(seq 1 200); do mine "$pid" || break; sleep 0.05; done   # a zombie (slow reaper) counts as ended
    mine "$pid" && kill -KILL "$pid" 2>/dev/null; fi; rm -f "$f"; }
if [ -x "$P/bin/scancel" ] && [ -f "$P/run/slurmctld.pid" ] && mine "$(cat "$P/run/slurmctld.pid")"; then
  timeout 10 "$P/bin/scancel" --state=RUNNING --user=root >/dev/null 2>&1
  for u in $("$P/bin/squeue" -h -o %u 2>/dev/null | sort -u); do timeout 10 "$P/bin/scancel" -u "$u" >/dev/null 2>&1; done
  for _ in $(seq 1 30); do [ -z "$("$P/bin/squeue" -h -t R,CG -o %i 2>/dev/null | head -1)" ] && break; sleep 0.1; done
fi
stop slurmrestd KILL   # 22.05's slurmrestd takes seconds to end on TERM and holds no state
for f in "$P"/run/slurmd-*.pid; do [ -f "$f" ] && stop "$(basename "$f" .pid)" & done; wait
stop slurmctld; stop slurmdbd; stop mariadb; stop munged
# step daemons that outlived slurmd
for d in /proc/[0-9]*; do pid=${d#/proc/}; [ "$pid" != $$ ] && [ "$(cat "$d/comm" 2>/dev/null)" = slurmstepd ] && mine "$pid" && kill -KILL "$pid"; done
stop root   # the last one, if any: its mounts go with it
exit 0
