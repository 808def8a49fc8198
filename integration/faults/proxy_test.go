package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// proxy stands between the gateway and slurmrestd, and passes on what meets with no fault.
type proxy struct {
	*httptest.Server
	target string
	// fault is what submissions meet with, storm what all other requests do; nil passes them.
	fault, storm fault
	// ended with the test: what is on its way then goes nowhere.
	ended context.Context

	mu sync.Mutex
	// changed is closed, and made anew, when something below has changed.
	changed chan struct{}
	// received submissions, answered ones and releases, by the job's name.
	received, answered, released map[string]int
	// names of native jobs by id.
	names map[string]string
	// gate, when set, carries every order about a job that is known already to slurmrestd and back.
	gate func(order string, pass func())
}

// exchange is a request that may meet with a fault.
type exchange struct {
	*proxy
	// name of the job that it submits; empty of other requests. again: there was a submission of this name before.
	name  string
	again bool
	// forward passes the request on, and answers with what slurmrestd said.
	forward func() reply
	// answer to the gateway; when there is none the connection is closed.
	answer reply
	// gone is closed when the gateway does not wait for the answer any more.
	gone <-chan struct{}
}

// pass is no fault.
func (x *exchange) pass() { x.answer = x.forward() }

// fault is what happens to a request.
type fault func(*exchange)

// first is a fault of the first submission of each name.
func first(f fault) fault {
	return func(x *exchange) {
		if x.again {
			x.pass()
		} else {
			f(x)
		}
	}
}

// reply of slurmrestd's.
type reply struct {
	status int
	body   []byte
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	ended, end := context.WithCancel(context.Background())
	p := &proxy{
		target: target, ended: ended, changed: make(chan struct{}),
		received: map[string]int{}, answered: map[string]int{}, released: map[string]int{}, names: map[string]string{},
	}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		end()
		p.Close()
	})
	return p
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	one := &exchange{
		proxy: p, name: submitted(r, body), gone: r.Context().Done(),
		forward: func() reply { return p.forward(r, body) },
	}
	switch {
	case one.name != "":
		if one.again = p.count(p.received, one.name) > 1; p.fault != nil {
			p.fault(one)
			break
		}
		one.pass()
	case p.storm != nil:
		p.storm(one)
	default:
		if r.Method != http.MethodGet && p.gate != nil {
			p.gate(string(body), one.pass)
			break
		}
		one.pass()
	}
	if one.answer.status == 0 {
		panic(http.ErrAbortHandler) // closes the connection
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(one.answer.status)
	_, _ = w.Write(one.answer.body) // the gateway may have gone
}

// submitted is the name of the job that a request submits; empty of other requests.
func submitted(r *http.Request, body []byte) string {
	if !strings.HasSuffix(r.URL.Path, "/job/submit") {
		return ""
	}
	var request struct {
		Job struct {
			Name string `json:"name"`
		} `json:"job"`
	}
	_ = json.Unmarshal(body, &request) // slurmrestd refuses what is none
	return request.Job.Name
}

// forward sends a request on, whether or not the gateway still waits, and notes what it was. Without an answer the status is 0.
func (p *proxy) forward(r *http.Request, body []byte) reply {
	on, err := http.NewRequestWithContext(p.ended, r.Method, p.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return reply{}
	}
	on.Header = r.Header.Clone()
	answer, err := http.DefaultClient.Do(on)
	if err != nil {
		return reply{}
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return reply{}
	}
	p.note(r, body, text)
	return reply{answer.StatusCode, text}
}

// note keeps which native job has which name, and which was released.
func (p *proxy) note(r *http.Request, body, answer []byte) {
	if name := submitted(r, body); name != "" {
		var said struct {
			JobID int64 `json:"job_id"`
		}
		_ = json.Unmarshal(answer, &said)
		p.mu.Lock()
		p.names[strconv.FormatInt(said.JobID, 10)] = name
		p.mu.Unlock()
		p.count(p.answered, name)
		return
	}
	var change struct {
		Hold *bool `json:"hold"`
	}
	_ = json.Unmarshal(body, &change)
	if r.Method == http.MethodPost && change.Hold != nil && !*change.Hold {
		p.mu.Lock()
		name := p.names[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
		p.mu.Unlock()
		p.count(p.released, name)
	}
}

// count counts one more, and says how many there are.
func (p *proxy) count(of map[string]int, name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	of[name]++
	close(p.changed)
	p.changed = make(chan struct{})
	return of[name]
}

// await waits until something has been counted, or the test ends.
func (p *proxy) await(of map[string]int, name string) {
	for {
		p.mu.Lock()
		n, changed := of[name], p.changed
		p.mu.Unlock()
		if n > 0 {
			return
		}
		select {
		case <-changed:
		case <-p.ended.Done():
			return
		}
	}
}

// total is how many there are of all names.
func (p *proxy) total(of map[string]int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := 0
	for _, n := range of {
		sum += n
	}
	return sum
}
