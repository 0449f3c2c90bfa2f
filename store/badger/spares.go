package badger

import (
	"errors"
	"sync"

	"taxon/store/segment"
)

// spares are the files of dropped steps that wait for new ones: see segment.Blank. A job
// drops about as much a sweep as it writes.
type spares struct {
	mu    sync.Mutex
	files []*segment.Blank
	bytes int64
}

// maxSpares and maxSpareBytes bound what waits on the disk; writes that need the room have it.
const (
	maxSpares     = 4
	maxSpareBytes = 256 << 20
)

// keep takes the file of a step that was dropped, or removes it.
func (s *spares) keep(f *segment.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) == maxSpares || s.bytes+f.Size() > maxSpareBytes {
		return f.Remove()
	}
	b, err := f.Blank()
	if b != nil {
		s.files = append(s.files, b)
		s.bytes += b.Size
	}
	return err
}

// take gives the file that has waited longest; nil: there is none.
func (s *spares) take() *segment.Blank {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) == 0 {
		return nil
	}
	b := s.files[0]
	s.files = s.files[1:]
	s.bytes -= b.Size
	return b
}

// clear removes what waits, and tells whether anything did.
func (s *spares) clear() (some bool, err error) {
	for b := s.take(); b != nil; b = s.take() {
		some = true
		err = errors.Join(err, b.Remove())
	}
	return some, err
}
