#!/bin/bash
# Makes an OCI image archive by hand, of one layer (no network, no docker).
# usage: mkimage.sh ARCHIVE NAME:TAG ROOT PATH COMMAND-AS-JSON     (ROOT is the folder that the layer is made of)
set -euo pipefail
archive=$1 name=$2 root=$3 path=$4 cmd=$5
sha() { sha256sum "$1" | cut -d' ' -f1; }
w=$(mktemp -d)
trap 'rm -rf "$w"' EXIT
mkdir -p "$w/blobs/sha256"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$root" -cf "$w/layer.tar" .
diff=$(sha "$w/layer.tar"); lsize=$(stat -c %s "$w/layer.tar")
mv "$w/layer.tar" "$w/blobs/sha256/$diff"
printf '{"architecture":"amd64","os":"linux","config":{"Env":["PATH=%s"],"Cmd":%s,"WorkingDir":"/"},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$path" "$cmd" "$diff" > "$w/cfg"
cfg=$(sha "$w/cfg"); csize=$(stat -c %s "$w/cfg"); mv "$w/cfg" "$w/blobs/sha256/$cfg"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":%s}]}' "$cfg" "$csize" "$diff" "$lsize" > "$w/man"
man=$(sha "$w/man"); msize=$(stat -c %s "$w/man"); mv "$w/man" "$w/blobs/sha256/$man"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"platform":{"architecture":"amd64","os":"linux"},"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' "$man" "$msize" "$name" "${name##*:}" > "$w/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' > "$w/oci-layout"
tar --sort=name -C "$w" -cf "$archive.$$" oci-layout index.json blobs
mv "$archive.$$" "$archive"
