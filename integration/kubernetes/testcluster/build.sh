#!/bin/sh
# Prints where the cluster's program is, and builds it first when it is absent: ten minutes with empty caches. What is built
# of other sources is another file.
set -eu
cd "$(dirname "$0")"
sources=$(cat cmd/kube-testcluster/*.go go.mod build.sh | sha256sum | cut -c1-12)
program=${XDG_CACHE_HOME:-$HOME/.cache}/dagbridge/kubernetes/kube-testcluster-$sources
if [ ! -x "$program" ]; then
	echo "building $program" >&2
	mkdir -p "$(dirname "$program")"
	# The version must be linked in: without it the server calls itself v0.0.0-master+$Format:%H$.
	v=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
	minor=${v#v1.}; minor=${minor%%.*}
	p=k8s.io/component-base/version
	k=k8s.io/client-go/pkg/version
	CGO_ENABLED=0 go build -trimpath -o "$program.$$" -ldflags "-s -w \
		-X $p.gitVersion=$v -X $p.gitMajor=1 -X $p.gitMinor=$minor \
		-X $k.gitVersion=$v -X $k.gitMajor=1 -X $k.gitMinor=$minor" ./cmd/kube-testcluster
	mv "$program.$$" "$program"
fi
echo "$program"
