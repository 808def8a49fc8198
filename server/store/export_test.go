package store

// Waiting is how many callers of Update wait for a batch.
func (s *Store) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}
