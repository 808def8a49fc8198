package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// earlyHeader is when a stream that has nothing to say yet says at least that it is one.
const earlyHeader = time.Second

// addStreams adds the streaming routes. Each plays a gRPC stream, so that it goes through the same chain.
func (s *Server) addStreams(mux *runtime.ServeMux, desc grpc.ServiceDesc) error {
	streams := make(map[string]grpc.StreamHandler)
	for _, d := range desc.Streams {
		streams[d.StreamName] = d.Handler
	}
	watch := func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
		req := &dagbridgev1.WatchJobsRequest{}
		if err := (marshaler{}).NewDecoder(r.Body).Decode(req); err != nil && !errors.Is(err, io.EOF) {
			runtime.HTTPError(r.Context(), mux, marshaler{}, w, r, err)
			return
		}
		s.serveStream(mux, w, r, "WatchJobs", streams["WatchJobs"], req, lines{})
	}
	logs := func(w http.ResponseWriter, r *http.Request, path map[string]string) {
		req := &dagbridgev1.ReadLogsRequest{Id: path["id"]}
		values, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			err = status.Error(codes.InvalidArgument, err.Error())
		} else {
			err = parseQuery(req, values, func(field string) bool { return field == "id" })
		}
		if err != nil {
			runtime.HTTPError(r.Context(), mux, marshaler{}, w, r, err)
			return
		}
		s.serveStream(mux, w, r, "ReadLogs", streams["ReadLogs"], req, text{})
	}
	return errors.Join(
		mux.HandlePath(http.MethodPost, "/v1/jobs:watch", watch),
		mux.HandlePath(http.MethodGet, "/v1/jobs/{id}/logs", logs),
	)
}

// form is how a stream's messages and its failure are written.
type form interface {
	contentType() string
	message(proto.Message) ([]byte, error)
	// failure of a stream that has begun; nil: the connection is broken off, since nothing else says that it is not complete.
	failure(*spb.Status) []byte
}

// lines: each message a line of JSON, as is a failure: {"error": {...}}.
type lines struct{}

func (lines) contentType() string { return "application/x-ndjson" }

func (lines) message(m proto.Message) ([]byte, error) {
	line, err := jsoncodec.Marshal(m)
	// Values are as their authors wrote them, line breaks included; in JSON these can only be between tokens.
	line = bytes.ReplaceAll(bytes.ReplaceAll(line, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
	return append(line, '\n'), err
}

func (lines) failure(told *spb.Status) []byte {
	line, err := jsoncodec.Marshal(told)
	if err != nil {
		return nil
	}
	return append(append([]byte(`{"error":`), line...), '}', '\n')
}

// text: a log's bytes as they are.
type text struct{}

func (text) contentType() string { return "text/plain; charset=utf-8" }
func (text) message(m proto.Message) ([]byte, error) {
	return m.(*dagbridgev1.ReadLogsResponse).GetData(), nil
}
func (text) failure(*spb.Status) []byte { return nil }

// serveStream calls a streaming method with one request, and writes what it sends until it ends or the client is gone.
func (s *Server) serveStream(mux *runtime.ServeMux, w http.ResponseWriter, r *http.Request, method string, handler grpc.StreamHandler, req proto.Message, f form) {
	ctx, cancel := context.WithCancel(metadata.NewIncomingContext(r.Context(), metadata.Pairs("authorization", r.Header.Get("Authorization"))))
	defer cancel()
	out := &answer{w: w, form: f}
	early := time.AfterFunc(earlyHeader, out.begin)
	defer early.Stop()
	info := &grpc.StreamServerInfo{FullMethod: "/" + dagbridgev1.BridgeService_ServiceDesc.ServiceName + "/" + method}
	err := s.calls.stream(s.calls.bridge, &httpStream{ctx: ctx, req: req, out: out}, info, handler)
	began := out.end()
	switch {
	case err == nil && !began:
		out.begin()
	case err == nil || r.Context().Err() != nil:
	case !began:
		runtime.HTTPError(r.Context(), mux, marshaler{}, w, r, err)
	default:
		told, _ := s.told(r.Context(), err)
		line := f.failure(told.Proto())
		if line == nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(line) // The client may be gone.
	}
}

// answer is the response of a stream.
type answer struct {
	w    http.ResponseWriter
	form form

	mu    sync.Mutex
	began bool
	ended bool
}

// begin sends the header, unless it is sent, or is too late.
func (a *answer) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.header()
}

func (a *answer) header() {
	if a.began || a.ended {
		return
	}
	a.began = true
	a.w.Header().Set("Content-Type", a.form.contentType())
	a.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(a.w).Flush() // A client that is gone is seen at the next write.
}

func (a *answer) send(m proto.Message) error {
	b, err := a.form.message(m)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.header()
	if _, err := a.w.Write(b); err != nil {
		return gone(err)
	}
	return gone(http.NewResponseController(a.w).Flush())
}

// gone: what cannot be written has no reader any more; that is no fault of the gateway's.
func gone(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codes.Canceled, "the client is gone: "+err.Error())
}

// end lets nobody else begin, and says whether somebody has.
func (a *answer) end() (began bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	return a.began
}

// httpStream is a gRPC stream on which the client has said one thing and will say no more.
type httpStream struct {
	ctx context.Context
	req proto.Message
	out *answer
}

func (s *httpStream) Context() context.Context     { return s.ctx }
func (s *httpStream) SetHeader(metadata.MD) error  { return nil }
func (s *httpStream) SendHeader(metadata.MD) error { return nil }
func (s *httpStream) SetTrailer(metadata.MD)       {}
func (s *httpStream) SendMsg(m any) error          { return s.out.send(m.(proto.Message)) }

func (s *httpStream) RecvMsg(m any) error {
	if s.req == nil {
		return io.EOF
	}
	share(m.(proto.Message), s.req)
	s.req = nil
	return nil
}
