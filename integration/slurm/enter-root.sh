#!/usr/bin/env bash
# enter-root.sh ROOT PREFIX : run in a mount namespace of its own by start-slurm.sh. Makes ROOT this namespace's /, with this
# machine's devices, users, names and /tmp in it, else read-only, says "ready", and stays, for others to enter by its pid.
set -euo pipefail
ROOT=$1 PREFIX=$2
mount --bind "$ROOT" "$ROOT"
mount -t tmpfs tmpfs "$ROOT/run"
touch "$ROOT/run/testbed"; mkdir -m 755 "$ROOT/run/sshd" # where the unprivileged part of an sshd is locked up
for d in /proc /dev /sys /tmp; do mount --rbind $d "$ROOT$d"; done
case $PREFIX in /tmp/*) ;; *) mkdir -p "$ROOT$PREFIX"; mount --bind "$PREFIX" "$ROOT$PREFIX";; esac
for f in passwd group shadow hosts; do [ ! -e /etc/$f ] || mount --bind /etc/$f "$ROOT/etc/$f"; done
mount -o remount,bind,ro "$ROOT" # all clusters share it
cd "$ROOT"
pivot_root . mnt # not chroot: container runtimes pivot themselves
umount --lazy /mnt
echo ready
exec sleep infinity
