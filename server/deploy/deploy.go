// Package deploy holds what runs the gateway inside a Kubernetes cluster: one Deployment of exactly one replica, and the least
// rights that it needs where its jobs are. It is read by people and by the tests, which apply it to a real cluster.
package deploy

import "embed"

// Files are the manifests: rbac.yaml for each namespace with jobs, gateway.yaml for the gateway itself, serviceaccounts.yaml where
// pods come with tokens of their accounts, those of jobs included.
//
//go:embed *.yaml
var Files embed.FS
