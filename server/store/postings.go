package store

import (
	"bytes"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// source is a set of positions, read from the greatest down: calls of atMost come with bounds that never grow.
type source interface {
	// atMost is the greatest position that is not greater than the bound; nil when there is none.
	atMost(bound []byte) []byte
}

// postings is the set of positions that follow one prefix in a bucket.
type postings struct {
	c      *bolt.Cursor
	prefix []byte
	head   []byte // the last answer
	done   bool
}

func (p *postings) atMost(bound []byte) []byte {
	if p.done || p.head != nil && bytes.Compare(p.head, bound) <= 0 {
		return p.head
	}
	// Most often the next one down is asked for; a step costs a tenth of a search.
	if p.head != nil {
		if k, _ := p.c.Prev(); p.take(k) == nil || bytes.Compare(p.head, bound) <= 0 {
			return p.head
		}
	}
	key := slices.Concat(p.prefix, bound)
	k, _ := p.c.Seek(key)
	switch {
	case k == nil:
		k, _ = p.c.Last()
	case !bytes.HasPrefix(k, key):
		k, _ = p.c.Prev()
	}
	return p.take(k)
}

func (p *postings) take(key []byte) []byte {
	if key == nil || !bytes.HasPrefix(key, p.prefix) {
		p.head, p.done = nil, true
		return nil
	}
	p.head = key[len(p.prefix):]
	return p.head
}

// union is what is in any of its sets.
type union []source

func (u union) atMost(bound []byte) []byte {
	var greatest []byte
	for _, s := range u {
		if at := s.atMost(bound); at != nil && bytes.Compare(at, greatest) > 0 {
			greatest = at
		}
	}
	return greatest
}

// ids is a set that was collected, greatest first.
type ids struct{ left [][]byte }

func newIDs(collected [][]byte) *ids {
	slices.SortFunc(collected, func(a, b []byte) int { return bytes.Compare(b, a) })
	return &ids{left: collected}
}

func (s *ids) atMost(bound []byte) []byte {
	for len(s.left) > 0 && bytes.Compare(s.left[0], bound) > 0 {
		s.left = s.left[1:]
	}
	if len(s.left) == 0 {
		return nil
	}
	return s.left[0]
}

// intersect is the greatest position, not greater than the bound, that is in all sets; nil when there is none. It spends one of
// budget for each look, and when that is gone it returns where it has got to, which may be in some of the sets only.
func intersect(sets []source, bound []byte, budget *int) []byte {
	at := bound
	for agreed := 0; agreed < len(sets); {
		for _, s := range sets {
			*budget--
			found := s.atMost(at)
			if found == nil {
				return nil
			}
			if !bytes.Equal(found, at) {
				at, agreed = found, 0
			}
			if agreed++; agreed == len(sets) || *budget <= 0 {
				return at
			}
		}
	}
	return at
}
