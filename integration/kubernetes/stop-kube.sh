#!/bin/bash
# Stops what start-kube.sh started (by pid) and removes its state unless KEEP=1.
D=$KT_DIR
[ -e "$D/pids" ] || { echo "nothing to stop"; exit 0; }
# kubelet first, then the pods' sandboxes, then the rest in reverse order of their start
kp=$(awk '$2=="kubelet"{print $1}' "$D/pids"); [ -n "$kp" ] && kill "$kp" 2>/dev/null
if [ -S "$D/containerd/containerd.sock" ]; then
  ctr="ctr -a $D/containerd/containerd.sock -n k8s.io"
  $ctr task ls -q 2>/dev/null | while read -r t; do [ -n "$t" ] && $ctr task kill -s KILL "$t" >/dev/null 2>&1; done
  sleep 0.5
  $ctr task ls -q 2>/dev/null | while read -r t; do [ -n "$t" ] && $ctr task rm -f "$t" >/dev/null 2>&1; done
  $ctr container ls -q 2>/dev/null | while read -r t; do [ -n "$t" ] && $ctr container rm "$t" >/dev/null 2>&1; done
fi
tac "$D/pids" | while read -r p n; do kill "$p" 2>/dev/null; done
for _ in $(seq 100); do
  left=0; while read -r p n; do kill -0 "$p" 2>/dev/null && left=1; done < "$D/pids"; [ $left = 0 ] && break; sleep 0.1
done
while read -r p n; do kill -0 "$p" 2>/dev/null && { echo "killing $n ($p)"; kill -9 "$p"; }; done < "$D/pids"
# shims, mounts and network namespaces that belong to this cluster only
for p in $(pgrep -f "containerd-shim.*$D/containerd/containerd.sock" 2>/dev/null); do kill -9 "$p" 2>/dev/null; done
awk -v d="$D/" 'index($2,d)==1{print $2}' /proc/mounts | sort -r | while read -r m; do umount -l "$m" 2>/dev/null; done
for f in "$D"/netns/*; do [ -e "$f" ] && umount "$f" 2>/dev/null; done
[ -e "$D/sysctl.saved" ] && while read -r k v; do echo "$v" > "/proc/sys/$k"; done < "$D/sysctl.saved"
ip link del kt-br0 2>/dev/null
for c in /sys/fs/cgroup/*/kubetest /sys/fs/cgroup/kubetest; do [ -d "$c" ] && find "$c" -depth -type d -exec rmdir {} \; 2>/dev/null; done
rm -f "$D/pids"; [ "${KEEP:-0}" = 1 ] || rm -rf "$D"
echo stopped
