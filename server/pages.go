package server

import (
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dagbridge/dagbridge/proto"
)

// publicPages need no token: a probe has none.
var publicPages = map[string]bool{"/healthz": true, "/readyz": true}

// addPages adds what is no RPC. /healthz and /readyz are public; /metrics, /openapi.json and /admin/backup need a token
// where the API does.
func (s *Server) addPages(mux *runtime.ServeMux, registry prometheus.Gatherer) error {
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	api, err := proto.OpenAPI()
	if err != nil {
		return err
	}
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	pages := map[string]runtime.HandlerFunc{
		"/openapi.json": func(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(api) // The client may be gone.
		},
		"/admin/backup": s.backup,
		"/metrics":      func(w http.ResponseWriter, r *http.Request, _ map[string]string) { metrics.ServeHTTP(w, r) },
		// The process answers.
		"/healthz": func(w http.ResponseWriter, _ *http.Request, _ map[string]string) { ok(w) },
		// The store is open and both doors serve, whatever the clusters do.
		"/readyz": func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
			if !s.ready.Load() {
				runtime.HTTPError(r.Context(), mux, marshaler{}, w, r, status.Error(codes.Unavailable, "the gateway is starting or stopping"))
				return
			}
			ok(w)
		},
	}
	for path, page := range pages {
		if err := mux.HandlePath(http.MethodGet, path, page); err != nil {
			return err
		}
	}
	return nil
}

func ok(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // The client may be gone.
}
