package filejournal

import (
	"cmp"
	"fmt"
	"time"

	"taskledger/filestore/internal/disk"
)

// Options of Open. The zero value works.
type Options struct {
	// Durability counts when the journal is created: default Strict. Later it must be the journal's, or "".
	Durability Durability
	// Lag bounds what a crash of the machine loses of an Opportunistic journal, in whole milliseconds; it counts when
	// the journal is created: default 1 s. Later it must be the journal's, or 0.
	Lag time.Duration
	// SegmentBytes is the size from which on another segment begins; default 16 MiB.
	SegmentBytes int64
	// Boot is the id of the time since the machine was started; default: as the system tells it.
	Boot string

	now func() time.Time // for tests; nil = time.Now
}

const defaultLag = time.Second

// format returns that of a new journal.
func (o *Options) format() (format, error) {
	f := format{
		Format:     formatName,
		Version:    formatVersion,
		Durability: cmp.Or(o.Durability, Strict),
	}
	if o.Lag != 0 && o.Lag != defaultLag {
		f.LagMs = max(o.Lag.Milliseconds(), 1)
	}
	return f, o.fits(f)
}

// fits wraps ErrDurability where the lag that is asked for is another one than a journal has.
func (o *Options) fits(f format) error {
	switch {
	case o.Lag == 0:
		return nil
	case f.Durability == Strict:
		return fmt.Errorf("%w: it is strict, which loses nothing, and may lose %s as is asked for", ErrDurability, o.Lag)
	case max(o.Lag, time.Millisecond).Truncate(time.Millisecond) != f.lag():
		return fmt.Errorf("%w: it may lose %s, and %s is asked for", ErrDurability, f.lag(), o.Lag)
	}
	return nil
}

func (o Options) complete() Options {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = 16 << 20
	}
	if o.Boot == "" {
		o.Boot = disk.BootID()
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o
}
