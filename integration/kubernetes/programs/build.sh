#!/bin/sh
# Prints where a program is that is made of a folder beside this, each a module of its own so that the product's stays clean, and
# builds it first when it is absent: a few minutes with empty caches. What is built of other sources is another file.
# usage: build.sh helm
set -eu
cd "$(dirname "$0")/$1"
sources=$(cat ./*.go go.mod go.sum ../build.sh | sha256sum | cut -c1-12)
program=${XDG_CACHE_HOME:-$HOME/.cache}/dagbridge/kubernetes/$1-$sources
if [ ! -x "$program" ]; then
	echo "building $program" >&2
	mkdir -p "$(dirname "$program")"
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$program.$$" .
	mv "$program.$$" "$program"
fi
echo "$program"
