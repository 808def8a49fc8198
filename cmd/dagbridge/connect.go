package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	dagbridge "github.com/dagbridge/dagbridge/clients/go"
	"github.com/dagbridge/dagbridge/server/config"
)

// gateway is how the commands reach one.
type gateway struct {
	server    string
	tokenFile string
	caFile    string
}

func (g *gateway) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&g.server, "server", cmp.Or(os.Getenv("DAGBRIDGE_SERVER"), config.Default().Listen.GRPC),
		"host:port of the gateway's gRPC API; DAGBRIDGE_SERVER. Off loopback TLS is used")
	g.addCredentials(flags)
}

func (g *gateway) addCredentials(flags *pflag.FlagSet) {
	flags.StringVar(&g.tokenFile, "token-file", os.Getenv("DAGBRIDGE_TOKEN_FILE"), "file with the bearer token; DAGBRIDGE_TOKEN_FILE")
	flags.StringVar(&g.caFile, "ca-file", os.Getenv("DAGBRIDGE_CA_FILE"),
		"PEM file of the authority that signed the gateway's certificate, for TLS; DAGBRIDGE_CA_FILE. Left out: the system's")
}

// client is a connection to a gateway.
type client struct {
	*dagbridge.Client
	// away tells once that a watch has found the gateway away.
	away chan struct{}
}

// connect makes a client. Nothing is sent yet.
func (g *gateway) connect() (*client, error) {
	c := &client{away: make(chan struct{}, 1)}
	o := dagbridge.Options{Away: func(_ error, since time.Duration) error {
		switch {
		case since == 0:
			select {
			case c.away <- struct{}{}:
			default:
			}
		case since > patience:
			return exitf(exitGateway, "the gateway has not answered for %s; what was submitted goes on", since.Round(time.Second))
		}
		return nil
	}}
	var err error
	if o.Token, err = g.token(); err != nil {
		return nil, err
	}
	if o.TLS, err = g.tls(); err != nil {
		return nil, err
	}
	c.Client, err = dagbridge.Dial(g.server, o)
	return c, err
}

// token is the bearer token, none without a file.
func (g *gateway) token() (string, error) {
	if g.tokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(g.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// tls is how the gateway is made sure of when an authority is given.
func (g *gateway) tls() (*tls.Config, error) {
	if g.caFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(g.caFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca-file: %s holds no PEM certificate", g.caFile)
	}
	return c, nil
}
