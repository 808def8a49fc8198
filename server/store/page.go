package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"google.golang.org/protobuf/proto"
)

const (
	// DefaultPageSize and MaxPageSize of lists.
	DefaultPageSize = 100
	MaxPageSize     = 1000
	// pageBudget bounds how many index entries and records one page looks at, some 20 ms.
	pageBudget = 5_000
	// pageBytes is about the most that what is on one page weighs: an answer must fit into a message, whatever jobs have left
	// as their outputs.
	pageBytes = 32 << 20
)

// page is one page of a list.
type page struct {
	size  int
	token string
	of    proto.Message // what is listed: a token of another list is refused
}

// read calls take for what is in all sets, from where the token says, until it has taken enough. take says how many bytes it
// has taken, 0 when it leaves it.
func (p page) read(sets []source, width int, take func(id string) int) (next string, err error) {
	bound := bytes.Repeat([]byte{0xff}, width)
	if p.token != "" {
		if bound, err = p.position(width); err != nil {
			return "", err
		}
	}
	size := p.size
	if size <= 0 {
		size = DefaultPageSize
	}
	size = min(size, MaxPageSize)
	budget, room := pageBudget, pageBytes
	for more := true; more; {
		at := intersect(sets, bound, &budget)
		if at == nil {
			return "", nil
		}
		if size == 0 || budget <= 0 || room <= 0 {
			return p.mark(at), nil
		}
		if n := take(formatID(at[len(at)-idLen:])); n > 0 {
			size--
			room -= n
		}
		bound, more = pred(at)
	}
	return "", nil
}

// mark is the token of a page that begins at a position: a digest of what is listed, then the position.
func (p page) mark(position []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(p.digest(), position...))
}

func (p page) position(width int) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(p.token)
	digest := p.digest()
	if err != nil || len(b) != len(digest)+width || !bytes.HasPrefix(b, digest) {
		return nil, fmt.Errorf("%w: page token %q; leave it out to begin with the first page, and keep the filter while paging", ErrBadToken, p.token)
	}
	return b[len(digest):], nil
}

func (p page) digest() []byte {
	b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(p.of)
	sum := sha256.Sum256(b)
	return sum[:4]
}
