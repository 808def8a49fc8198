package slurm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// connection is one to a login node, for many sessions at once.
type connection struct {
	client  *ssh.Client
	address string
	// slots: one for each session that the server takes at a time, as far as is known. Who has one may open a session.
	slots chan struct{}
	// sessions that are open.
	sessions atomic.Int32
	// over is closed when the connection is.
	over chan struct{}
}

const (
	// maxSessions is sshd's own default of MaxSessions.
	maxSessions = 10
	// maxRefusals is how often a server may refuse a session when none is open.
	maxRefusals = 5
	// keepAlive is how often the server is asked whether it is there, and how long it may take to say so.
	keepAlive = 15 * time.Second
)

func newConnection(client *ssh.Client, address string, log *slog.Logger) *connection {
	c := &connection{client: client, address: address, slots: make(chan struct{}, maxSessions), over: make(chan struct{})}
	for range maxSessions {
		c.slots <- struct{}{}
	}
	log.Info("logged in", "host", address)
	go func() {
		log.Info("the connection to the login node is over", "host", address, "cause", client.Wait())
		close(c.over)
	}()
	go c.keepAlive()
	return c
}

func (c *connection) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// keepAlive closes a connection whose other end has gone without a word, or hangs.
func (c *connection) keepAlive() {
	for {
		select {
		case <-c.over:
			return
		case <-time.After(keepAlive):
		}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _, _ = c.client.SendRequest("keepalive@openssh.com", true, nil) // a refusal is an answer too
		}()
		select {
		case <-answered:
		case <-time.After(keepAlive):
			_ = c.client.Close()
			<-c.over
			return
		}
	}
}

// open opens a session, once there is a slot for it. A server that takes fewer at a time than is believed refuses one: its
// slot is then given up for good, and another waited for. What is returned gives the slot back.
func (c *connection) open(ctx context.Context) (*ssh.Session, func(), error) {
	for refusals := 0; ; {
		select {
		case <-c.slots:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("no session was free on %s in time: %w", c.address, ctx.Err())
		case <-c.over:
			return nil, nil, fmt.Errorf("the connection to %s broke", c.address)
		}
		session, err := c.client.NewSession()
		if err == nil {
			c.sessions.Add(1)
			return session, func() { c.sessions.Add(-1); c.slots <- struct{}{} }, nil
		}
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) && c.sessions.Load() > 0 {
			continue // without the slot: those who have the open sessions have others
		}
		c.slots <- struct{}{}
		// a server may take a moment to see that the last session is over
		if refusals++; refused == nil || refusals > maxRefusals {
			return nil, nil, fmt.Errorf("%s opens no session: %w", c.address, err)
		}
		time.Sleep(10 * time.Millisecond << refusals)
	}
}
