package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/config"
)

// setQueryParser sets how all of a process' gateway muxes read queries: the library keeps it in a variable of its own.
var setQueryParser = sync.OnceFunc(func() { runtime.NewServeMux(runtime.SetQueryParameterParser(queryParser{})) })

// newHTTP makes the REST door.
func (s *Server) newHTTP(registry prometheus.Gatherer) (*http.Server, error) {
	setQueryParser()
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, marshaler{}),
		// Of a path, the segments are taken apart before they are unescaped, so that %2F stays within its own.
		runtime.WithUnescapingMode(runtime.UnescapingModeAllExceptReserved),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithIncomingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithErrorHandler(s.writeError),
		runtime.WithRoutingErrorHandler(routingError),
	)
	desc := serviceDesc()
	client := dagbridgev1.NewBridgeServiceClient(newInProcess(desc, s.calls.bridge, s.calls.unary))
	if err := dagbridgev1.RegisterBridgeServiceHandlerClient(context.Background(), mux, client); err != nil {
		return nil, err
	}
	if err := s.addStreams(mux, desc); err != nil {
		return nil, err
	}
	if err := s.addPages(mux, registry); err != nil {
		return nil, err
	}
	return &http.Server{
		Handler:   s.door(mux),
		TLSConfig: s.tls,
		// No limit on whole requests or answers: watches and logs last.
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}, nil
}

// door is what a request passes before it is routed.
func (s *Server) door(next *runtime.ServeMux) http.Handler {
	refuse := func(w http.ResponseWriter, r *http.Request, err error) {
		_, out := runtime.MarshalerForRequest(next, r)
		s.writeError(r.Context(), next, out, w, r, err)
	}
	through := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		// net/url leaves RawPath empty where Path can be escaped in one way only; the mux is to see it escaped always.
		if r.URL.RawPath == "" {
			r.URL.RawPath = r.URL.EscapedPath()
		}
		if query, err := url.QueryUnescape(r.URL.RawQuery); !utf8.ValidString(r.URL.Path) || err == nil && !utf8.ValidString(query) {
			refuse(w, r, status.Error(codes.InvalidArgument, "the address is not UTF-8: percent-encode the UTF-8 of ids"))
			return
		}
		if !publicPages[r.URL.Path] {
			// Before the body is read. Calls go through the same hook again, with their method.
			if _, err := s.calls.guard.Authorise(r.Context(), r.URL.Path, r.Header.Get("Authorization")); err != nil {
				refuse(w, r, err)
				return
			}
			if s.calls.guard.Open() && !fromHere(r) {
				refuse(w, r, status.Errorf(codes.PermissionDenied, "a gateway without tokens answers to localhost and loopback addresses only, not to %q", r.Host))
				return
			}
		}
		r.Body = &body{ReadCloser: r.Body, length: r.ContentLength, asksFirst: r.Header.Get("Expect") != ""}
		next.ServeHTTP(w, r)
	})
	// A page in a browser on this machine must not run programs here: neither by a form that it sends from elsewhere, nor (see
	// fromHere) by a name of its own that it lets point here.
	csrf := http.NewCrossOriginProtection()
	csrf.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, status.Error(codes.PermissionDenied, "a browser sent this from a page of another site"))
	}))
	return csrf.Handler(through)
}

// fromHere: the client calls the gateway by a name of this machine's own.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return config.IsLoopback(host)
}

// writeError answers with a status, in JSON.
func (s *Server) writeError(ctx context.Context, _ *runtime.ServeMux, m runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	// What was wrong with the body is known to the body: the code between has made a text of it.
	if b, ok := r.Body.(*body); ok && b.fault != nil {
		err = b.fault
	}
	told, httpStatus := s.told(ctx, err)
	text, err := m.Marshal(told.Proto())
	if err != nil {
		s.log.ErrorContext(ctx, "an error could not be told", "err", err)
		text = []byte(`{"code":13,"message":"internal error","details":[]}`)
	}
	h := w.Header()
	h.Set("Content-Type", m.ContentType(nil))
	switch told.Code() {
	case codes.Unauthenticated:
		h.Set("WWW-Authenticate", "Bearer")
	case codes.ResourceExhausted:
		if httpStatus == http.StatusRequestEntityTooLarge {
			h.Set("Connection", "close") // The rest of the body is not read.
		}
	}
	w.WriteHeader(httpStatus)
	_, _ = w.Write(append(text, '\n')) // The client may be gone.
}

// told is an error as gRPC would tell it, and the HTTP status that goes with it.
func (s *Server) told(ctx context.Context, err error) (*status.Status, int) {
	httpStatus := 0
	switch e := err.(type) {
	case *runtime.HTTPStatusError:
		httpStatus, err = e.HTTPStatus, e.Err
		if _, ok := status.FromError(err); !ok {
			err = status.Error(codes.InvalidArgument, err.Error())
		}
	case *tooLarge:
		httpStatus, err = http.StatusRequestEntityTooLarge, status.Error(codes.ResourceExhausted, e.Error())
	}
	told := status.Convert(s.calls.bridge.Status(ctx, err))
	if httpStatus == 0 {
		httpStatus = runtime.HTTPStatusFromCode(told.Code())
	}
	return told, httpStatus
}

// routingError answers where no route is.
func routingError(ctx context.Context, mux *runtime.ServeMux, m runtime.Marshaler, w http.ResponseWriter, r *http.Request, httpStatus int) {
	err := status.Errorf(codes.NotFound, "there is nothing at %s: /openapi.json says what there is", r.URL.EscapedPath())
	switch httpStatus {
	case http.StatusMethodNotAllowed:
		err = status.Errorf(codes.Unimplemented, "%s does not take %s: /openapi.json says what it takes", r.URL.EscapedPath(), r.Method)
	case http.StatusBadRequest:
		err = status.Errorf(codes.InvalidArgument, "%q is no path", r.URL.Path)
	}
	runtime.HTTPError(ctx, mux, m, w, r, &runtime.HTTPStatusError{HTTPStatus: httpStatus, Err: err})
}
