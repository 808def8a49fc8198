#!/bin/bash
# Makes two tiny OCI image archives by hand (no network, no docker):
#   localhost/pause:1    - a static "sleep forever" (busybox sleep)
#   localhost/busybox:1  - busybox-static with applet links, and bash
# usage: mkimages.sh OUTDIR     (needs Debian's busybox-static and bash-static)
set -euo pipefail
out=$1; mkdir -p "$out"; out=$(cd "$out" && pwd)
bb=/bin/busybox
sha() { sha256sum "$1" | cut -d' ' -f1; }
mkimage() { # name  cmd-json  rootfs-dir
  local name=$1 cmd=$2 root=$3 w; w=$(mktemp -d)
  mkdir -p "$w/blobs/sha256"
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$root" -cf "$w/layer.tar" .
  local diff; diff=$(sha "$w/layer.tar"); local lsize; lsize=$(stat -c %s "$w/layer.tar")
  mv "$w/layer.tar" "$w/blobs/sha256/$diff"
  printf '{"architecture":"amd64","os":"linux","config":{"Env":["PATH=/bin"],"Cmd":%s,"WorkingDir":"/"},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$cmd" "$diff" > "$w/cfg"
  local cfg csize; cfg=$(sha "$w/cfg"); csize=$(stat -c %s "$w/cfg"); mv "$w/cfg" "$w/blobs/sha256/$cfg"
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":%s}]}' "$cfg" "$csize" "$diff" "$lsize" > "$w/man"
  local man msize; man=$(sha "$w/man"); msize=$(stat -c %s "$w/man"); mv "$w/man" "$w/blobs/sha256/$man"
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"platform":{"architecture":"amd64","os":"linux"},"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' "$man" "$msize" "$name" "${name##*:}" > "$w/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' > "$w/oci-layout"
  local f; f=$(basename "${name%%:*}").tar
  tar --sort=name -C "$w" -cf "$out/$f" oci-layout index.json blobs
  rm -rf "$w"; echo "$name -> $out/$f"
}
r=$(mktemp -d); trap 'rm -rf "$r"' EXIT
mkdir -p "$r/pause/bin"; cp $bb "$r/pause/bin/sleep"
mkimage localhost/pause:1 '["/bin/sleep","2147483647"]' "$r/pause"
mkdir -p "$r/bb"/{bin,usr,tmp,etc,proc,sys,dev,root}; chmod 1777 "$r/bb/tmp"; cp $bb "$r/bb/bin/busybox"
for a in $($bb --list); do [ "$a" = busybox ] || ln -sf busybox "$r/bb/bin/$a"; done
cp /bin/bash-static "$r/bb/bin/bash"; ln -s ../bin "$r/bb/usr/bin"
echo 'root:x:0:0:root:/root:/bin/sh' > "$r/bb/etc/passwd"
mkimage localhost/busybox:1 '["/bin/sh"]' "$r/bb"
