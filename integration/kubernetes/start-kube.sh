#!/bin/bash
# Starts a whole Kubernetes on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and, unless NODE=0,
# containerd and a real kubelet. It ends when all of them are ready.
#
# Environment: KT_DIR (the folder that everything is under), KT_BIN (the program), KT_PORT (the API server's port, the first of
#   ten), NODE=0 (no node: root is not needed), NOFSYNC=1 (etcd without fsync), FEATURES=A=true,B=true (gates for all),
#   APISERVER_ARGS, KCM_ARGS, SCHED_ARGS, KUBELET_ARGS
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
D=$KT_DIR; BIN=$KT_BIN
PORT=$KT_PORT; EC=$((PORT+1)); EP=$((PORT+2)); KCM=$((PORT+3)); SCH=$((PORT+4)); KL=$((PORT+5)); KLH=$((PORT+6))
NODE=${NODE:-1}; NOFSYNC=${NOFSYNC:-0}; FEATURES=${FEATURES:-}
t0=$(date +%s.%N); el() { awk -v a="$t0" -v b="$(date +%s.%N)" 'BEGIN{printf "%.1f", b-a}'; }
say() { echo "[$(el)s] $*"; }

mkdir -p "$D"/{pki,log,commands}
[ -e "$D/pki/tokens.csv" ] || "$BIN" pki -dir "$D/pki" -server "https://127.0.0.1:$PORT"
cp "$D/pki/admin.kubeconfig" "$D/kubeconfig"
export KUBECONFIG=$D/kubeconfig
: > "$D/pids"

run() { # name command...   (own process group, log file, command and pid on record)
  local n=$1; shift
  printf '%q ' "$@" >"$D/commands/$n"
  setsid "$@" >"$D/log/$n.log" 2>&1 </dev/null &
  echo "$! $n" >> "$D/pids"
}
alive() { local n=$1 p; p=$(awk -v n="$n" '$2==n{print $1}' "$D/pids"); kill -0 "$p" 2>/dev/null || { echo "$n died:" >&2; tail -20 "$D/log/$n.log" >&2; exit 1; }; }
gates=(); [ -n "$FEATURES" ] && gates=(--feature-gates="$FEATURES")

run etcd "$BIN" etcd -data-dir "$D/etcd" -client-url "http://127.0.0.1:$EC" -peer-url "http://127.0.0.1:$EP" $([ "$NOFSYNC" = 1 ] && echo -unsafe-no-fsync)
run kube-apiserver "$BIN" kube-apiserver --etcd-servers="http://127.0.0.1:$EC" \
  --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$PORT" --endpoint-reconciler-type=none \
  --tls-cert-file="$D/pki/apiserver.crt" --tls-private-key-file="$D/pki/apiserver.key" \
  --client-ca-file="$D/pki/ca.crt" --token-auth-file="$D/pki/tokens.csv" --authorization-mode=Node,RBAC \
  --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$D/pki/sa.key" \
  --service-account-signing-key-file="$D/pki/sa.key" --service-cluster-ip-range=10.96.0.0/16 \
  --kubelet-preferred-address-types=InternalIP --allow-privileged=true --enable-priority-and-fairness=true \
  "${gates[@]}" ${APISERVER_ARGS:-}
ok=0; for _ in $(seq 600); do
  alive etcd; alive kube-apiserver
  "$BIN" kubectl get --raw /readyz >/dev/null 2>&1 && { ok=1; break; }; sleep 0.2
done; [ $ok = 1 ] || { echo "apiserver not ready" >&2; tail "$D/log/kube-apiserver.log" >&2; exit 1; }
say "apiserver ready"
run kube-controller-manager "$BIN" kube-controller-manager --kubeconfig="$D/pki/controller-manager.kubeconfig" \
  --authentication-kubeconfig="$D/pki/controller-manager.kubeconfig" --authorization-kubeconfig="$D/pki/controller-manager.kubeconfig" \
  --bind-address=127.0.0.1 --secure-port=$KCM --leader-elect=false --use-service-account-credentials=true \
  --service-account-private-key-file="$D/pki/sa.key" --root-ca-file="$D/pki/ca.crt" \
  --kube-api-qps=200 --kube-api-burst=400 --concurrent-job-syncs=10 \
  --node-monitor-grace-period=40s "${gates[@]}" ${KCM_ARGS:-}
run kube-scheduler "$BIN" kube-scheduler --kubeconfig="$D/pki/scheduler.kubeconfig" \
  --authentication-kubeconfig="$D/pki/scheduler.kubeconfig" --authorization-kubeconfig="$D/pki/scheduler.kubeconfig" \
  --bind-address=127.0.0.1 --secure-port=$SCH --leader-elect=false --kube-api-qps=200 --kube-api-burst=400 \
  "${gates[@]}" ${SCHED_ARGS:-}

if [ "$NODE" = 1 ]; then
  "$here/testcluster/node.sh" "$D" "$BIN" "$KL" "$KLH"
  alive kubelet
  for _ in $(seq 300); do
    alive kubelet; alive containerd
    [ "$("$BIN" kubectl get node 127.0.0.1 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = True ] && break; sleep 0.2
  done
  say "node: $("$BIN" kubectl get node --no-headers | tr -s ' ')"
fi
for _ in $(seq 300); do "$BIN" kubectl get serviceaccount default >/dev/null 2>&1 && break; sleep 0.2; done
say "ready; export KUBECONFIG=$D/kubeconfig"
