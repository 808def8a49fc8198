#!/bin/bash
# Starts containerd + kubelet as the node "127.0.0.1". Called by start-kube.sh.
# usage: node.sh STATE_DIR BINARY KUBELET_PORT HEALTHZ_PORT   (needs root, containerd, runc, CNI plugins)
set -euo pipefail
D=$1 BIN=$2 PORT=$3 HEALTH=$4; here=$(cd "$(dirname "$0")" && pwd)
C=$D/containerd; mkdir -p "$C"/{root,state,certs} "$D/cni" "$D/kubelet" "$D/manifests" "$D/podlogs"
run() { local n=$1; shift; setsid "$@" >"$D/log/$n.log" 2>&1 </dev/null & echo "$! $n" >> "$D/pids"; }
# With memory.use_hierarchy and cpuset on cgroup v1 new groups need these; harmless elsewhere.
cat > "$D/cni/10-kt.conflist" <<J
{"cniVersion":"1.0.0","name":"kt","plugins":[
 {"type":"bridge","bridge":"kt-br0","isGateway":false,"ipMasq":false,
  "ipam":{"type":"host-local","dataDir":"$D/cni/ipam","ranges":[[{"subnet":"10.244.0.0/24"}]]}}]}
J
cat > "$C/config.toml" <<T
version = 2
root = "$C/root"
state = "$C/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs","io.containerd.snapshotter.v1.zfs","io.containerd.snapshotter.v1.aufs","io.containerd.snapshotter.v1.devmapper","io.containerd.internal.v1.opt"]
[grpc]
  address = "$C/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${CNI_BIN:-/usr/lib/cni}"
    conf_dir = "$D/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$C/certs"
T
run containerd containerd --config "$C/config.toml"
for _ in $(seq 100); do ctr -a "$C/containerd.sock" version >/dev/null 2>&1 && break; sleep 0.1; done
img=${KT_IMAGES:-$D/images}; [ -e "$img/busybox.tar" ] || "$here/mkimages.sh" "$img" >/dev/null
for i in pause busybox; do ctr -a "$C/containerd.sock" -n k8s.io image import "$img/$i.tar" >/dev/null; done
# Few pods at once: a kubelet whose runtime is too slow to answer starts a program twice. Swap, cgroup v1 and a node that cannot set negative oom scores are all allowed for.
cat > "$D/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: $PORT
readOnlyPort: 0
healthzPort: $HEALTH
healthzBindAddress: 127.0.0.1
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupsPerQOS: true
cgroupRoot: /kubetest
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: false
makeIPTablesUtilChains: false
containerRuntimeEndpoint: unix://$C/containerd.sock
podLogsDir: $D/podlogs
containerLogMaxSize: 100Mi
staticPodPath: $D/manifests
resolvConf: ""
clusterDomain: cluster.local
rotateCertificates: false
serverTLSBootstrap: false
registerNode: true
nodeStatusUpdateFrequency: 5s
syncFrequency: 5s
runtimeRequestTimeout: 2m
oomScoreAdj: ${OOM_SCORE_ADJ:-0}
maxPods: 30
serializeImagePulls: false
kubeAPIQPS: 100
kubeAPIBurst: 200
eventRecordQPS: 100
localStorageCapacityIsolation: true
evictionHard: {memory.available: 200Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
imageGCHighThresholdPercent: 99
imageGCLowThresholdPercent: 98
volumePluginDir: $D/kubelet/volumeplugins
$([ -n "${FEATURES:-}" ] && { echo featureGates:; echo "$FEATURES" | tr ',' '\n' | sed 's/\(.*\)=\(.*\)/  \1: \2/'; })
Y
for c in cpu cpuacct cpuset memory devices freezer blkio pids systemd hugetlb perf_event net_cls net_prio; do [ -d /sys/fs/cgroup/$c ] && mkdir -p /sys/fs/cgroup/$c/kubetest; done
if [ -d /sys/fs/cgroup/cpuset/kubetest ]; then
  for f in cpuset.cpus cpuset.mems; do cat /sys/fs/cgroup/cpuset/$f > /sys/fs/cgroup/cpuset/kubetest/$f; done
fi
# The kubelet sets these sysctls; stop-kube.sh puts the old values back.
for k in vm/overcommit_memory kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  [ -e /proc/sys/$k ] && echo "$k $(cat /proc/sys/$k)"; done > "$D/sysctl.saved"
run kubelet "$BIN" kubelet --config="$D/kubelet.yaml" --kubeconfig="$D/pki/node.kubeconfig" \
  --hostname-override=127.0.0.1 --root-dir="$D/kubelet" --cert-dir="$D/kubelet/pki" ${KUBELET_ARGS:-}
