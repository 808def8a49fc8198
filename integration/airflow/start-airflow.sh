#!/usr/bin/env bash
# start-airflow.sh - start a complete private Airflow on loopback, for integration tests.
#
#   start-airflow.sh [options] ENVIRONMENT PREFIX       (stop with: stop-airflow.sh PREFIX)
#
# ENVIRONMENT is a Python environment with Airflow 3 or 2, as clients/python/environment.sh makes it. Starts PostgreSQL,
# scheduler with LocalExecutor, triggerer, dag-processor and api-server (the webserver of Airflow 2). Everything they write is
# under PREFIX. Needs root, since PostgreSQL will not be root, and Debian's postgresql. The migrated database is kept in the user's
# cache, one per release of Airflow: it may be deleted. On success PREFIX/env.sh has the settings, AIRFLOW_URL among them.
#
#   --dags DIR        folder with the DAG files                          (default PREFIX/dags)
#   --base-port P     api-server P, PostgreSQL P+1, logs P+2, P+3        (default 18080)
#   --env K=V         a further setting of all components (repeatable)
#   --timeout S       seconds until all must be healthy                  (default 180)
#
# Every user is an administrator; scripts of Airflow 2 log in as admin, admin.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
port=18080 dags= timeout=180 extra=()
while [ $# -gt 0 ]; do case $1 in
	--dags) dags=$(readlink -f "$2"); shift 2;; --base-port) port=$2; shift 2;; --env) extra+=("$2"); shift 2;;
	--timeout) timeout=$2; shift 2;; -*) echo "unknown option $1" >&2; exit 2;; *) break;; esac; done
environment=${1:?usage: start-airflow.sh [options] ENVIRONMENT PREFIX}
P=${2:?usage: start-airflow.sh [options] ENVIRONMENT PREFIX}
mkdir -p "$P"; P=$(readlink -f "$P")
mkdir -p "$P"/{log,run,dags,home}; chmod 755 "$P"
dags=${dags:-$P/dags}
began=$SECONDS
say() { echo "start-airflow [$((SECONDS - began))s] $*"; }
die() {
	echo "start-airflow: FAILED: $1" >&2
	for log in "${@:2}"; do [ ! -f "$log" ] || { echo "--- tail of $log" >&2; tail -n 30 "$log" >&2; }; done
	"$here/stop-airflow.sh" "$P"
	exit 1
}
pgbin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
[ -n "$pgbin" ] || die "PostgreSQL is missing: apt-get install postgresql"
version=$("$environment/bin/python" -c 'from importlib.metadata import version; print(version("apache-airflow"))')
for p in 0 1 2 3; do
	! (exec 3<>"/dev/tcp/127.0.0.1/$((port + p))") 2>/dev/null || die "port $((port + p)) is already in use"
done

# ---------------------------------------------------------------- settings
# What dies is missed after seconds, not after minutes; what is slow, on a busy machine, is not taken for dead.
secret=$(head -c 48 /dev/urandom | base64 -w0)
{
	cat <<-ENV
	AIRFLOW_HOME=$P/home
	AIRFLOW_URL=http://127.0.0.1:$port
	AIRFLOW__CORE__DAGS_FOLDER=$dags
	AIRFLOW__CORE__LOAD_EXAMPLES=False
	AIRFLOW__CORE__EXECUTOR=LocalExecutor
	AIRFLOW__CORE__PARALLELISM=8
	AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG=512
	AIRFLOW__CORE__MAX_ACTIVE_RUNS_PER_DAG=512
	AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION=False
	AIRFLOW__CORE__DEFAULT_POOL_TASK_SLOT_COUNT=512
	AIRFLOW__CORE__FERNET_KEY=$(head -c 32 /dev/urandom | base64 | tr '+/' '-_')
	AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=postgresql+psycopg2://postgres@127.0.0.1:$((port + 1))/airflow
	AIRFLOW__DATABASE__SQL_ALCHEMY_POOL_SIZE=30
	AIRFLOW__DATABASE__SQL_ALCHEMY_MAX_OVERFLOW=20
	AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT=$((port + 2))
	AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT=$((port + 3))
	AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME=0.5
	AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC=2
	AIRFLOW__SCHEDULER__JOB_HEARTBEAT_SEC=2
	AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL=10
	AIRFLOW__SCHEDULER__PARSING_CLEANUP_INTERVAL=600
	AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC=2
	AIRFLOW__TRACES__OTEL_ON=False
	AIRFLOW__METRICS__STATSD_ON=False
	ENV
	case $version in
	2.*) cat <<-ENV
		AIRFLOW__API__AUTH_BACKENDS=airflow.api.auth.backend.basic_auth
		AIRFLOW__WEBSERVER__WEB_SERVER_PORT=$port
		AIRFLOW__WEBSERVER__WEB_SERVER_HOST=127.0.0.1
		AIRFLOW__WEBSERVER__WORKERS=1
		AIRFLOW__WEBSERVER__BASE_URL=http://127.0.0.1:$port
		AIRFLOW__WEBSERVER__SECRET_KEY=$secret
		AIRFLOW__SCHEDULER__STANDALONE_DAG_PROCESSOR=True
		AIRFLOW__SCHEDULER__SCHEDULER_ZOMBIE_TASK_THRESHOLD=30
		AIRFLOW__SCHEDULER__ZOMBIE_DETECTION_INTERVAL=3
		AIRFLOW__USAGE_DATA_COLLECTION__ENABLED=False
		ENV
		;;
	*) cat <<-ENV
		AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS=True
		AIRFLOW__CORE__EXECUTION_API_SERVER_URL=http://127.0.0.1:$port/execution/
		AIRFLOW__API__PORT=$port
		AIRFLOW__API__HOST=127.0.0.1
		AIRFLOW__API__WORKERS=1
		AIRFLOW__API__BASE_URL=http://127.0.0.1:$port
		AIRFLOW__API__SECRET_KEY=$secret
		AIRFLOW__API_AUTH__JWT_SECRET=$secret$secret
		AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT=30
		AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL=3
		AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL=4
		AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS=30
		AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT=60
		AIRFLOW__WORKERS__EXECUTION_API_RETRIES=10
		ENV
		;;
	esac
	[ ${#extra[@]} = 0 ] || printf '%s\n' "${extra[@]}"
} >"$P/settings"
sed "s/'/'\\\\''/g; s/^\([A-Za-z0-9_]*\)=\(.*\)/export \1='\2'/" "$P/settings" >"$P/env.sh"
echo "export PATH=$environment/bin:\$PATH" >>"$P/env.sh"
. "$P/env.sh"

# ---------------------------------------------------------------- database
as_postgres() { (cd / && runuser -u postgres -- "$@"); }
# start_postgres FOLDER PORT LOG. What a power cut would lose may be lost.
start_postgres() {
	install -o postgres -g postgres -m 644 /dev/null "$3"
	as_postgres "$pgbin/pg_ctl" -D "$1" -w -t 60 -l "$3" start \
		-o "-p $2 -c listen_addresses=127.0.0.1 -c unix_socket_directories=$1 -c fsync=off -c full_page_writes=off -c synchronous_commit=off -c max_connections=400" >/dev/null
}
# make_template FOLDER makes a database with Airflow's tables.
make_template() {
	local data=$P/template
	install -d -o postgres -g postgres -m 700 "$data"
	as_postgres "$pgbin/initdb" -D "$data" -A trust -U postgres -E UTF8 --locale C >"$P/log/initdb.log" 2>&1 || die "initdb" "$P/log/initdb.log"
	start_postgres "$data" $((port + 1)) "$P/log/postgres.log" || die "PostgreSQL" "$P/log/postgres.log"
	as_postgres createdb -h 127.0.0.1 -p $((port + 1)) airflow
	airflow db migrate >"$P/log/migrate.log" 2>&1 || die "airflow db migrate" "$P/log/migrate.log"
	case $version in 2.*)
		airflow users create -u admin -p admin -f admin -l admin -r Admin -e admin@example.org >"$P/log/user.log" 2>&1 || die "airflow users create" "$P/log/user.log";;
	esac
	as_postgres "$pgbin/pg_ctl" -D "$data" -w -m fast stop >/dev/null
	mkdir -p "$(dirname "$1")"
	mv "$data" "$1.$$"
	mv -T "$1.$$" "$1" 2>/dev/null || rm -rf "$1.$$" # somebody else was faster
}
# Of what the tables depend on: Airflow and its providers, PostgreSQL, and how they are made.
digest=$( (cd "$environment"/lib/python3*/site-packages && ls -d apache_airflow*.dist-info; echo "$pgbin"; declare -f make_template) | sha256sum | cut -c1-12)
template=${XDG_CACHE_HOME:-$HOME/.cache}/dagbridge/airflow/database-$version-$digest
if [ ! -d "$template" ]; then
	make_template "$template"
	say "migrated a database for Airflow $version"
fi
cp -a "$template" "$P/pg"
start_postgres "$P/pg" $((port + 1)) "$P/log/postgres.log" || die "PostgreSQL" "$P/log/postgres.log"

# ---------------------------------------------------------------- components
case $version in
2.*) web=webserver health=api/v1/health; auth=(-u admin:admin);;
*) web=api-server health=api/v2/monitor/health; auth=();;
esac
for component in $web dag-processor scheduler triggerer; do "$here/component.sh" "$P" start $component; done
healthy() {
	curl -sf -m 5 "${auth[@]}" "$AIRFLOW_URL/$health" 2>/dev/null | python3 -c '
import json, sys
said = json.load(sys.stdin)
sys.exit(any((said.get(c) or {}).get("status") != "healthy" for c in ("scheduler", "triggerer", "dag_processor")))' 2>/dev/null
}
until healthy; do
	[ $((SECONDS - began)) -lt "$timeout" ] || die "not healthy after $timeout s" "$P"/log/*.log
	sleep 0.5
done
say "READY Airflow $version at $AIRFLOW_URL; use: . $P/env.sh"
