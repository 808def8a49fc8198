package server

import (
	"net/http"
)

// backup answers with a copy of the store as it is now. It goes through the same guard as every page that is not public. An
// answer that breaks off is no backup: it ends without its last chunk, which clients notice.
func (s *Server) backup(w http.ResponseWriter, r *http.Request, _ map[string]string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="dagbridge.db"`)
	n, err := s.store.Backup(w)
	if err != nil {
		s.log.ErrorContext(r.Context(), "a backup broke off", "bytes", n, "err", err)
		panic(http.ErrAbortHandler) // net/http's way to cut an answer that has begun
	}
	s.log.InfoContext(r.Context(), "a backup was taken", "bytes", n)
}
