#!/bin/bash
# Prints the archive of localhost/dagbridge-kfp:1, made when it is absent: the image of clients/python/Containerfile, of what this
# machine has in place of a registry's python image. In it are busybox, this machine's Python at the place where it is here, the
# environment of the tests with KFP's SDK, and our wheel. What is made of other sources is another file.
# (needs what mkimages.sh and clients/python/environment.sh need)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
project=$here/../../../clients/python
environment=$("$project/environment.sh" kfp)
python=$environment/bin/python
sources=$({
	cat "$here"/mk*.sh "$project/pyproject.toml"
	(cd "$project" && find src -type f -not -path '*/__pycache__/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
	echo "$environment"
} | sha256sum | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dagbridge/kubernetes
archive=$cache/dagbridge-kfp-$sources.tar
mkdir -p "$cache"
exec 9>"$cache/dagbridge-kfp.lock"
flock 9
[ ! -e "$archive" ] || { echo "$archive"; exit 0; }
rm -f "$cache"/dagbridge-kfp-*.tar
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,usr,tmp,etc,proc,sys,dev,root}
chmod 1777 "$root/tmp"
cp /bin/busybox "$root/bin"
for a in $(/bin/busybox --list); do [ "$a" = busybox ] || ln -sf busybox "$root/bin/$a"; done
ln -s ../bin "$root/usr/bin"
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"

# Python and the environment, both at their places: they hold their own paths.
read -r base library < <("$python" -c 'import sys, sysconfig; print(sys._base_executable, sysconfig.get_path("stdlib"))')
base=$(realpath "$base")
mkdir -p "$root$(dirname "$base")"
cp "$base" "$root$base"
named=$(readlink "$environment/bin/python") # a link to it, where it has several names
[ "$named" = "$base" ] || { mkdir -p "$root$(dirname "$named")" && ln -sf "$base" "$root$named"; }
tar -C / --exclude='*/test' --exclude='*/idlelib' --exclude='*/ensurepip' --exclude='__pycache__' --exclude='*/site-packages/*' -cf - "${library#/}" "${environment#/}/bin" | tar -C "$root" -xf -
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
tar -C / --exclude='__pycache__' --exclude='_editable_impl_dagbridge*' --exclude='dagbridge-*.dist-info' -cf - "${environment#/}/pyvenv.cfg" "${packages#/}" | tar -C "$root" -xf -

# Our wheel is an archive of what goes there.
dev=$("$project/environment.sh" dev)
"$dev/bin/uv" build --quiet --wheel --no-build-isolation --python "$dev/bin/python" --out-dir "$work" "$project" >&2
"$python" -m zipfile -e "$work"/dagbridge-*.whl "$root$packages"

# The libraries that all of this loads.
{ echo "$root$base"; find "$root" -name '*.so' -o -name '*.so.*'; } | xargs ldd 2>/dev/null |
	sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*\) (.*/\1/p' | sort -u | while read -r file; do
	[ -e "$root$file" ] || { mkdir -p "$root$(dirname "$file")" && cp -L "$file" "$root$file"; }
done
"$here/mkimage.sh" "$archive" localhost/dagbridge-kfp:1 "$root" "$environment/bin:/bin" '["/bin/sh"]'
echo "$archive"
