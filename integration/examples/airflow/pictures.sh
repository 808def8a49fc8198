#!/usr/bin/env bash
# pictures.sh - what the examples look like: Airflow's grid, and squeue at that moment, into the folder pictures beside this.
#
# Needs root, Debian's chromium, and what the tests against Slurm and Airflow need; starts a Slurm, an Airflow and a gateway of its
# own on loopback and ends them. Not part of the tests: run it when the pictures have become untrue (make pictures).
#
#   BASE_PORT     forty ports from here are free        (default 29300)
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../../..")
base=${BASE_PORT:-29300}
command -v chromium >/dev/null || { echo "chromium is missing: apt-get install chromium" >&2; exit 1; }
P=$(mktemp -d /tmp/pictures.XXXXXX)
chmod 755 "$P"
gateway=
finish() {
	"$root/integration/airflow/stop-airflow.sh" "$P/airflow" || true
	[ -z "$gateway" ] || kill "$gateway" || true
	"$root/integration/slurm/stop-slurm.sh" "$P/slurm" >/dev/null || true
	rm -rf "$P"
}
trap finish EXIT

"$root/integration/slurm/start-slurm.sh" --base-port "$base" "$P/slurm"
. "$P/slurm/env.sh"
mkdir "$P/slurm/jobs"
cat >"$P/gateway.yaml" <<-YAML
	listen: {grpc: "127.0.0.1:$((base + 30))", http: "127.0.0.1:$((base + 31))"}
	data: $P/data
	clusters: [{name: hpc, slurm: {cli: {}, workDir: $P/slurm/jobs, pollInterval: 1s}}]
YAML
(cd "$root" && go build -o "$P/dagbridge" ./cmd/dagbridge)
"$P/dagbridge" serve --config "$P/gateway.yaml" >"$P/gateway.log" 2>&1 &
gateway=$!
mkdir "$P/dags"
cp "$here"/*.py "$here"/*.yaml "$P/dags"
sed -i 's/sleep 0.5/sleep 10/' "$P/dags/chain.py" # time for a picture
environment=$("$root/clients/python/environment.sh" airflow-3.3)
"$root/integration/airflow/start-airflow.sh" --base-port $((base + 20)) --dags "$P/dags" --timeout 600 \
	--env "AIRFLOW_CONN_DAGBRIDGE_DEFAULT={\"conn_type\": \"dagbridge\", \"host\": \"127.0.0.1\", \"port\": $((base + 31))}" \
	--env PATH="$environment/bin:$PATH" --env SLURM_CONF="$SLURM_CONF" "$environment" "$P/airflow"
url=http://127.0.0.1:$((base + 20))
token=$(curl -sf "$url/auth/token" | python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')

ask() { curl -sf -H "Authorization: Bearer $token" -H 'Content-Type: application/json' "$@"; }
# until_so SECONDS COMMAND...: waits until it succeeds
until_so() {
	local deadline=$((SECONDS + $1))
	until "${@:2}" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$deadline" ] || { echo "not within $1 s: ${*:2}" >&2; tail -n 20 "$P"/airflow/log/*.log "$P/gateway.log" >&2; exit 1; }
		sleep 0.5
	done
}
trigger() {
	until_so 300 ask "$url/api/v2/dags/$1"
	ask -X PATCH "$url/api/v2/dags/$1" -d '{"is_paused": false}' >/dev/null
	ask -X POST "$url/api/v2/dags/$1/dagRuns" -d "{\"dag_run_id\": \"$2\", \"logical_date\": null}" >/dev/null
}
# state DAG RUN TASK STATE: whether the task is in it
state() { ask "$url/api/v2/dags/$1/dagRuns/$2/taskInstances/$3" | grep "\"state\": *\"$4\""; }
queue() { squeue --sort=i -o "%12i %.19j %.9T %.13r %E" >"$here/pictures/$1.txt"; }
picture() {
	chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 --window-size=1200,640 \
		--user-data-dir="$P/chromium" --virtual-time-budget=60000 --timeout=120000 --screenshot="$here/pictures/$1.png" "$url/dags/$2" >"$P/chromium.log" 2>&1
}
running() { [ "$(squeue -h -t R | wc -l)" -ge "$1" ]; }

# The chain by deferrable tasks, with one job at a time.
trigger chain monday
until_so 300 state chain monday train deferred
queue chain
picture chain chain/runs/monday
until_so 300 state chain monday deploy success

# The chain that is handed in at once: while nothing may start, all of it is in the queue.
scontrol update PartitionName=main State=DOWN
trigger chain_submitted monday
until_so 300 state chain_submitted monday 'done' deferred
queue chain_submitted
picture chain_submitted chain_submitted/runs/monday
scontrol update PartitionName=main State=UP
until_so 300 state chain_submitted monday 'done' success

# The 300 simulations and their report.
scontrol update PartitionName=main State=DOWN
trigger risk monday
until_so 300 state risk monday simulations deferred
picture risk risk/runs/monday
scontrol update PartitionName=main State=UP
until_so 300 running 8
queue risk
ls -l "$here/pictures"
