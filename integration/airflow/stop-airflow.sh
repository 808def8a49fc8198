#!/usr/bin/env bash
# stop-airflow.sh PREFIX - stop what start-airflow.sh started for PREFIX, and nothing else. Nothing is asked to end gently: an
# Airflow for tests has nothing to lose.
P=$(readlink -f "${1:?usage: stop-airflow.sh PREFIX}") || exit 0
here=$(dirname "$(readlink -f "$0")")
for pid in "$P"/run/*.pid; do
	[ ! -f "$pid" ] || "$here/component.sh" "$P" kill "$(basename "$pid" .pid)" &
done
wait
for data in "$P/pg" "$P/template"; do
	[ ! -s "$data/postmaster.pid" ] || kill -QUIT "$(head -1 "$data/postmaster.pid")" 2>/dev/null
done
exit 0
