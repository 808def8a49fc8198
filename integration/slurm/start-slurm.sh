#!/usr/bin/env bash
# start-slurm.sh - start a complete private Slurm cluster on loopback, for integration tests.
#
#   start-slurm.sh [options] PREFIX        (stop with: stop-slurm.sh PREFIX)
#
# Starts munged, mariadbd, slurmdbd, slurmctld, N slurmd and slurmrestd (JWT; TCP + UNIX socket).
# Everything (conf, state, logs, pids, sockets) lives under PREFIX; nothing in /etc/slurm is read or written.
# Idempotent: if the cluster of PREFIX is already up and answering, it only reports that.
#
#   --nodes N         fake nodes, one slurmd each                            (default 2)
#   --cpus C          fake CPUs per node (config_overrides)                  (default 8)
#   --mem MB          fake memory per node                                   (default 8000)
#   --gpus G          fake GPUs per node, of types a100 and h100 in turn     (default 2)
#   --base-port P     slurmctld=P slurmdbd=P+1 slurmrestd=P+2 mariadb=P+3 slurmd=P+10..P+10+N-1 (default 26817)
#   --users a,b       unix users to create (if absent) and put in account "test"  (default slurmtest,slurmtest2)
#   --set K=V         extra/overriding slurm.conf line (repeatable)
#   --no-accounting   no mariadb, no slurmdbd (faster; no sacct, no dependencies on finished jobs after MinJobAge)
#   --root DIR        the Slurm of another Debian, in DIR (see build-root.sh), seen by this cluster's processes as / ;
#                     /tmp, PREFIX and the users are this machine's
#   --no-install      fail instead of apt-get install when programs are missing
#   --timeout S       seconds to wait for each service to answer              (default 30)
#   --fresh           stop a running one and wipe PREFIX first
#
# On success writes PREFIX/env.sh (SLURM_CONF, SLURMRESTD_URL, SLURMRESTD_SOCK, PATH...) and wrappers PREFIX/bin/*.
# On failure exits 1 after "start-slurm: FAILED at <step>: <why>" and the tail of the log concerned.
set -uo pipefail
HERE=$(dirname "$(readlink -f "$0")")
NODES=2 CPUS=8 MEM=8000 GPUS=2 BASE=26817 USERS=slurmtest,slurmtest2 ACCT=1 ROOT= INSTALL=1 TMO=30 FRESH=0
EXTRA=()
while [ $# -gt 0 ]; do case $1 in
  --nodes) NODES=$2; shift 2;; --cpus) CPUS=$2; shift 2;; --mem) MEM=$2; shift 2;; --gpus) GPUS=$2; shift 2;;
  --base-port) BASE=$2; shift 2;; --users) USERS=$2; shift 2;; --set) EXTRA+=("$2"); shift 2;;
  --no-accounting) ACCT=0; shift;; --root) ROOT=$(readlink -f "$2"); shift 2;;
  --no-install) INSTALL=0; shift;; --timeout) TMO=$2; shift 2;; --fresh) FRESH=1; shift;;
  -h|--help) sed -n '2,25p' "$0"; exit 0;; -*) echo "unknown option $1" >&2; exit 2;; *) break;; esac; done
P=${1:?usage: start-slurm.sh [options] PREFIX}; mkdir -p "$P"; P=$(readlink -f "$P")
T0=$(date +%s.%N)
el(){ awk -v a="$T0" -v b="$(date +%s.%N)" 'BEGIN{printf "%.1f",b-a}'; }
say(){ echo "start-slurm [$(el)s] $*"; }
die(){ echo "start-slurm: FAILED at $1: $2" >&2; [ -n "${3:-}" ] && [ -f "$3" ] && { echo "--- tail of $3" >&2; tail -n 25 "$3" >&2; }
       [ "${STARTED:-0}" = 1 ] && "$HERE/stop-slurm.sh" "$P" >/dev/null 2>&1; exit 1; }
[ "$(id -u)" = 0 ] || die args "must run as root (slurmd has to switch users)"
[ ${#P} -le 80 ] || die args "PREFIX too long for UNIX sockets (max 80 chars): $P"
CTLD=$BASE DBD=$((BASE+1)) REST=$((BASE+2)) SQL=$((BASE+3)) SLURMD0=$((BASE+10))
[ $FRESH = 1 ] && { "$HERE/stop-slurm.sh" "$P" >/dev/null 2>&1; rm -rf "${P:?}"/*; }

# ---------------------------------------------------------------- already up?
if [ -f "$P/env.sh" ] && "$P/bin/scontrol" ping 2>/dev/null | grep -q 'is UP'; then say "already up: . $P/env.sh"; exit 0; fi
"$HERE/stop-slurm.sh" "$P" >/dev/null 2>&1   # leftovers of a half-started one

# ---------------------------------------------------------------- users, folders
mkdir -p "$P"/{etc,run,log,bin,dev,state,spool,sql,out}; chmod 755 "$P" "$P"/*; chmod 1777 "$P/out"
getent passwd slurm >/dev/null || { groupadd -r slurm 2>/dev/null; useradd -r -g slurm -d /nonexistent -s /usr/sbin/nologin slurm; }
SU=slurm; IFS=, read -ra UL <<<"$USERS"
uid=20001
for u in "${UL[@]}"; do [ -z "$u" ] && continue; getent passwd "$u" >/dev/null && continue
  while getent passwd $uid >/dev/null; do uid=$((uid+1)); done
  useradd -u $uid -U -M -d "$P/out" -s /bin/bash "$u" || die users "useradd $u"; done
chown slurm: "$P/state" "$P/log"; chown -R slurm: "$P/state"; mkdir -p "$P/munge"; chmod 700 "$P/munge"

# ---------------------------------------------------------------- another root
# The process root.pid holds a mount namespace in which ROOT is /. What this cluster runs enters it; nobody else sees its
# mounts, and they go with its last process.
inroot(){ if [ -n "$ROOT" ]; then nsenter --target "$(cat "$P/run/root.pid")" --mount "$@"; else "$@"; fi; }
if [ -n "$ROOT" ]; then
  SLURM_TESTBED="$P" setsid unshare --mount --propagation private "$HERE/enter-root.sh" "$ROOT" "$P" >"$P/log/root.out" 2>&1 </dev/null & echo $! >"$P/run/root.pid"
  STARTED=1
  for _ in $(seq 600); do grep -q ready "$P/log/root.out" && break; sleep 0.05; done
  grep -q ready "$P/log/root.out" || die root "its mounts cannot be made" "$P/log/root.out"
fi

# ---------------------------------------------------------------- packages
need="slurmctld slurmd slurmrestd munged sbatch scontrol"; [ $ACCT = 1 ] && need="$need slurmdbd mariadbd sacct"
miss=$(inroot bash -c 'for b in '"$need"'; do command -v $b >/dev/null || echo $b; done')
if [ -n "$miss" ]; then
  [ $INSTALL = 1 ] && [ -z "$ROOT" ] || die packages "missing programs: $miss"
  say "installing packages (missing: $(echo $miss))"
  created_policy=0; pol=/usr/sbin/policy-rc.d
  [ -e "$pol" ] || { printf '#!/bin/sh\nexit 101\n' >"$pol"; chmod 755 "$pol"; created_policy=1; }  # don't start system services
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends slurmctld slurmd slurmdbd \
    slurmrestd slurm-client slurm-wlm-basic-plugins slurm-wlm-mysql-plugin slurm-wlm-jwt-plugin munge \
    mariadb-server-core mariadb-client-core; } >"$P/apt.log" 2>&1 || die packages "apt-get install failed" "$P/apt.log"
  [ $created_policy = 1 ] && rm -f "$pol"
fi
VER=$(inroot slurmctld -V | awk '{print $NF}')

# ---------------------------------------------------------------- configuration
[ -s "$P/munge/munge.key" ] || { dd if=/dev/urandom of="$P/munge/munge.key" bs=128 count=1 status=none; chmod 400 "$P/munge/munge.key"; }
[ -s "$P/etc/jwt_hs256.key" ] || dd if=/dev/urandom of="$P/etc/jwt_hs256.key" bs=32 count=1 status=none
chown slurm: "$P/etc/jwt_hs256.key"; chmod 600 "$P/etc/jwt_hs256.key"
HOST=$(hostname -s)
GRES= TYPES=(a100 h100)
for i in $(seq 0 $((GPUS-1))); do GRES+=,gpu:${TYPES[i%2]}:1; done
{ cat <<CONF
ClusterName=testbed
SlurmctldHost=$HOST(127.0.0.1)
SlurmUser=$SU
SlurmctldPort=$CTLD
AuthType=auth/munge
AuthInfo=socket=$P/run/munge.sock
CredType=cred/munge
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=$P/etc/jwt_hs256.key
StateSaveLocation=$P/state
SlurmctldPidFile=$P/run/slurmctld.self.pid
SlurmdPidFile=$P/run/slurmd-%n.self.pid
SlurmdSpoolDir=$P/spool/%n
SlurmctldLogFile=$P/log/slurmctld.log
SlurmdLogFile=$P/log/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
GresTypes=gpu,lustre
Licenses=matlab:4
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=1,sched_interval=5,bf_interval=2,sched_min_interval=100000,default_queue_depth=1000
MinJobAge=300
InactiveLimit=0
KillWait=2
SlurmctldTimeout=30
SlurmdTimeout=60
MessageTimeout=30
MaxArraySize=10001
MaxJobCount=50000
JobRequeue=1
CONF
  [ $ACCT = 1 ] && cat <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$DBD
AccountingStoragePass=$P/run/munge.sock
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment,job_env,job_script
TrackWCKey=yes
CONF
  echo "NodeName=n[1-$NODES] NodeHostname=$HOST NodeAddr=127.0.0.1 Port=[$SLURMD0-$((SLURMD0+NODES-1))] CPUs=$CPUS CoresPerSocket=$CPUS Sockets=1 ThreadsPerCore=1 RealMemory=$MEM TmpDisk=1000 Feature=ib Gres=lustre:4$GRES"
  echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 State=UP OverSubscribe=NO"
  echo "PartitionName=short Nodes=ALL MaxTime=1 DefaultTime=1 State=UP"
} >"$P/etc/slurm.conf"
for kv in "${EXTRA[@]}"; do k=${kv%%=*}; sed -i "/^$k=/d" "$P/etc/slurm.conf"; echo "$kv" >>"$P/etc/slurm.conf"; done
# runc runs the bundles of --container; what it keeps of a container belongs to the job's user. It takes the place of the shell
# that starts it: of a shell that SIGTERM ends proctrack/linuxproc finds no children, so that a program which ignores SIGTERM
# would outlive its job and have the node drained.
cat >"$P/etc/oci.conf" <<'CONF'
RunTimeQuery="runc --root=/tmp/runc-%u/ state %n.%u.%j.%s.%t"
RunTimeKill="runc --root=/tmp/runc-%u/ kill -a %n.%u.%j.%s.%t"
RunTimeDelete="runc --root=/tmp/runc-%u/ delete --force %n.%u.%j.%s.%t"
RunTimeRun="exec runc --root=/tmp/runc-%u/ run %n.%u.%j.%s.%t -b %b"
CONF
echo "NodeName=n[1-$NODES] Name=lustre Count=4" >"$P/etc/gres.conf"
for i in $(seq 0 $((GPUS-1))); do
  [ -e "$P/dev/gpu$i" ] || { mknod "$P/dev/gpu$i" c 1 3 && chmod 666 "$P/dev/gpu$i"; }
  echo "NodeName=n[1-$NODES] Name=gpu Type=${TYPES[i%2]} File=$P/dev/gpu$i" >>"$P/etc/gres.conf"
done
# no cgroups: CgroupPlugin=disabled exists from 23.11 on
case $VER in 2[0-2].*|23.02*) :>"$P/etc/cgroup.conf";; *) echo CgroupPlugin=disabled >"$P/etc/cgroup.conf";; esac
if [ $ACCT = 1 ]; then
  cat >"$P/etc/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$P/run/munge.sock
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=$P/etc/jwt_hs256.key
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$DBD
SlurmUser=$SU
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$SQL
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
LogFile=$P/log/slurmdbd.log
PidFile=$P/run/slurmdbd.self.pid
TrackWCKey=yes
DebugLevel=info
CONF
  chown $SU: "$P/etc/slurmdbd.conf"; chmod 600 "$P/etc/slurmdbd.conf"
fi
export SLURM_CONF=$P/etc/slurm.conf SLURM_TESTBED=$P
for c in sbatch srun salloc squeue sacct sacctmgr scancel scontrol sinfo sprio sdiag sstat scrontab sattach sbcast sreport; do
  { echo '#!/bin/sh'; echo "export SLURM_CONF=$P/etc/slurm.conf"
    # inside the root there is nothing to enter
    [ -z "$ROOT" ] || echo "[ -e /run/testbed ] || exec nsenter --target $(cat "$P/run/root.pid") --mount /bin/sh -c 'cd \"\$0\" 2>/dev/null || cd /; exec \"\$@\"' \"\$PWD\" /usr/bin/$c \"\$@\""
    echo "exec /usr/bin/$c \"\$@\""; } >"$P/bin/$c"
  chmod 755 "$P/bin/$c"; done
cat >"$P/env.sh" <<W
export SLURM_CONF=$P/etc/slurm.conf SLURM_TESTBED_PREFIX=$P SLURM_TESTBED_VERSION=$VER
export SLURMRESTD_URL=http://127.0.0.1:$REST SLURMRESTD_SOCK=$P/run/slurmrestd.sock SLURM_JWT_KEY_FILE=$P/etc/jwt_hs256.key
export PATH=$P/bin:\$PATH
W

# ---------------------------------------------------------------- daemons
# spawn NAME COMMAND...: own session, pid in PREFIX/run/NAME.pid, marker SLURM_TESTBED in its environment
STARTED=1
spawn(){ local n=$1; shift
  [ -z "$ROOT" ] || set -- nsenter --target "$(cat "$P/run/root.pid")" --mount "$@"
  { echo '#!/bin/bash'; printf 'exec '; printf '%q ' setsid env -u SLURM_JWT SLURM_TESTBED="$P" SLURM_CONF="$SLURM_CONF" ${SPAWN_ENV:-} "$@"; echo; } >"$P/run/$n.cmd"
  bash "$P/run/$n.cmd" >>"$P/log/$n.out" 2>&1 </dev/null & echo $! >"$P/run/$n.pid"; }   # restart one: daemon.sh
alive(){ kill -0 "$(cat "$P/run/$1.pid")" 2>/dev/null; }
# wait_for STEP LOG TEST...: poll every 0.1 s; fail when the daemon STEP dies or after --timeout
wait_for(){ local s=$1 log=$2 end=$(( $(date +%s) + TMO )); shift 2
  until "$@" >"$P/log/wait.out" 2>&1; do
    [ -f "$P/run/$s.pid" ] && ! alive "$s" && die "$s" "the daemon exited at once" "$log"
    [ "$(date +%s)" -ge $end ] && die "$s" "no answer within $TMO s to: $* (last said: $(tail -c 400 "$P/log/wait.out" | tr '\n' ' '))" "$log"
    sleep 0.1; done; }
port_open(){ (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
for pt in $CTLD $REST $SLURMD0 $([ $ACCT = 1 ] && echo $DBD $SQL); do port_open $pt && { STARTED=0; die ports "127.0.0.1:$pt is already in use (choose --base-port)"; }; done
: >"$P/log/slurmctld.log"; chown slurm: "$P/log/slurmctld.log"

spawn munged munged --foreground --force --socket="$P/run/munge.sock" --key-file="$P/munge/munge.key" \
  --pid-file="$P/munge/munged.pid" --log-file="$P/munge/munged.log" --seed-file="$P/munge/seed" --num-threads=4
if [ $ACCT = 1 ]; then
  SQLU=root; mkdir -p "$P/sql.tmp"   # several that make their system tables at once drop one another's temporary ones
  if [ ! -d "$P/sql/mysql" ]; then
    inroot mariadb-install-db --no-defaults --datadir="$P/sql" --tmpdir="$P/sql.tmp" --user=$SQLU --auth-root-authentication-method=normal \
      --skip-test-db --skip-name-resolve --skip-log-bin >"$P/log/install-db.out" 2>&1 || die mariadb "mariadb-install-db failed" "$P/log/install-db.out"; fi
  printf "CREATE DATABASE IF NOT EXISTS slurm_acct_db;CREATE USER IF NOT EXISTS 'slurm'@'127.0.0.1' IDENTIFIED BY 'slurm';GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1';\n" | tr ';' '\n' | sed 's/$/;/;/^;$/d' >"$P/etc/init.sql"
  spawn mariadb mariadbd --no-defaults --datadir="$P/sql" --tmpdir="$P/sql.tmp" --user=$SQLU --socket="$P/run/mysql.sock" --pid-file="$P/run/mysql.self.pid" \
    --bind-address=127.0.0.1 --port=$SQL --skip-name-resolve --innodb-buffer-pool-size=128M --innodb-log-file-size=64M \
    --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=0 --sync-binlog=0 --innodb-doublewrite=0 --max-allowed-packet=64M \
    --performance-schema=OFF --init-file="$P/etc/init.sql" --log-error="$P/log/mariadb.log"
  wait_for mariadb "$P/log/mariadb.log" port_open $SQL; say "mariadb up"
fi
wait_for munged "$P/munge/munged.log" test -S "$P/run/munge.sock"
if [ $ACCT = 1 ]; then
  spawn slurmdbd setpriv --reuid=$SU --regid=$SU --init-groups slurmdbd -D
  # slurmdbd.conf is found next to SLURM_CONF
  wait_for slurmdbd "$P/log/slurmdbd.log" "$P/bin/sacctmgr" -n -P show cluster; say "slurmdbd up"
  if ! "$P/bin/sacctmgr" -nP show cluster format=cluster | grep -qx testbed; then
    "$P/bin/sacctmgr" -i add cluster testbed >"$P/log/sacctmgr.out" 2>&1 || die sacctmgr "add cluster" "$P/log/sacctmgr.out"
    "$P/bin/sacctmgr" -i add account test Description=test Organization=test >>"$P/log/sacctmgr.out" 2>&1 || die sacctmgr "add account" "$P/log/sacctmgr.out"
    "$P/bin/sacctmgr" -i add qos high priority=1000 >>"$P/log/sacctmgr.out" 2>&1
    "$P/bin/sacctmgr" -i add user $(echo "$USERS" | tr ',' ' ' | sed 's/ *$//;s/ /,/g') account=test qos=normal,high defaultqos=normal >>"$P/log/sacctmgr.out" 2>&1 || die sacctmgr "add users" "$P/log/sacctmgr.out"
    say "accounts made"
  fi
fi
spawn slurmctld slurmctld -D -i
for i in $(seq 1 $NODES); do mkdir -p "$P/spool/n$i"; spawn slurmd-n$i slurmd -D -N n$i; done
wait_for slurmctld "$P/log/slurmctld.log" bash -c "'$P/bin/scontrol' ping | grep -q 'is UP'"; say "slurmctld up"
rm -f "$P/run/slurmrestd.sock"; chmod 1777 "$P/run"
# without slurmdbd, slurmrestd dies ("slurm not configured with slurmdbd") unless only the slurmctld plugins are loaded
if [ $ACCT = 0 ]; then case $VER in 22.*) RESTD_ARGS="-s v0.0.36,v0.0.37,v0.0.38";; *) RESTD_ARGS="-s slurmctld";; esac; fi
SPAWN_ENV="SLURM_JWT=daemon" spawn slurmrestd setpriv --reuid=nobody --regid=nogroup --clear-groups slurmrestd ${RESTD_ARGS:-} \
  -t 16 "127.0.0.1:$REST" "unix:$P/run/slurmrestd.sock"
nodes_ready(){ [ "$("$P/bin/sinfo" -h -N -o '%N %T' | grep -E ' (idle|mixed|allocated)$' | awk '{print $1}' | sort -u | wc -l)" -ge "$NODES" ]; }
wait_for slurmd-n1 "$P/log/slurmd-n1.log" nodes_ready; say "$NODES slurmd up"
wait_for slurmrestd "$P/log/slurmrestd.out" port_open $REST
TOK=$("$P/bin/scontrol" token lifespan=60 2>/dev/null | sed -n 's/^SLURM_JWT=//p'); [ -n "$TOK" ] || die jwt "scontrol token gave nothing" "$P/log/slurmctld.log"
rest_ok(){ [ "$(curl -s -o /dev/null -w '%{http_code}' -H "X-SLURM-USER-NAME: root" -H "X-SLURM-USER-TOKEN: $TOK" "http://127.0.0.1:$REST/openapi/v3")" = 200 ]; }
wait_for slurmrestd "$P/log/slurmrestd.out" rest_ok; say "slurmrestd up"
say "READY slurm $VER ($NODES nodes x $CPUS cpus, $GPUS gpus) in $(el) s; use: . $P/env.sh"
