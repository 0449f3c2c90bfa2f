package badger

import (
	"context"
	"encoding/binary"
	"errors"

	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
	"taxon/store/segment"
)

// replay opens the segments and finds the values again whose heads are not in Badger.
func (s *Store) replay() error {
	files, highest, err := segment.OpenAll(s.segments())
	for _, f := range files { // from now on Close closes them
		s.table.add(f)
	}
	if err != nil {
		return err
	}
	marks, err := s.marks()
	if err != nil {
		return err
	}
	s.table.next = max(s.table.next, highest+1)
	var stale [][]byte
	for number := range marks {
		s.table.next = max(s.table.next, number+1)
		if s.table.file(number) == nil { // the crash came between the two halves of a drop
			stale = append(stale, markOf(number))
		}
	}
	if err := s.mark(stale); err != nil {
		return err
	}
	for _, f := range files {
		if err := s.replayFile(f, marks[f.Number]); err != nil {
			return err
		}
	}
	if err := s.relieve(context.Background()); !errors.Is(err, store.ErrFull) { // else they go on waiting
		return err
	}
	return nil
}

func (s *Store) replayFile(f *segment.File, m mark) error {
	if m.sum != f.Sum() || m.end > f.Size() {
		m.end = 0
	}
	st, err := s.stepOf(store.Key{Job: f.Job, Step: f.Step})
	if err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.files = append(st.files, f)
	// A damaged value is one that was being written, or has rotted: in both cases whoever
	// misses it can have it made again, and one written earlier under the key still counts.
	return f.Scan(context.Background(), m.end, func(e segment.Entry) error {
		switch {
		case e.Deleted:
			s.table.drop(st, itemOf(e.Key))
		case !e.Damaged:
			s.table.set(st, itemOf(e.Key), place{f, e.Offset, e.Bytes, e.CRC32C})
		}
		return nil
	})
}

// marks reads how far segments have heads in Badger, by their numbers.
func (s *Store) marks() (map[uint64]mark, error) {
	out := map[uint64]mark{}
	err := s.view(func(txn *bdg.Txn) error {
		prefix := []byte(markKey)
		it := txn.NewIterator(bdg.IteratorOptions{Prefix: prefix})
		defer it.Close()
		for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
			item := it.Item()
			err := item.Value(func(b []byte) error {
				if m, ok := parseMark(b); ok && len(item.Key()) == len(prefix)+8 {
					out[binary.BigEndian.Uint64(item.Key()[len(prefix):])] = m
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}
