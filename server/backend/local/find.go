package local

import (
	"context"
	"fmt"
	"os"

	"github.com/dagbridge/dagbridge/server/backend"
)

// Find looks for specs: a job that was ever submitted has one.
func (b *Backend) Find(_ context.Context, wants []backend.Want) []backend.Finding {
	b.mu.Lock()
	defer b.mu.Unlock()
	findings := make([]backend.Finding, len(wants))
	err := b.open()
	for i, want := range wants {
		if err != nil {
			findings[i] = backend.Finding{Presence: backend.Uncertain, Proof: err.Error()}
			continue
		}
		findings[i] = b.find(want.Token)
	}
	return findings
}

func (b *Backend) find(token string) backend.Finding {
	f, ok := b.folder(token)
	if !ok {
		return backend.Finding{Presence: backend.Absent, Proof: fmt.Sprintf("%q is not a token that a local cluster takes", token)}
	}
	info, err := os.Stat(f.spec())
	switch {
	case err == nil:
		ref := backend.NativeRef{ID: nativeID(token), Token: token, SubmitTime: info.ModTime()}
		return backend.Finding{Presence: backend.Found, Refs: []backend.NativeRef{ref}, Proof: f.spec() + " is there"}
	case !os.IsNotExist(err):
		return backend.Finding{Presence: backend.Uncertain, Proof: err.Error()}
	}
	started, err := exists(f.start())
	if err != nil {
		return backend.Finding{Presence: backend.Uncertain, Proof: err.Error()}
	}
	return backend.Finding{Presence: backend.Absent, Started: started, Proof: f.spec() + " is not there"}
}
