// Package auth says who calls, and whether they may.
//
// Callers carry a bearer token; the gateway knows its SHA-256 and the name that goes with it, which becomes the owner of
// the jobs that come with it. Pods of a Kubernetes cluster carry a token of their service account, made for this gateway; whose
// it is says that cluster's API server (serviceaccounts.go). Without either everybody who reaches the gateway is its own user;
// that is why such a gateway listens on loopback only.
//
// A token also stands for a Unix user, as whom jobs run on clusters that act as their users, and may be let act as others.
//
// The program of a job may carry a token of its own, which its cluster vouches for: with it it may put that job's outputs, and
// nothing else.
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
	"github.com/dagbridge/dagbridge/server/serviceaccount"
)

// Guard lets callers in, or not.
type Guard struct {
	// self is who everybody is when there are no tokens.
	self   string
	tokens []token
	// accounts is nil where no service accounts are let in.
	accounts *serviceAccounts
	// jobs is nil where no programs of jobs are let in.
	jobs Jobs
}

// Jobs says whose program calls with a bearer token that is none of the configured ones: the id of its job, "" when it is
// nobody's. It may ask a cluster; an error is that it could not.
type Jobs func(ctx context.Context, bearer string) (job string, err error)

// Caller is who makes a call.
type Caller struct {
	// Owner of what comes with the call: the name of the token.
	Owner string
	// Job whose program calls, by a token of its own; "" of everybody else.
	Job string
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

// Trust lets the programs of jobs in too. It is called before the first call is.
func (g *Guard) Trust(jobs Jobs) { g.jobs = jobs }

// forJobs are the calls that the programs of jobs may make: by method, and by path.
func forJobs(method string) bool {
	return method == "/dagbridge.v1.BridgeService/PutOutputs" || strings.HasPrefix(method, "/v1/jobs/") && strings.HasSuffix(method, "/outputs")
}

// public methods need no token: whether the gateway is up may be asked by anyone.
func public(method string) bool { return strings.HasPrefix(method, "/grpc.health.v1.Health/") }

// Authorise says who makes a call of a method ("/dagbridge.v1.BridgeService/GetJob"), or of a page's path, with this
// Authorization, and lets nobody else in: UNAUTHENTICATED; PERMISSION_DENIED for a pod that is none of those that may; UNAVAILABLE
// when nobody can say whose token it is. Whoever has a token may do everything; jobs show whose they are. That a job's own token is
// used for that job alone is for the call itself to see.
func (g *Guard) Authorise(ctx context.Context, method, authorization string) (Caller, error) {
	if g.Open() || public(method) {
		return Caller{Owner: g.self}, nil
	}
	if authorization == "" {
		return Caller{}, status.Error(codes.Unauthenticated, `this gateway needs a token: send "Authorization: Bearer <token>"`)
	}
	scheme, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return Caller{}, status.Error(codes.Unauthenticated, `the Authorization is not of the form "Bearer <token>"`)
	}
	secret = strings.TrimSpace(secret)
	digest := sha256.Sum256([]byte(secret))
	owner := ""
	// All are compared, each in constant time, so that the time tells nothing.
	for _, t := range g.tokens {
		if subtle.ConstantTimeCompare(t.digest[:], digest[:]) == 1 {
			owner = t.name
		}
	}
	if owner == "" && g.jobs != nil && forJobs(method) {
		job, err := g.jobs(ctx, secret)
		if err != nil {
			return Caller{}, err
		}
		if job != "" {
			return Caller{Owner: "job " + job, Job: job}, nil
		}
	}
	switch {
	case owner != "":
		return Caller{Owner: owner}, nil
	case g.accounts != nil && serviceaccount.IsToken(secret):
		owner, err := g.accounts.owner(ctx, secret, digest)
		return Caller{Owner: owner}, err
	default:
		return Caller{}, status.Error(codes.Unauthenticated, "the gateway does not know this token")
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

type callerKey struct{}

// Admit is Authorise for a call with gRPC metadata: it returns the call's context with the caller in it.
func (g *Guard) Admit(ctx context.Context, method string) (context.Context, error) {
	var authorization string
	if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) > 0 {
		authorization = values[0]
	}
	caller, err := g.Authorise(ctx, method, authorization)
	if err != nil {
		return nil, err
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
}

// Owner is who makes the call of this context; empty outside of a call.
func Owner(ctx context.Context) string { return caller(ctx).Owner }

// Job is whose program makes the call of this context, by its own token; "" of everybody else.
func Job(ctx context.Context) string { return caller(ctx).Job }

func caller(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
