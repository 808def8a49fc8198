// Package server is the gateway's two doors, gRPC and REST, and their lifecycle.
//
// gRPC and REST have listeners of their own. A REST call is a call of the same service in the same process, through the same
// chain: measured, let in, checked, handled, its error told (calls.go). Unary calls come by grpc-gateway's mux and an adapter
// instead of a connection (inprocess.go); streams by handlers that play a gRPC stream over HTTP (streams.go). So nothing can
// be had through one door that the other would refuse.
//
// The package knows listeners, limits and pages, and no jobs: what a request means is bridge's and engine's.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"github.com/dagbridge/dagbridge/server/auth"
	"github.com/dagbridge/dagbridge/server/bridge"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/server/telemetry"
)

// MaxMessage is the largest request that either door takes, in bytes.
const MaxMessage = 64 << 20

// lastCalls is how long Stop leaves calls that hold on (waitFor) before it ends them.
const lastCalls = 2 * time.Second

// Options are what a Server is made of.
type Options struct {
	Listen config.Listen
	// Guard lets callers in; nil: everybody, as the gateway's own user.
	Guard  *auth.Guard
	Engine *engine.Engine
	Store  *store.Store
	// Metrics may be nil.
	Metrics *telemetry.Metrics
	// Registry is what /metrics shows; nil: nothing.
	Registry prometheus.Gatherer
	// Log may be nil.
	Log *slog.Logger
}

// Server serves one engine. Start and Stop may each be called once more, to no effect.
type Server struct {
	listen config.Listen
	log    *slog.Logger
	store  *store.Store
	calls  *calls
	health *health.Server
	grpc   *grpc.Server
	http   *http.Server
	tls    *tls.Config

	grpcListener net.Listener
	httpListener net.Listener
	ready        atomic.Bool
	serving      sync.WaitGroup
	stopOnce     sync.Once
	stopErr      error
}

// New makes a server, which Stop ends also where Start was never called. It opens nothing; it refuses to be reachable from elsewhere without TLS and tokens.
func New(o Options) (*Server, error) {
	if o.Guard == nil {
		var err error
		if o.Guard, err = auth.New(config.Auth{}); err != nil {
			return nil, err
		}
	}
	if err := refuseOpenDoor(o.Listen, o.Guard); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	service, err := bridge.New(o.Engine, o.Store, o.Log)
	if err != nil {
		return nil, err
	}
	o.Guard.Trust(o.Engine.Caller)
	s := &Server{
		listen: o.Listen,
		log:    o.Log,
		store:  o.Store,
		calls:  newCalls(service, o.Guard, o.Metrics),
		health: health.NewServer(),
	}
	if o.Listen.TLS.Cert != "" {
		if s.tls, err = tlsConfig(o.Listen.TLS, o.Log); err != nil {
			return nil, err
		}
	}
	if s.http, err = s.newHTTP(o.Registry); err != nil {
		return nil, err
	}
	s.grpc = s.newGRPC()
	return s, nil
}

// refuseOpenDoor: whoever reaches the gateway can run programs.
func refuseOpenDoor(listen config.Listen, guard *auth.Guard) error {
	for _, address := range []string{listen.GRPC, listen.HTTP} {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return fmt.Errorf("%q is not an address to listen on: write host:port", address)
		}
		if !config.IsLoopback(host) && (listen.TLS.Cert == "" || guard.Open()) {
			return fmt.Errorf("%s can be reached from other machines, and whoever reaches the gateway can run programs: set listen.tls and auth, or listen on 127.0.0.1", address)
		}
	}
	return nil
}

// Start opens both doors. When it returns without an error, both serve; after an error there is nothing to stop.
func (s *Server) Start() error {
	if s.grpcListener != nil {
		return nil
	}
	if err := s.open(); err != nil {
		s.grpc.Stop()
		return err
	}
	s.serving.Go(func() {
		if err := s.grpc.Serve(s.grpcListener); err != nil {
			s.log.Error("the gRPC door has closed", "err", err)
		}
	})
	s.serving.Go(func() {
		serve := s.http.Serve
		if s.tls != nil {
			serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
		}
		if err := serve(s.httpListener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the REST door has closed", "err", err)
		}
	})
	s.health.Resume()
	s.ready.Store(true)
	s.log.Info("listening", "grpc", s.GRPCAddr(), "http", s.HTTPAddr(), "tls", s.tls != nil)
	return nil
}

func (s *Server) open() error {
	grpcListener, err := net.Listen("tcp", s.listen.GRPC)
	if err != nil {
		return fmt.Errorf("opening listen.grpc: %w", err)
	}
	httpListener, err := net.Listen("tcp", s.listen.HTTP)
	if err != nil {
		return errors.Join(fmt.Errorf("opening listen.http: %w", err), grpcListener.Close())
	}
	s.grpcListener, s.httpListener = grpcListener, httpListener
	return nil
}

// GRPCAddr is where gRPC is served, as host:port, after Start.
func (s *Server) GRPCAddr() string { return s.grpcListener.Addr().String() }

// HTTPAddr is where REST is served, as host:port, after Start.
func (s *Server) HTTPAddr() string { return s.httpListener.Addr().String() }

// Stop closes both doors: streams are told to come back, calls are let finish until the context ends, and then cut off. No
// job is cancelled. Errors: the context's, when calls had to be cut off.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

func (s *Server) stop(ctx context.Context) error {
	s.ready.Store(false)
	s.health.Shutdown()
	s.calls.endStreams()
	cut := time.AfterFunc(lastCalls, s.calls.endCalls)
	defer cut.Stop()
	defer s.calls.endCalls()

	over := context.AfterFunc(ctx, s.grpc.Stop)
	defer over()
	var rest sync.WaitGroup
	rest.Go(s.grpc.GracefulStop)
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	rest.Wait()
	s.serving.Wait()
	return err
}
