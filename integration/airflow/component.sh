#!/usr/bin/env bash
# component.sh PREFIX start|kill|stop NAME : one component of an Airflow made by start-airflow.sh, for failure tests.
# NAME: scheduler triggerer dag-processor api-server (Airflow 2: webserver). start does not wait. kill = KILL, stop = TERM, both of
# all its processes, its workers included, as a container ends; both wait. A component is a session of its own: its processes are
# the session's.
set -euo pipefail
P=$(readlink -f "${1:?prefix}") action=${2:?action} name=${3:?component}
session() { [ -f "$P/run/$name.pid" ] && ps -o pid=,stat= -s "$(cat "$P/run/$name.pid")" | awk '$2 !~ /^Z/ {print $1}' || true; }
end() {
	for try in $(seq 1200); do
		pids=$(session)
		[ -n "$pids" ] || { rm -f "$P/run/$name.pid"; return; }
		# TERM goes to the component alone, which passes it on; what is left after a while is killed
		case $1.$try in
		TERM.1) kill -TERM "$(cat "$P/run/$name.pid")" 2>/dev/null || true;;
		KILL.* | TERM.[6-9][0-9][0-9]) kill -KILL $pids 2>/dev/null || true;;
		esac
		sleep 0.05
	done
	echo "$name does not end" >&2
	exit 1
}
case $action in
kill) end KILL;;
stop) end TERM;;
start)
	[ -z "$(session)" ] || { echo "$name is running" >&2; exit 1; }
	. "$P/env.sh"
	cd "$P/home"
	setsid bash -c 'echo $$ >"$1"; exec airflow "$2"' - "$P/run/$name.pid" "$name" >>"$P/log/$name.log" 2>&1 </dev/null &
	until [ -s "$P/run/$name.pid" ]; do sleep 0.02; done
	;;
*) echo "unknown action $action" >&2; exit 2;;
esac
