package filejournal

import (
	"time"

	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
)

// At returns the options with another clock.
func (o Options) At(now func() time.Time) Options {
	o.now = now
	return o
}

// Waiting returns how many entries wait to be written.
func (j *Journal) Waiting() int {
	j.queue.Lock()
	defer j.queue.Unlock()
	return len(j.waiting)
}

// OpenLayerToRead is OpenToRead on a file layer, which nobody writes to.
func OpenLayerToRead(l disk.Rewritable) (*Journal, error) { return openToRead(l) }

// Begun returns where the first record of a segment ends.
func Begun(content []byte) (int, error) {
	_, next, err := frame.Read(content, 0)
	return int(next), err
}
