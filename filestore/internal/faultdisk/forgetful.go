package faultdisk

import (
	"io/fs"
	"syscall"
)

// ForgetAt makes the first sync of a file fail that is the nth change from now on or comes later. What that sync had to
// make durable is read as before, and no later sync writes it: Linux takes the pages of a write that failed for
// written. A write of the same bytes is made durable again.
func (d *Disk) ForgetAt(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetAt = d.changes + n
}

// RewritePart implements disk.Rewriter.
func (d *Disk) RewritePart(name string, from, to int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	if f == nil {
		return fs.ErrNotExist
	}
	if err := d.take(); err != nil { // it is written, and synced
		return err
	}
	for at := int(from) / Sector * Sector; at < int(to); at += Sector {
		delete(f.lost, at)
	}
	if err := d.take(); err != nil {
		return err
	}
	return d.sync(f)
}

// sync syncs a file, unless this is the sync that forgets. The caller holds mu.
func (d *Disk) sync(f *inode) error {
	if d.forgetAt != 0 && d.changes >= d.forgetAt {
		d.forgetAt = 0
		f.spoil()
		return syscall.EIO
	}
	f.sync()
	return nil
}
