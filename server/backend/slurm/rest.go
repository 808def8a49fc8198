package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// rest is the way through slurmrestd v0.0.38.
type rest struct {
	REST
	timeout time.Duration

	mu sync.Mutex
	// last complete listing, which a 304 repeats.
	last listing
	// size of the last complete listing.
	size atomic.Int64
}

func newREST(o REST, timeout time.Duration) (*rest, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("rest.url is %q, but must be an address such as http://127.0.0.1:6820", o.URL)
	case o.User == "":
		return nil, errors.New("rest.user is missing: the user that jobs belong to, whose token tokenFile holds")
	case o.TokenFile == "":
		return nil, errors.New("rest.tokenFile is missing: a file with the user's token, as `scontrol token` prints it")
	}
	o.URL = strings.TrimSuffix(o.URL, "/")
	if o.Client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost = 2*concurrency, 2*concurrency
		o.Client = &http.Client{Transport: transport}
	}
	return &rest{REST: o, timeout: timeout}, nil
}

func (r *rest) close() error {
	r.Client.CloseIdleConnections()
	return nil
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

// response is an answer of slurmrestd's, headers and body.
type response struct {
	status int
	body   io.ReadCloser
}

// do sends a request as a user and returns the answer. A 401 is tried again once, when the token has been renewed since. The error
// is an *errNotSent when slurmctld cannot have seen the request; otherwise it may have.
func (r *rest) do(ctx context.Context, user, method, path string, body []byte) (*response, error) {
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	answer, err := r.send(ctx, user, method, path, body, token)
	if err != nil || answer.status != http.StatusUnauthorized {
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
	answer, err = r.send(ctx, user, method, path, body, renewed)
	if err == nil && answer.status == http.StatusUnauthorized {
		_ = answer.body.Close()
		return nil, r.unauthorized()
	}
	return answer, err
}

func (r *rest) send(ctx context.Context, user, method, path string, body []byte, token string) (*response, error) {
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	request, err := http.NewRequestWithContext(ctx, method, r.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, &errNotSent{err.Error()}
	}
	request.Header.Set("X-SLURM-USER-NAME", user)
	request.Header.Set("X-SLURM-USER-TOKEN", token)
	if body != nil {
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
	return &response{answer.StatusCode, answer.Body}, nil
}

// cause is what went wrong, without the method and address that url.Error puts before it.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// order sends a request, as a user, whose answer is small, and returns the answer's errors.
func (r *rest) order(ctx context.Context, user, method, path string, body any) (submitted, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return submitted{}, &errNotSent{err.Error()}
		}
	}
	answer, err := r.do(ctx, user, method, path, text)
	if err != nil {
		return submitted{}, err
	}
	defer func() { _ = answer.body.Close() }()
	raw, err := io.ReadAll(answer.body)
	if err != nil {
		return submitted{}, fmt.Errorf("the answer of slurmrestd at %s was cut: %w", r.URL, err)
	}
	var s submitted
	if err := json.Unmarshal(raw, &s); err != nil {
		return submitted{}, fmt.Errorf("slurmrestd at %s answers %d: %.200q", r.URL, answer.status, raw)
	}
	return s, nil
}

// submitted is the answer to an order.
type submitted struct {
	JobID         number      `json:"job_id"`
	SubmitMessage string      `json:"job_submit_user_msg"`
	Errors        []restError `json:"errors"`
	// Statistics of slurmctld's, where they were asked for.
	Statistics *struct {
		Untold number `json:"dbd_agent_queue_size"`
	} `json:"statistics"`
}
