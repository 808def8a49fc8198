#!/bin/bash
# Makes two tiny OCI image archives by hand (no network, no docker):
#   localhost/pause:1    - a static "sleep forever" (busybox sleep)
#   localhost/busybox:1  - busybox-static with applet links, and bash
# usage: mkimages.sh OUTDIR     (needs Debian's busybox-static and bash-static)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1; mkdir -p "$out"; out=$(cd "$out" && pwd)
bb=/bin/busybox
r=$(mktemp -d); trap 'rm -rf "$r"' EXIT
mkdir -p "$r/pause/bin"; cp $bb "$r/pause/bin/sleep"
"$here/mkimage.sh" "$out/pause.tar" localhost/pause:1 "$r/pause" /bin '["/bin/sleep","2147483647"]'
mkdir -p "$r/bb"/{bin,usr,tmp,etc,proc,sys,dev,root}; chmod 1777 "$r/bb/tmp"; cp $bb "$r/bb/bin/busybox"
for a in $($bb --list); do [ "$a" = busybox ] || ln -sf busybox "$r/bb/bin/$a"; done
cp /bin/bash-static "$r/bb/bin/bash"; ln -s ../bin "$r/bb/usr/bin"
echo 'root:x:0:0:root:/root:/bin/sh' > "$r/bb/etc/passwd"
"$here/mkimage.sh" "$out/busybox.tar" localhost/busybox:1 "$r/bb" /bin '["/bin/sh"]'
