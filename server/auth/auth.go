// Package auth says who calls, and whether they may.
//
// Callers carry a bearer token; the gateway knows its SHA-256 and the name that goes with it, which becomes the owner of
// the jobs that come with it. Pods of a Kubernetes cluster carry a token of their service account, made for this gateway; whose
// it is says that cluster's API server (serviceaccounts.go). Without either everybody who reaches the gateway is its own user;
// that is why such a gateway listens on loopback only.
//
// A token also stands for a Unix user, as whom jobs run on clusters that act as their users, and may be let act as others.
//
// Authorise is the one hook: every RPC, unary or streaming, over gRPC or REST, and every HTTP page that is not public, goes
// through it, so that a finer policy has one place to go to. The package logs nothing and never repeats a token.
package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"os/user"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dagbridge/dagbridge/server/config"
)

// Guard lets callers in, or not.
type Guard struct {
	// self is who everybody is when there are no tokens.
	self   string
	tokens []token
	// accounts is nil where no service accounts are let in.
	accounts *serviceAccounts
}

type token struct {
	name   string
	digest [sha256.Size]byte
	user   string
	actAs  []string
}

// New makes a guard that knows these tokens, and these service accounts. It asks nobody yet.
func New(who config.Auth) (*Guard, error) {
	g := &Guard{}
	for i, t := range who.Tokens {
		digest, err := hex.DecodeString(t.SHA256)
		if err != nil || len(digest) != sha256.Size || t.Name == "" {
			return nil, fmt.Errorf("auth.tokens[%d] needs a name and a SHA-256 of 64 hexadecimal digits", i)
		}
		g.tokens = append(g.tokens, token{t.Name, [sha256.Size]byte(digest), cmp.Or(t.User, t.Name), t.ActAs})
	}
	if who.ServiceAccounts != nil {
		var err error
		if g.accounts, err = newServiceAccounts(*who.ServiceAccounts); err != nil {
			return nil, err
		}
	}
	if g.Open() {
		self, err := user.Current()
		if err != nil {
			return nil, fmt.Errorf("finding the name of the gateway's own user, who owns the jobs when there are no tokens: %w", err)
		}
		g.self = self.Username
	}
	return g, nil
}

// Open says whether callers need no token.
func (g *Guard) Open() bool { return len(g.tokens) == 0 && g.accounts == nil }

// public methods need no token: whether the gateway is up may be asked by anyone.
func public(method string) bool { return strings.HasPrefix(method, "/grpc.health.v1.Health/") }

// Authorise says who makes a call of a method ("/dagbridge.v1.BridgeService/GetJob") with this Authorization, and lets
// nobody else in: UNAUTHENTICATED; PERMISSION_DENIED for a pod that is none of those that may; UNAVAILABLE when nobody can say
// whose token it is. Whoever has a token may do everything; jobs show whose they are.
func (g *Guard) Authorise(ctx context.Context, method, authorization string) (owner string, err error) {
	if g.Open() || public(method) {
		return g.self, nil
	}
	if authorization == "" {
		return "", status.Error(codes.Unauthenticated, `this gateway needs a token: send "Authorization: Bearer <token>"`)
	}
	scheme, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", status.Error(codes.Unauthenticated, `the Authorization is not of the form "Bearer <token>"`)
	}
	secret = strings.TrimSpace(secret)
	digest := sha256.Sum256([]byte(secret))
	// All are compared, each in constant time, so that the time tells nothing.
	for _, t := range g.tokens {
		if subtle.ConstantTimeCompare(t.digest[:], digest[:]) == 1 {
			owner = t.name
		}
	}
	switch {
	case owner != "":
		return owner, nil
	case g.accounts != nil && isJWT(secret):
		return g.accounts.owner(ctx, secret, digest)
	default:
		return "", status.Error(codes.Unauthenticated, "the gateway does not know this token")
	}
}

// UserOf is the Unix user as whom an owner's job runs, where jobs run as those who submit them: the one that is asked for, if
// the owner may act as it, and the owner's own where none is. The error is a sentence.
func (g *Guard) UserOf(owner, asked string) (string, error) {
	own, actAs := g.self, []string(nil)
	for _, t := range g.tokens {
		if t.name == owner {
			own, actAs = t.user, t.actAs
		}
	}
	what := "token"
	if account, ok := g.accounts.find(owner); ok {
		what, own, actAs = "account", account.User, account.ActAs
	}
	switch {
	case asked != "" && (slices.Contains(actAs, asked) || slices.Contains(actAs, "*")):
		return asked, nil
	case own == "" && what == "account":
		return "", fmt.Errorf("the account %s stands for no user (auth.serviceAccounts.allow[].user)", owner)
	case asked == "" || asked == own:
		return own, nil
	case g.Open():
		return "", fmt.Errorf("jobs run as %s, the gateway's own user, where no tokens say who submits them; not as %s", own, asked)
	default:
		return "", fmt.Errorf("the %s %s stands for the user %s and may not act as %s (actAs beside its name in auth)", what, owner, own, asked)
	}
}

type ownerKey struct{}

// Admit is Authorise for a call with gRPC metadata: it returns the call's context with the owner in it.
func (g *Guard) Admit(ctx context.Context, method string) (context.Context, error) {
	var authorization string
	if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) > 0 {
		authorization = values[0]
	}
	owner, err := g.Authorise(ctx, method, authorization)
	if err != nil {
		return nil, err
	}
	return context.WithValue(ctx, ownerKey{}, owner), nil
}

// Owner is who makes the call of this context; empty outside of a call.
func Owner(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}
