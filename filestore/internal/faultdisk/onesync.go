package faultdisk

import (
	"sync/atomic"
	"syscall"

	"taskledger/filestore/internal/disk"
)

// OneSync is a Disk one of whose syncs of a file waits and then fails, while those beside it and after it do not: a
// system tells of a write that failed to one sync alone.
type OneSync struct {
	*Disk
	// Began is closed when the sync begins.
	Began chan struct{}

	goOn  chan struct{}
	armed atomic.Bool
}

// NewOneSync returns an empty disk whose syncs do not fail yet.
func NewOneSync() *OneSync {
	return &OneSync{Disk: New(), Began: make(chan struct{}), goOn: make(chan struct{})}
}

// Arm makes the next sync of a file the one that fails.
func (d *OneSync) Arm() { d.armed.Store(true) }

// GoOn ends the wait of that sync.
func (d *OneSync) GoOn() { close(d.goOn) }

// Open implements disk.Layer.
func (d *OneSync) Open(name string, how disk.Access) (disk.File, int64, error) {
	f, size, err := d.Disk.Open(name, how)
	return oneSyncFile{f, d}, size, err
}

type oneSyncFile struct {
	disk.File
	of *OneSync
}

// Sync implements disk.File.
func (f oneSyncFile) Sync() error {
	if f.of.armed.CompareAndSwap(true, false) {
		close(f.of.Began)
		<-f.of.goOn
		f.of.mu.Lock()
		defer f.of.mu.Unlock()
		f.File.(*file).of.spoil()
		return syscall.EIO
	}
	return f.File.Sync()
}
