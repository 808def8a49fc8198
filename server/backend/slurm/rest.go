package slurm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dagbridge/dagbridge/translators/slurm"
)

// rest is the way through slurmrestd.
type rest struct {
	REST
	timeout time.Duration
	log     *slog.Logger

	// dialect that slurmrestd speaks; nil until it was asked, and after it was replaced by another.
	dialect atomic.Pointer[dialect]
	asking  sync.Mutex

	listings listings
	watched  watchlist
}

func newREST(o REST, timeout time.Duration, log *slog.Logger) (*rest, error) {
	if o.Version == "auto" {
		o.Version = ""
	}
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("rest.url is %q, but must be an address such as http://127.0.0.1:6820", o.URL)
	case o.User == "":
		return nil, errors.New("rest.user is missing: the user that jobs belong to, whose token tokenFile holds")
	case o.TokenFile == "":
		return nil, errors.New("rest.tokenFile is missing: a file with the user's token, as `scontrol token` prints it")
	case o.Version != "" && !slices.Contains(slurm.Versions, o.Version):
		return nil, fmt.Errorf("rest.version is %q, but must be auto or one of %s", o.Version, strings.Join(slurm.Versions, ", "))
	}
	o.URL = strings.TrimSuffix(o.URL, "/")
	if o.Client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost = 2*concurrency, 2*concurrency
		o.Client = &http.Client{Transport: transport}
	}
	return &rest{REST: o, timeout: timeout, log: log}, nil
}

func (r *rest) close() error {
	r.Client.CloseIdleConnections()
	return nil
}

// server is what answers, for people; "" until it has.
func (r *rest) server() string {
	if d := r.dialect.Load(); d != nil {
		return d.String()
	}
	return ""
}

// errNotSent: slurmrestd was not reached, or did not let us in; slurmctld has seen nothing.
type errNotSent struct{ sentence string }

func (e *errNotSent) Error() string { return e.sentence }

// token reads the token file, so that a renewed token is used at once. `scontrol token` prints SLURM_JWT= before it.
func (r *rest) token() (string, error) {
	text, err := os.ReadFile(r.TokenFile)
	if err != nil {
		return "", &errNotSent{fmt.Sprintf("the token for slurmrestd cannot be read: %v", err)}
	}
	token := strings.TrimPrefix(strings.TrimSpace(string(text)), "SLURM_JWT=")
	if token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", &errNotSent{fmt.Sprintf("the file %s holds no token: write the line that `scontrol token username=%s` prints", r.TokenFile, r.User)}
	}
	return token, nil
}

// unauthorized is the sentence on a token that was refused.
func (r *rest) unauthorized() error {
	return &errNotSent{fmt.Sprintf("Slurm refuses the token in %s (user %s): renew it with `scontrol token username=%s`", r.TokenFile, r.User, r.User)}
}

// call is a request.
type call struct {
	method, path string
	// user that it is made as; "": the gateway's own.
	user string
	// body is JSON; nil: none.
	body []byte
}

// response is an answer of slurmrestd's, headers and body.
type response struct {
	status int
	json   bool
	body   io.ReadCloser
}

// refused says whether the token was: by slurmrestd, or, since v0.0.40, by slurmctld, which then has done nothing.
func (a *response) refused() bool {
	return a.status == http.StatusUnauthorized || a.status == http.StatusNetworkAuthenticationRequired
}

// noSuchPath says whether slurmrestd does not know the address; that there is no such job it says in JSON.
func (a *response) noSuchPath() bool { return a.status == http.StatusNotFound && !a.json }

// do makes a call in the dialect that slurmrestd speaks, and returns the answer. When slurmrestd does not know the address,
// another has taken its place: it is asked once more what it speaks. The error is an *errNotSent when slurmctld cannot have
// seen the call; otherwise it may have.
func (r *rest) do(ctx context.Context, say func(*dialect) (call, error)) (*response, error) {
	for range 2 {
		d, err := r.spoken(ctx)
		if err != nil {
			return nil, err
		}
		c, err := say(d)
		if err != nil {
			return nil, err
		}
		answer, err := r.authorized(ctx, c)
		if err != nil || !answer.noSuchPath() {
			return answer, err
		}
		_ = answer.body.Close()
		r.dialect.CompareAndSwap(d, nil)
	}
	return nil, &errNotSent{fmt.Sprintf("slurmrestd at %s does not know an address that it says it serves", r.URL)}
}

// authorized makes a call with the token. One that is refused is tried again once, when it has been renewed since.
func (r *rest) authorized(ctx context.Context, c call) (*response, error) {
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	answer, err := r.send(ctx, c, token)
	if err != nil || !answer.refused() {
		return answer, err
	}
	_ = answer.body.Close()
	renewed, err := r.token()
	if err != nil {
		return nil, err
	}
	if renewed == token {
		return nil, r.unauthorized()
	}
	answer, err = r.send(ctx, c, renewed)
	if err == nil && answer.refused() {
		_ = answer.body.Close()
		return nil, r.unauthorized()
	}
	return answer, err
}

func (r *rest) send(ctx context.Context, c call, token string) (*response, error) {
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	request, err := http.NewRequestWithContext(ctx, c.method, r.URL+c.path, bytes.NewReader(c.body))
	if err != nil {
		return nil, &errNotSent{err.Error()}
	}
	// 22.05 wants both; the newer ones would take the token alone
	request.Header.Set("X-SLURM-USER-NAME", cmp.Or(c.user, r.User))
	request.Header.Set("X-SLURM-USER-TOKEN", token)
	if c.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := r.Client.Do(request)
	if err != nil {
		sentence := fmt.Sprintf("slurmrestd at %s does not answer: %v", r.URL, cause(err))
		if !connected {
			return nil, &errNotSent{sentence}
		}
		return nil, errors.New(sentence)
	}
	return &response{answer.StatusCode, strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json"), answer.Body}, nil
}

// cause is what went wrong, without the method and address that url.Error puts before it.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// order makes a call whose answer is small, and reads it.
func (r *rest) order(ctx context.Context, say func(*dialect) (call, error)) (ordered, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	answer, err := r.do(ctx, say)
	if err != nil {
		return ordered{}, err
	}
	defer func() { _ = answer.body.Close() }()
	raw, err := io.ReadAll(answer.body)
	if err != nil {
		return ordered{}, fmt.Errorf("the answer of slurmrestd at %s was cut: %w", r.URL, err)
	}
	var o ordered
	if err := json.Unmarshal(raw, &o); err != nil {
		return ordered{}, fmt.Errorf("slurmrestd at %s answers %d: %.200q", r.URL, answer.status, raw)
	}
	return o, nil
}
