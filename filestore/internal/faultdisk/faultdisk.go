// Package faultdisk is a disk.Layer in memory that does what disks do: it loses power between any two operations, in
// the middle of a write, and then everything that was not synced, or any part of it. It has no clock and draws
// nothing at random: tests say what happens.
package faultdisk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"

	"taskledger/filestore/internal/disk"
)

// Sector is the number of bytes that are written as a whole or not at all.
const Sector = 512

// ErrKilled reports an operation after the process was killed.
var ErrKilled = errors.New("the process was killed")

// Disk is a directory. Its methods may be called concurrently.
type Disk struct {
	mu      sync.Mutex
	files   map[string]*inode
	synced  map[string]*inode         // names as of the last SyncDir
	renames []func(map[string]*inode) // what has become of names since
	changes int                       // operations that change something, so far
	killAt  int                       // the change that is not made any more; 0 = none
	dead    bool
	failAt  int   // the change from which on those fail that take room; 0 = none
	failure error // with which they fail
	room    int64 // bytes that files may have together; 0 = any number
	frozen  bool
	eager   bool // what is written is durable at once

	forgetAt int // the change from which on the first sync of a file forgets what it had to write; 0 = none
}

var _ disk.Rewritable = (*Disk)(nil)

// inode is the content of a file.
type inode struct {
	data   []byte
	synced []byte
	// lost has the offsets of sectors that a sync has failed to write and that the system takes for written since: a
	// later sync passes them over, unless they are written again.
	lost map[int]bool
}

// spoil leaves a file as a sync does that has failed.
func (f *inode) spoil() {
	for at := 0; at < len(f.data); at += Sector {
		end := min(at+Sector, len(f.data))
		if bytes.Equal(f.data[at:end], part(f.synced, at, end)) {
			continue
		}
		if f.lost == nil {
			f.lost = map[int]bool{}
		}
		f.lost[at] = true
	}
}

// sync makes durable what is not lost.
func (f *inode) sync() {
	now := bytes.Clone(f.data)
	for at := range f.lost {
		if end := min(at+Sector, len(now)); at < end {
			copy(now[at:end], part(f.synced, at, end))
		}
	}
	f.synced = now
}

// write adds data at the end.
func (f *inode) write(data []byte) {
	delete(f.lost, len(f.data)/Sector*Sector) // this sector is written anew
	f.data = append(f.data, data...)
}

// New returns an empty disk.
func New() *Disk { return &Disk{files: map[string]*inode{}, synced: map[string]*inode{}} }

// KillAt kills the process at its nth change from now on, of which a write has come half-way.
func (d *Disk) KillAt(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.killAt = d.changes + n
}

// Changes returns how many operations have changed something.
func (d *Disk) Changes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes
}

// Room bounds the bytes of all files; 0 = not any more.
func (d *Disk) Room(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = bytes
}

// Used returns the bytes of all files.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used()
}

func (d *Disk) used() (n int64) {
	for _, f := range d.files {
		n += int64(len(f.data))
	}
	return n
}

// FailAt makes every change that takes room fail from the nth one from now on; of a write a half is made. A nil error
// ends that.
func (d *Disk) FailAt(n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt, d.failure = d.changes+n, err
}

// WriteAtOnce makes all that is written durable at once, as a system may do at any time, while a cut still waits for a
// sync.
func (d *Disk) WriteAtOnce() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.eager = true
}

// Freeze makes the disk read-only, as a file system does that has found errors.
func (d *Disk) Freeze() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frozen = true
}

// Fate says what a loss of power leaves.
type Fate struct {
	// Names says how many of n changes of names since the last SyncDir are kept, the first ones.
	Names func(n int) int
	// Name reports whether one of these is kept, so that a disk may have written them in any order; nil = each is.
	Name func() bool
	// Length says how long a file is whose synced length and present length are given.
	Length func(synced, written int) int
	// Sector reports whether a sector that differs from what was synced is kept.
	Sector func() bool
}

// Crash returns the disk after a loss of power.
func (d *Disk) Crash(f Fate) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := maps.Clone(d.synced)
	for _, rename := range d.renames[:f.Names(len(d.renames))] {
		if f.Name == nil || f.Name() {
			rename(names)
		}
	}
	after := New()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		data := names[name].after(f)
		after.files[name] = &inode{data: data, synced: bytes.Clone(data)}
	}
	after.synced = maps.Clone(after.files)
	return after
}

// after returns what a loss of power leaves of a file.
func (f *inode) after(fate Fate) []byte {
	if bytes.Equal(f.data, f.synced) {
		return bytes.Clone(f.data)
	}
	left := make([]byte, fate.Length(len(f.synced), len(f.data)))
	copy(left, f.synced)
	for at := 0; at < len(left); at += Sector {
		end := min(at+Sector, len(left))
		if bytes.Equal(left[at:end], part(f.data, at, end)) || f.lost[at] || !fate.Sector() {
			continue
		}
		copy(left[at:end], part(f.data, at, end))
	}
	return left
}

// part returns bytes of data; what is behind its end is zeros.
func part(data []byte, at, end int) []byte {
	p := make([]byte, end-at)
	if at < len(data) {
		copy(p, data[at:min(end, len(data))])
	}
	return p
}

// Restart returns the disk after the process was killed: the system keeps what was written, though not yet through a
// loss of power. This one must not be used any more.
func (d *Disk) Restart() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	return &Disk{files: d.files, synced: d.synced, renames: d.renames}
}

// Contents returns a copy of all files.
func (d *Disk) Contents() map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string][]byte{}
	for name, f := range d.files {
		all[name] = bytes.Clone(f.data)
	}
	return all
}

// Flip flips a bit of a file: one that its offset picks.
func (d *Disk) Flip(name string, at int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	data := bytes.Clone(d.files[name].data)
	data[at] ^= 1 << (at % 8)
	d.files[name].data = data
}

// Of returns a disk with these files, all synced.
func Of(contents map[string][]byte) *Disk {
	d := New()
	for name, data := range contents {
		d.files[name] = &inode{data: bytes.Clone(data), synced: bytes.Clone(data)}
	}
	d.synced = maps.Clone(d.files)
	return d
}

// change counts an operation, and returns why it is not made. The caller holds mu.
func (d *Disk) change() error {
	if d.dead {
		return ErrKilled
	}
	if d.frozen {
		return syscall.EROFS
	}
	d.changes++
	if d.changes == d.killAt {
		d.dead = true
		return ErrKilled
	}
	return nil
}

// take is change of what takes room. The caller holds mu.
func (d *Disk) take() error {
	if err := d.change(); err != nil {
		return err
	}
	if d.failure != nil && d.changes >= d.failAt {
		return d.failure
	}
	return nil
}

// rename changes names, durably with the next SyncDir. The caller holds mu.
func (d *Disk) rename(change func(map[string]*inode)) {
	change(d.files)
	d.renames = append(d.renames, change)
}

// Open implements disk.Layer.
func (d *Disk) Open(name string, how disk.Access) (disk.File, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, 0, ErrKilled
	}
	f := d.files[name]
	switch {
	case how == disk.Anew && f != nil:
		return nil, 0, fs.ErrExist
	case how != disk.Anew && f == nil:
		return nil, 0, fs.ErrNotExist
	case how == disk.ToWrite && d.frozen:
		return nil, 0, syscall.EROFS
	case how == disk.Anew:
		if err := d.take(); err != nil {
			return nil, 0, err
		}
		f = &inode{}
		d.rename(func(names map[string]*inode) { names[name] = f })
	}
	return &file{d, f}, int64(len(f.data)), nil
}

// List implements disk.Layer.
func (d *Disk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, ErrKilled
	}
	return slices.Sorted(maps.Keys(d.files)), nil
}

// Rename implements disk.Layer.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.take(); err != nil {
		return err
	}
	f := d.files[from]
	if f == nil {
		return fs.ErrNotExist
	}
	d.rename(func(names map[string]*inode) {
		delete(names, from)
		names[to] = f
	})
	return nil
}

// Remove implements disk.Layer.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[name] == nil && !d.dead {
		return nil
	}
	if err := d.change(); err != nil {
		return err
	}
	d.rename(func(names map[string]*inode) { delete(names, name) })
	return nil
}

// SyncDir implements disk.Layer.
func (d *Disk) SyncDir() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.take(); err != nil {
		return err
	}
	d.synced, d.renames = maps.Clone(d.files), nil
	return nil
}

// file is an open file.
type file struct {
	disk *Disk
	of   *inode
}

// ReadAt implements disk.File.
func (f *file) ReadAt(into []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	switch {
	case f.disk.dead:
		return 0, ErrKilled
	case at >= int64(len(f.of.data)):
		return 0, io.EOF
	}
	n := copy(into, f.of.data[at:])
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}

// Write implements disk.File.
func (f *file) Write(data []byte) (int, error) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.dead || d.frozen
	if err := d.take(); err != nil {
		if !was {
			d.write(f.of, data[:len(data)/2])
		}
		return 0, err
	}
	if left := d.room - d.used(); d.room > 0 && left < int64(len(data)) {
		n := max(left, 0)
		d.write(f.of, data[:n])
		return int(n), syscall.ENOSPC
	}
	d.write(f.of, data)
	return len(data), nil
}

// write adds data at the end of a file. The caller holds mu.
func (d *Disk) write(f *inode, data []byte) {
	f.write(data)
	if d.eager {
		f.sync()
	}
}

// Sync implements disk.File.
func (f *file) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.take(); err != nil {
		if !f.disk.dead && !f.disk.frozen {
			f.of.spoil()
		}
		return err
	}
	return f.disk.sync(f.of)
}

// Truncate implements disk.File.
func (f *file) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.change(); err != nil {
		return err
	}
	f.of.data = f.of.data[:size:size]
	delete(f.of.lost, int(size)/Sector*Sector) // the system clears what is behind the end there
	for at := range f.of.lost {
		if at >= int(size) {
			delete(f.of.lost, at)
		}
	}
	return nil
}

// Close implements disk.File.
func (f *file) Close() error { return nil }
