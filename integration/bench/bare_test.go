package bench

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// bare is a group-commit loop over bbolt, and nothing else.
type bare struct {
	db    *bolt.DB
	puts  []puts
	calls chan chan error
	wg    sync.WaitGroup
	seq   uint64
}

func openBare(b *testing.B, puts []puts) *bare {
	b.Helper()
	db, err := bolt.Open(storeFile(b.TempDir()), 0o600, &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType, InitialMmapSize: 1 << 30})
	require.NoError(b, err)
	l := &bare{db: db, puts: puts, calls: make(chan chan error, 1024)}
	require.NoError(b, db.Update(func(tx *bolt.Tx) error {
		for _, p := range puts {
			if _, err := tx.CreateBucket([]byte(p.bucket)); err != nil {
				return err
			}
		}
		return nil
	}))
	l.wg.Go(l.loop)
	return l
}

func (l *bare) loop() {
	for first := range l.calls {
		batch := []chan error{first}
		for range len(l.calls) {
			batch = append(batch, <-l.calls)
		}
		err := l.db.Update(func(tx *bolt.Tx) error {
			for range batch {
				if err := l.put(tx); err != nil {
					return err
				}
			}
			return nil
		})
		for _, call := range batch {
			call <- err
		}
	}
}

// put puts what one submission does. Several keys in one bucket are of several kinds, each in ascending order.
func (l *bare) put(tx *bolt.Tx) error {
	l.seq++
	for _, p := range l.puts {
		bucket := tx.Bucket([]byte(p.bucket))
		bucket.FillPercent = 0.9
		for kind := range p.n {
			key := make([]byte, max(p.key, 9))
			key[0] = byte(kind)
			binary.BigEndian.PutUint64(key[len(key)-8:], l.seq)
			if err := bucket.Put(key, make([]byte, p.value)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *bare) update() error {
	done := make(chan error, 1)
	l.calls <- done
	return <-done
}

func (l *bare) close(b *testing.B) {
	b.Helper()
	close(l.calls)
	l.wg.Wait()
	require.NoError(b, l.db.Close())
}
