package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/dagbridge/dagbridge/server/config"
)

// tlsConfig serves a certificate from files, and its successor once the files have changed.
func tlsConfig(files config.TLS, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{files: files, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current(), nil
		},
	}, nil
}

type certificate struct {
	files config.TLS
	log   *slog.Logger

	mu      sync.Mutex
	cert    *tls.Certificate
	changed time.Time
}

// lastChange of the files; zero when one of them cannot be read.
func (c *certificate) lastChange() time.Time {
	var last time.Time
	for _, file := range []string{c.files.Cert, c.files.Key} {
		info, err := os.Stat(file)
		if err != nil {
			return time.Time{}
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

func (c *certificate) load() error {
	changed := c.lastChange()
	cert, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return fmt.Errorf("reading listen.tls: %w", err)
	}
	c.cert, c.changed = &cert, changed
	return nil
}

// current is the newest certificate that could be read: files that are being replaced may not fit together for a moment.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changed := c.lastChange(); !changed.Equal(c.changed) {
		if err := c.load(); err != nil {
			c.log.Error("the changed certificate is not used", "err", err)
		} else {
			c.log.Info("certificate reloaded", "cert", c.files.Cert)
		}
	}
	return c.cert
}
