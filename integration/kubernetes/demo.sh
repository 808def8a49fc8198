#!/bin/bash
# Runs the example pipeline on a Kubernetes that this starts and ends: `make demo-kubernetes`. Needs root, and what the tests
# against Kubernetes need.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dagbridge=$1
exec 9>"${TMPDIR:-/tmp}/dbkube.lock" # there is one cluster with a node at a time on a machine
flock 9
KT_BIN=$("$here/testcluster/build.sh")
KT_DIR=$(mktemp -d /tmp/dbkube-XXXXXX)
export KT_BIN KT_DIR KT_PORT=${KT_PORT:-16443} NOFSYNC=1
gateway=
stop() {
	[ -z "$gateway" ] || { kill "$gateway" 2>/dev/null; wait "$gateway" 2>/dev/null; } || true
	"$here/stop-kube.sh" >/dev/null 2>&1 9>&- || true
	rm -rf "$KT_DIR"
}
trap stop EXIT
"$here/start-kube.sh" 9>&-
cat >"$KT_DIR/dagbridge.yaml" <<Y
listen: {grpc: "127.0.0.1:0", http: "127.0.0.1:0"}
data: $KT_DIR/data
clusters:
  - name: k8s
    kubernetes: {kubeconfig: $KT_DIR/kubeconfig, image: "localhost/busybox:1"}
Y
"$dagbridge" serve --config "$KT_DIR/dagbridge.yaml" >"$KT_DIR/serving" 2>"$KT_DIR/log/gateway.log" 9>&- &
gateway=$!
until grep -q "gRPC " "$KT_DIR/serving"; do
	kill -0 "$gateway" || { cat "$KT_DIR/log/gateway.log" >&2; exit 1; }
	read -rt 0.1 <> <(:) || true
done
DAGBRIDGE_SERVER=$(sed -n 's/.*gRPC \([^,]*\),.*/\1/p' "$KT_DIR/serving")
export DAGBRIDGE_SERVER
say() { printf '\n$ %s\n' "$*"; "$@"; }
PATH=$(dirname "$dagbridge"):$PATH
cd "$here/../.."
say dagbridge run -f integration/examples/ml-pipeline.yaml --wait
say dagbridge list --task report
job=$(dagbridge list --task report -o json | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' | head -1)
say dagbridge get "$job"
say dagbridge logs "$job"
say dagbridge output "$job"
say "$KT_BIN" kubectl --kubeconfig "$KT_DIR/kubeconfig" get jobs,pods -l dagbridge.io/task=report
