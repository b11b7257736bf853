package filejournal

import "taskledger/filestore/internal/disk"

// Waiting returns how many entries wait to be written.
func (j *Journal) Waiting() int {
	j.queue.Lock()
	defer j.queue.Unlock()
	return len(j.waiting)
}

// OpenLayerToRead is OpenToRead on a file layer, which nobody writes to.
func OpenLayerToRead(l disk.Layer) (*Journal, error) { return openToRead(l) }
