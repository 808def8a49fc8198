#!/usr/bin/env bash
# build-root.sh SUITE DIR : makes DIR, a root file system of a Debian suite with its Slurm. Root and debootstrap are needed,
# and the mirror that this machine's own apt uses. Does nothing when DIR is there: it is built beside it and renamed at the
# end. Two who build at once wait for each other.
set -euo pipefail
SUITE=${1:?suite} DIR=${2:?folder}
# a mount namespace of its own, so that no mount outlives the script
[ "${BUILD_ROOT:-}" = private ] || BUILD_ROOT=private exec unshare --mount --propagation private bash "$0" "$@"

mkdir -p "$(dirname "$DIR")"
exec 9>"$DIR.lock"; flock 9
[ -e "$DIR" ] && exit 0
NEW=$DIR.new; rm -rf "$NEW"
MIRROR=$(apt-get indextargets --format '$(REPO_URI)' | grep -E '/debian/?$' | head -1)
# Slurm, and what the tests have beside it: sshd and sudo for a login node, two container runtimes, a clock to move
PACKAGES="slurmctld slurmd slurmdbd slurmrestd slurm-client slurm-wlm-basic-plugins slurm-wlm-mysql-plugin slurm-wlm-jwt-plugin
  munge mariadb-server-core mariadb-client openssh-server sudo runc charliecloud-runtime libfaketime"

script=/usr/share/debootstrap/scripts/$SUITE
[ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid # a suite newer than this machine knows
debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$NEW" "${MIRROR:-http://deb.debian.org/debian}" "$script" 9>&-
printf '#!/bin/sh\nexit 101\n' >"$NEW/usr/sbin/policy-rc.d"; chmod 755 "$NEW/usr/sbin/policy-rc.d" # no service is started
# a suite that moves on may have a release file that is out of date by this machine's clock
echo 'Acquire::Languages "none"; APT::Install-Recommends "false"; Acquire::Check-Valid-Until "false";' >"$NEW/etc/apt/apt.conf.d/90tests"
cp /etc/resolv.conf "$NEW/etc/resolv.conf"
mount -t proc proc "$NEW/proc"
chroot "$NEW" apt-get update 9>&-
DEBIAN_FRONTEND=noninteractive chroot "$NEW" apt-get install -y --no-install-recommends $PACKAGES 9>&-
chroot "$NEW" apt-get clean
umount "$NEW/proc"
mv "$NEW" "$DIR"
