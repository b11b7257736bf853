package filejournal

import (
	"sync"
	"sync/atomic"

	"taskledger/filestore/internal/disk"
)

// maxReading bounds the segments that are open to be read.
const maxReading = 64

// reading opens segments when they are read, and keeps those open that were read last.
type reading struct {
	layer disk.Layer
	reads atomic.Int64 // so far

	mu   sync.RWMutex
	open map[*segment]*opened
}

// opened is a segment that is open to be read.
type opened struct {
	file disk.File
	last atomic.Int64 // the last read of it, by the number of reads
}

// readAt reads bytes of a segment.
func (r *reading) readAt(s *segment, into []byte, at int64) error {
	r.mu.RLock()
	if o := r.open[s]; o != nil {
		defer r.mu.RUnlock()
		return r.readFrom(o, into, at)
	}
	r.mu.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.open[s]
	if o == nil {
		f, _, err := r.layer.Open(s.name, disk.ToRead)
		if err != nil {
			return err
		}
		r.makeRoom()
		o = &opened{file: f}
		r.open[s] = o
	}
	return r.readFrom(o, into, at)
}

func (r *reading) readFrom(o *opened, into []byte, at int64) error {
	o.last.Store(r.reads.Add(1))
	_, err := o.file.ReadAt(into, at)
	return err
}

// makeRoom closes the segment that was not read for longest, where too many are open. The caller holds mu.
func (r *reading) makeRoom() {
	if len(r.open) < maxReading {
		return
	}
	var oldest *segment
	for s, o := range r.open {
		if oldest == nil || o.last.Load() < r.open[oldest].last.Load() {
			oldest = s
		}
	}
	r.close(oldest)
}

// forget closes a segment that is removed or replaced.
func (r *reading) forget(s *segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close(s)
}

// close closes a segment if it is open. The caller holds mu.
func (r *reading) close(s *segment) {
	if o := r.open[s]; o != nil {
		_ = o.file.Close() // nothing was written to it
		delete(r.open, s)
	}
}

func (r *reading) closeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.open {
		r.close(s)
	}
}
