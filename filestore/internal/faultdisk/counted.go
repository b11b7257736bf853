package faultdisk

import (
	"sync"

	"taskledger/filestore/internal/disk"
)

// Counted is a Disk that counts the files that are open, and panics where one is used after it was closed.
type Counted struct {
	*Disk
	mu         sync.Mutex
	open, most int
	refuses    error
}

// Open implements disk.Layer.
func (d *Counted) Open(name string, how disk.Access) (disk.File, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses != nil {
		return nil, 0, d.refuses
	}
	f, size, err := d.Disk.Open(name, how)
	if err != nil {
		return nil, 0, err
	}
	d.open++
	d.most = max(d.most, d.open)
	return &countedFile{File: f, of: d}, size, nil
}

// Refuse makes every opening of a file fail with an error from now on; nil ends that.
func (d *Counted) Refuse(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuses = err
}

// Opened returns how many files are open now, and how many were at most since it was called last.
func (d *Counted) Opened() (now, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	most, d.most = d.most, d.open
	return d.open, most
}

type countedFile struct {
	disk.File
	of     *Counted
	closed bool // guarded by mu of the disk
}

// check panics where the file is closed.
func (f *countedFile) check() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.closed {
		panic("a file is used that was closed")
	}
}

func (f *countedFile) ReadAt(into []byte, at int64) (int, error) {
	f.check()
	return f.File.ReadAt(into, at)
}

func (f *countedFile) Write(data []byte) (int, error) {
	f.check()
	return f.File.Write(data)
}

func (f *countedFile) Sync() error {
	f.check()
	return f.File.Sync()
}

func (f *countedFile) Truncate(size int64) error {
	f.check()
	return f.File.Truncate(size)
}

func (f *countedFile) Close() error {
	f.check()
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.closed = true
	f.of.open--
	return f.File.Close()
}
