package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/crypto/ssh"
)

// SSH is how a login node is reached, on which Slurm's commands are run.
type SSH struct {
	// Host is the login node's name or address.
	Host string
	// Port of its sshd. 0: 22.
	Port int
	// User to log in as: a POSIX shell's. Jobs belong to it, unless they belong to those who submit them.
	User string
	// KeyFile is a private key without a passphrase. Empty: the agent's keys are used.
	KeyFile string
	// CertFile is a certificate of the key.
	CertFile string
	// Agent is the socket of an ssh-agent. Empty: SSH_AUTH_SOCK.
	Agent string
	// KnownHostsFile has the keys by which hosts are known, or the authorities for them, in sshd's format.
	KnownHostsFile string
	// Path is the folder of Slurm's commands there. Empty: they are in /usr/local/bin, /usr/bin or /bin.
	Path string
}

func (o *SSH) address() string { return net.JoinHostPort(o.Host, strconv.Itoa(o.Port)) }

func (o *SSH) check() error {
	switch {
	case o.Host == "":
		return errors.New("ssh.host is missing: the login node's name or address")
	case o.User == "":
		return errors.New("ssh.user is missing: the user to log in as")
	case o.KnownHostsFile == "":
		return errors.New("ssh.knownHostsFile is missing: the keys by which the login node is known")
	}
	return nil
}

// login runs commands on a login node, each in a session of its own over one connection. The connection is made when it is
// first needed, and anew when it has broken; after a failure, not before a while. A host whose key is not the known one is
// told nothing, however often it is tried.
type login struct {
	SSH
	log *slog.Logger
	// turn is taken by who makes the connection.
	turn chan struct{}
	// what follows belongs to the turn.
	current  *connection
	closed   bool
	pause    *backoff.ExponentialBackOff
	failure  error
	tryAgain time.Time
}

// dialTime is how long it may take to connect and to log in.
const dialTime = 20 * time.Second

func newLogin(o SSH, log *slog.Logger) (*login, error) {
	o.Port = cmp.Or(o.Port, 22)
	l := &login{SSH: o, log: log, turn: make(chan struct{}, 1), pause: backoff.NewExponentialBackOff()}
	l.pause.MaxInterval = 30 * time.Second
	return l, o.check()
}

// connected is a connection that lives, as far as is known. Errors are sentences.
func (l *login) connected(ctx context.Context) (*connection, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("logging in at %s takes too long: %w", l.address(), ctx.Err())
	}
	if l.closed {
		return nil, errors.New("the cluster is closed")
	}
	if l.current != nil && !l.current.isOver() {
		return l.current, nil
	}
	if wait := time.Until(l.tryAgain); wait > 0 {
		return nil, fmt.Errorf("%w; it is tried again in %v", l.failure, wait.Round(time.Second))
	}
	client, err := l.dial(ctx)
	if err != nil {
		if ctx.Err() == nil {
			l.failure, l.tryAgain = err, time.Now().Add(l.pause.NextBackOff())
		}
		return nil, err
	}
	l.pause.Reset()
	l.current = newConnection(client, l.address(), l.log)
	return l.current, nil
}

func (l *login) close() error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.closed = true
	if l.current != nil {
		_ = l.current.client.Close() // it may have broken meanwhile
		<-l.current.over
	}
	return nil
}

func (l *login) dial(ctx context.Context) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	hosts, err := readHostKeys(l.KnownHostsFile, l.address())
	if err != nil {
		return nil, err
	}
	signers, closeAgent, err := l.signers()
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeAgent() }()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.address())
	if err != nil {
		return nil, fmt.Errorf("the login node cannot be reached: %w", err)
	}
	cut := context.AfterFunc(ctx, func() { _ = raw.Close() })
	var stranger error
	transport, channels, requests, err := ssh.NewClientConn(raw, l.address(), &ssh.ClientConfig{
		User: l.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signers...)}, HostKeyAlgorithms: hosts.algorithms,
		HostKeyCallback: func(address string, remote net.Addr, key ssh.PublicKey) error {
			stranger = hosts.verify(address, remote, key)
			return stranger
		},
	})
	switch inTime := cut(); {
	case stranger != nil:
		err = stranger
	case !inTime:
		err = fmt.Errorf("%s takes the connection and does not let %s in in time", l.address(), l.User)
	case err != nil:
		err = fmt.Errorf("%s does not let %s in: %w", l.address(), l.User, err)
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return ssh.NewClient(transport, channels, requests), nil
}
