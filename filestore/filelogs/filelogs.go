package filelogs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/filestore/internal/disk"
	"taskledger/store"
	"taskledger/tasklog"
)

// The bounds of the logs where Config does not say otherwise, and the least that it may say. Beyond any bound the
// oldest batches go.
const (
	DefaultBytes = 1 << 30
	DefaultAge   = 30 * 24 * time.Hour
	MinBytes     = 1 << 20
	MinAge       = time.Second
	// MaxBatches bounds what is kept of each batch in memory, some 80 bytes.
	MaxBatches = 250_000
)

const (
	// shares is by how many segments the bounds are kept.
	shares = 16
	// maxSegmentBytes bounds what is read at once.
	maxSegmentBytes = 64 << 20
	// maxReading bounds the segments that are open to be read.
	maxReading = 16
)

// Config says how logs are kept. The zero value works.
type Config struct {
	// Cluster is the id of the cluster whose logs they are, and no other one's may be there. Default: "".
	Cluster string
	// MaxBytes bounds the bytes of all files, but for what the next one needs; default DefaultBytes.
	MaxBytes int64
	// MaxAge bounds the age of a batch; default DefaultAge. It may get older by a sixteenth.
	MaxAge time.Duration
}

// Logs keeps logs in files. Its methods may be called concurrently. The caller closes it.
type Logs struct {
	layer    disk.Layer
	rewriter disk.Rewriter // of the layer
	cfg      Config
	reading  *disk.Reading[*segment]
	unlock   func() error

	syncing sync.Mutex // taken by one sync at a time, before mu

	mu       sync.RWMutex
	segments []*segment // in order; the last one is written to
	index    index
	place    uint64 // of the last record
	batches  int    // those of the index
	durable  int64  // offset in the last segment up to which it is synced
	broken   error  // of a write that nobody knows the outcome of; nil = there was none
	closed   bool

	makeReady func() error // for writing; nil = that was done
}

var _ tasklog.Store = (*Logs)(nil)

var (
	// ErrInUse reports that a directory is in use, by another process or by this one.
	ErrInUse = disk.ErrInUse
	// ErrOtherCluster reports logs of another cluster than was expected.
	ErrOtherCluster = errors.New("logs are of another cluster")
	// ErrClosed reports a use after Close.
	ErrClosed = fmt.Errorf("logs are closed: %w", store.ErrUnavailable)
)

// Open opens the logs in a directory, which it makes where it is missing. It wraps ErrInUse, ErrOtherCluster, or
// events.ErrDamaged with the name of the file; then nothing was changed.
func Open(dir string, cfg Config) (*Logs, error) {
	l, err := Look(dir, cfg)
	if err != nil {
		return nil, err
	}
	if err := l.Begin(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Look is Open that leaves the directory as it is until Begin, and makes none; until then nothing can be asked. So
// whoever refuses what is there, or what is beside it, has changed nothing. The caller closes the logs also where they
// do not begin.
func Look(dir string, cfg Config) (*Logs, error) {
	unlock, err := disk.LockThere(dir)
	unlocked := errors.Is(err, fs.ErrNotExist) // so it is as long as no logs were ever there
	if unlocked {
		unlock, err = func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open logs of tasks: %w", err)
	}
	l, cut, err := look(disk.Dir(dir), cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open logs of tasks in %s: %w", dir, err), unlock())
	}
	l.unlock = unlock
	l.makeReady = func() error {
		if err := l.occupy(dir, unlocked, cut); err != nil {
			return fmt.Errorf("open logs of tasks in %s: %w", dir, err)
		}
		return nil
	}
	return l, nil
}

// occupy makes the directory, takes its lock where that is not taken, and makes it ready for writing. What is there is
// read anew then, since others may have been there meanwhile. The caller holds mu.
func (l *Logs) occupy(dir string, unlocked bool, cut int64) error {
	if err := disk.MakeDir(dir); err != nil {
		return err
	}
	if unlocked {
		unlock, err := disk.Lock(dir)
		if err != nil {
			return err
		}
		l.unlock = unlock
		if err := l.closeFiles(); err != nil {
			return err
		}
		l.segments, l.index, l.place, l.batches = nil, index{}, 0, 0
		if cut, err = l.readAll(); err != nil {
			return err
		}
	}
	return l.settle(cut)
}

// Begin makes the directory ready for writing, once: it cuts what a crash has left, and makes durable what is there.
// After an error nothing can be asked.
func (l *Logs) Begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.makeReady == nil {
		return disk.ErrReadOnly
	}
	if err := l.makeReady(); err != nil {
		return err
	}
	l.makeReady = nil
	return nil
}

// Check reads the logs in a directory as Open does, and changes nothing there; that there are none is no error. It
// wraps what Open wraps. Logs without their file lock are read all the same: whoever checks them has the lock of the
// store beside them, without which nobody writes there.
func Check(dir, cluster string) error {
	unlock, err := disk.LockToRead(dir, isSegment)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, disk.ErrNoLock):
		unlock = func() error { return nil }
	case err != nil:
		return fmt.Errorf("check logs of tasks: %w", err)
	}
	l := newLogs(disk.ReadOnly(dir), Config{Cluster: cluster})
	_, err = l.readAll()
	if err != nil {
		err = fmt.Errorf("check logs of tasks in %s: %w", dir, err)
	}
	return errors.Join(err, l.closeFiles(), unlock())
}

// look is Look on a file layer, which nobody else uses. It returns where to cut what a crash has left of the last
// segment; 0 = nowhere.
func look(layer disk.Rewritable, cfg Config) (l *Logs, cut int64, err error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultBytes)
	cfg.MaxAge = cmp.Or(cfg.MaxAge, DefaultAge)
	switch {
	case cfg.MaxBytes < MinBytes:
		problem := fmt.Sprintf("%d, want %d or more", cfg.MaxBytes, MinBytes)
		return nil, 0, &store.InvalidError{Field: "MaxBytes", Problem: problem}
	case cfg.MaxAge < MinAge:
		problem := fmt.Sprintf("%s, want %s or more", cfg.MaxAge, MinAge)
		return nil, 0, &store.InvalidError{Field: "MaxAge", Problem: problem}
	}
	l = newLogs(layer, cfg)
	if cut, err = l.readAll(); err != nil {
		return nil, 0, errors.Join(err, l.closeFiles())
	}
	l.makeReady = func() error { return l.settle(cut) }
	return l, cut, nil
}

func newLogs(layer disk.Rewritable, cfg Config) *Logs {
	return &Logs{
		layer:    layer,
		rewriter: layer,
		cfg:      cfg,
		reading:  disk.NewReading[*segment](layer, maxReading),
		unlock:   func() error { return nil },
		index:    index{},
	}
}

// ready returns why nothing can be asked. The caller holds mu.
func (l *Logs) ready() error {
	switch {
	case l.closed:
		return ErrClosed
	case l.makeReady != nil:
		return disk.ErrReadOnly
	}
	return nil
}

// fail ends all writing: nobody knows what the disk holds. The caller holds mu.
func (l *Logs) fail(err error) error {
	if l.broken == nil {
		l.broken = fmt.Errorf("no log is written any more: %w: %w", store.ErrUnavailable, err)
	}
	return l.broken
}

// last returns the segment that is written to. The caller holds mu.
func (l *Logs) last() *segment { return l.segments[len(l.segments)-1] }

// segmentBytes is the size from which on another segment begins.
func (l *Logs) segmentBytes() int64 { return min(l.cfg.MaxBytes/shares, maxSegmentBytes) }

// now returns the time as records have it.
func now() int64 { return int64(events.MillisOf(time.Now())) }

// Close ends the use of the directory. Another call does nothing.
func (l *Logs) Close() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	l.reading.Close()
	if err := errors.Join(l.closeFiles(), l.unlock()); err != nil {
		return fmt.Errorf("close logs of tasks: %w", err)
	}
	return nil
}

func (l *Logs) closeFiles() error {
	l.reading.ForgetAll()
	var errs []error
	for _, s := range l.segments {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
