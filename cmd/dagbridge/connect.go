package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/config"
)

// gateway is how the commands reach one.
type gateway struct {
	server    string
	tokenFile string
	caFile    string
}

func (g *gateway) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&g.server, "server", fallback(os.Getenv("DAGBRIDGE_SERVER"), config.Default().Listen.GRPC),
		"host:port of the gateway's gRPC API; DAGBRIDGE_SERVER. Off loopback TLS is used")
	g.addCredentials(flags)
}

func (g *gateway) addCredentials(flags *pflag.FlagSet) {
	flags.StringVar(&g.tokenFile, "token-file", os.Getenv("DAGBRIDGE_TOKEN_FILE"), "file with the bearer token; DAGBRIDGE_TOKEN_FILE")
	flags.StringVar(&g.caFile, "ca-file", os.Getenv("DAGBRIDGE_CA_FILE"),
		"PEM file of the authority that signed the gateway's certificate, for TLS; DAGBRIDGE_CA_FILE. Left out: the system's")
}

// connect returns a client of the gateway and what closes it. Nothing is sent yet.
func (g *gateway) connect() (dagbridgev1.BridgeServiceClient, func(), error) {
	tlsConfig, err := g.tls()
	if err != nil {
		return nil, nil, err
	}
	token, err := g.token()
	if err != nil {
		return nil, nil, err
	}
	transport := insecure.NewCredentials()
	if tlsConfig != nil {
		transport = credentials.NewTLS(tlsConfig)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	}
	if token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer{token: token, secure: tlsConfig != nil}))
	}
	conn, err := grpc.NewClient(g.server, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("--server %s: %w", g.server, err)
	}
	return dagbridgev1.NewBridgeServiceClient(conn), func() { conn.Close() }, nil
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

// tls is how the gateway is made sure of; nil on loopback without a --ca-file. A gateway that other machines reach always
// has TLS, so it is demanded there, and no token goes over a network in the clear.
func (g *gateway) tls() (*tls.Config, error) {
	host, _, err := net.SplitHostPort(g.server)
	if err != nil {
		return nil, fmt.Errorf("the gateway's address %q is not host:port, as in 127.0.0.1:7070", g.server)
	}
	if g.caFile == "" && config.IsLoopback(host) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if g.caFile != "" {
		pem, err := os.ReadFile(g.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--ca-file: %s holds no PEM certificate", g.caFile)
		}
	}
	return c, nil
}

// bearer sends the token with every call; in the clear only on loopback, where there is no TLS.
type bearer struct {
	token  string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

func fallback(value, otherwise string) string {
	if value != "" {
		return value
	}
	return otherwise
}
