package config

import (
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dagbridge/dagbridge/server/serviceaccount"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

func (a *Auth) check(f *Faults) {
	names, digests := map[string]bool{}, map[string]bool{}
	for i, token := range a.Tokens {
		path := fmt.Sprintf("auth.tokens[%d]", i)
		if token.Name == "" || hasControl(token.Name) {
			f.add(0, path+".name", "a token needs a name without control characters; it becomes the owner of the jobs that come with it")
		} else if strings.HasPrefix(token.Name, serviceaccount.Prefix) {
			f.add(0, path+".name", "%q is the name of a service account in Kubernetes; allow it in auth.serviceAccounts", token.Name)
		} else if names[token.Name] {
			f.add(0, path+".name", "another token is called %q", token.Name)
		}
		names[token.Name] = true
		checkUsers(f, path, token.User, token.ActAs)
		digest := strings.ToLower(token.SHA256)
		raw, err := hex.DecodeString(digest)
		switch {
		case err != nil || len(raw) != 32:
			f.add(0, path+".sha256", `this is not the SHA-256 of a token, 64 hexadecimal digits; make it with: printf %%s "$TOKEN" | sha256sum`)
		case digests[digest]:
			f.add(0, path+".sha256", "another token has the same digest")
		}
		digests[digest] = true
	}
	if a.ServiceAccounts != nil {
		a.ServiceAccounts.check(f)
	}
}

func checkUsers(f *Faults, path, user string, actAs []string) {
	if user != "" && !slurm.IsUser(user) {
		f.add(0, path+".user", "%q cannot be the name of a user", user)
	}
	for i, user := range actAs {
		if user != "*" && !slurm.IsUser(user) {
			f.add(0, fmt.Sprintf("%s.actAs[%d]", path, i), `%q can be neither the name of a user nor "*", everybody's`, user)
		}
	}
}

func (s *ServiceAccounts) check(f *Faults) {
	const path = "auth.serviceAccounts"
	if s.Audience == "" {
		f.add(0, path+".audience", "an audience is needed: without one every token would do that a pod has for something else")
	}
	if s.Context != "" && s.Kubeconfig == "" {
		f.add(0, path+".context", "a context is one of a kubeconfig; name the kubeconfig")
	}
	if len(s.Allow) == 0 {
		f.add(0, path+".allow", "name the accounts that may use the gateway, as in {namespace: ml, name: pipeline-runner}")
	}
	seen := map[string]bool{}
	for i, account := range s.Allow {
		at := fmt.Sprintf("%s.allow[%d]", path, i)
		if wrong := validation.IsDNS1123Label(account.Namespace); len(wrong) > 0 {
			f.add(0, at+".namespace", "%q cannot be the name of a namespace: %s", account.Namespace, wrong[0])
		}
		if wrong := validation.IsDNS1123Subdomain(account.Name); account.Name != "" && len(wrong) > 0 {
			f.add(0, at+".name", "%q cannot be the name of a service account: %s", account.Name, wrong[0])
		}
		if name := account.Namespace + "/" + account.Name; seen[name] {
			f.add(0, at, "%s is there already", name)
		} else {
			seen[name] = true
		}
		checkUsers(f, at, account.User, account.ActAs)
	}
}
