package engine

import (
	"context"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// Caller says whose program calls with a token that its cluster gave it: the id of its job; "" when it is nobody's, or when the
// attempt it belongs to counts no more. The error is that a cluster which might know it does not answer.
func (e *Engine) Caller(ctx context.Context, bearer string) (string, error) {
	var unanswered error
	for _, c := range e.clusters {
		voucher, ok := c.Backend.(backend.Voucher)
		if !ok {
			continue
		}
		token, position, err := voucher.Caller(ctx, bearer, func(token string) (backend.NativeRef, bool) { return e.liveOn(c, token) })
		switch {
		case err != nil:
			unanswered = errorf(Unavailable, "whose token this is cannot be asked of cluster %s: %v", c.Name, err)
		case token != "":
			return e.programOf(token, position), nil
		}
	}
	return "", unanswered
}

// liveOn is the native job of an attempt on a cluster, while it is its job's last and has not ended.
func (e *Engine) liveOn(c *cluster, token string) (backend.NativeRef, bool) {
	rec := e.mem.record(jobOf(token))
	if rec == nil {
		return backend.NativeRef{}, false
	}
	at := current(rec)
	return backend.NativeRef{ID: at.GetNativeId(), Token: token}, at.GetToken() == token && at.GetCluster() == c.Name && at.GetNativeId() != ""
}

// programOf is the id of the job whose program has a place in an attempt.
func (e *Engine) programOf(token string, position int) string {
	n := e.mem.node(jobOf(token))
	switch {
	case n == nil:
		return ""
	case !n.isArray():
		return n.id()
	case position < 0 || position >= len(n.kids):
		return ""
	}
	kid, err := e.record(n.kids[position])
	if err != nil || kid.GetCarrier() != n.id() || graph.IsTerminal(kid.GetJob().GetState()) {
		return "" // it has ended, or gone on by itself
	}
	return kid.GetJob().GetId()
}
