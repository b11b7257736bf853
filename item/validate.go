package item

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"taskledger/events"
	"taskledger/internal/wire"
)

// Limits of a request. Each is enforced where the request is made and where it is decided.
const (
	MaxNumber = events.MaxItemNumber // of an id or a client
	MaxTime   = When(events.MaxItemTime)
	MaxIDs    = 1_000 // ids and items to be added of a request
	// MaxBytes bounds the data of a request with ItemBytes for each id and each item to be added.
	MaxBytes    = 256 << 10
	ItemBytes   = 192
	MaxDuration = 24 * time.Hour
	MinDuration = time.Millisecond
	// DefaultDuration is the time of a claim that does not say for how long an item is the client's.
	DefaultDuration = 30 * time.Second
	MaxWait         = time.Minute
	MaxKeyBytes     = events.MaxItemKeyBytes
	MaxAge          = 365 * 24 * time.Hour
	// MaxAfter bounds a time that is counted from the entry which decides: 1,000 years.
	MaxAfter When = 365_250 * 24 * 3_600_000
)

func refuse(field, format string, args ...any) error {
	return &events.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// ValidateStore returns a *events.InvalidError unless name is 1 to 64 bytes of [A-Za-z0-9._:-].
func ValidateStore(name string) error {
	if err := events.ValidateStore(name); err != nil {
		return &events.InvalidError{Field: "store", Problem: err.Error()}
	}
	return nil
}

// ValidateGroup returns a *events.InvalidError unless name is UTF-8 of 1 to 256 bytes.
func ValidateGroup(name string) error { return checkGroup("group", name) }

// ValidateIDs returns a *events.InvalidError unless each id is 1 to 2^53.
func ValidateIDs(field string, ids []int64) error { return checkNumbers(field, ids) }

func checkGroup(field, name string) error {
	switch n := len(name); {
	case n == 0:
		return refuse(field, "empty, want 1 to %d bytes", events.MaxGroupBytes)
	case n > events.MaxGroupBytes:
		return refuse(field, "%d bytes exceed the limit of %d", n, events.MaxGroupBytes)
	case !utf8.ValidString(name):
		return refuse(field, "want UTF-8, got %q", name)
	}
	return nil
}

func checkNumber(field string, n int64) error {
	if n < 1 || n > MaxNumber {
		return refuse(field, "%d, want 1 to %d", n, int64(MaxNumber))
	}
	return nil
}

func checkNumbers(field string, all []int64) error {
	for i, n := range all {
		if err := checkNumber(field+"["+strconv.Itoa(i)+"]", n); err != nil {
			return err
		}
	}
	return nil
}

// checkKey takes the keys that a header of HTTP can have.
func checkKey(key string, age time.Duration) error {
	n := len(key)
	switch {
	case n > MaxKeyBytes:
		return refuse("key", "%d bytes exceed the limit of %d", n, MaxKeyBytes)
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(key) != key:
		return refuse("key", "%.64q: want printable ASCII, without a space at its ends", key)
	case age < 0 || age > MaxAge:
		return refuse("age", "%s, want 0 to %s", age, MaxAge)
	case age > 0 && key == "":
		return refuse("age", "%s without a key: who repeats a request needs one", age)
	}
	return nil
}

// Size returns the bytes of the update that count against the limit of MaxBytes.
func (u *Update) Size() int {
	n := ItemBytes * u.ids()
	for i := range u.Changes {
		n += len(u.Changes[i].Data)
	}
	for i := range u.Adds {
		n += len(u.Adds[i].Data) + len(u.Adds[i].Group)
	}
	return n
}

func (u *Update) ids() int { return len(u.Depends) + len(u.Deletes) + len(u.Changes) + len(u.Adds) }

// Validate returns a *events.InvalidError that names the first field which breaks a rule, and the limit.
func (u *Update) Validate() error {
	switch n := u.ids(); {
	case n == 0:
		return refuse("update", "empty: want depends, deletes, updates or adds")
	case n > MaxIDs:
		return refuse("update", "%d ids and adds exceed the limit of %d", n, MaxIDs)
	case u.Size() > MaxBytes:
		return refuse("update", "%d bytes with %d for each id and add exceed the limit of %d", u.Size(), ItemBytes, MaxBytes)
	}
	if err := checkNumber("clientid", u.Client); err != nil {
		return err
	}
	if err := checkKey(u.Key, u.Age); err != nil {
		return err
	}
	switch {
	case u.Within < 0:
		return refuse("within", "%d, want 0 or more", u.Within)
	case u.Within > 0 && u.Age == 0:
		return refuse("within", "%d without an age: it counts since a request was first asked", u.Within)
	}
	if err := checkNumbers("depends", u.Depends); err != nil {
		return err
	}
	if err := checkNumbers("deletes", u.Deletes); err != nil {
		return err
	}
	named := make(map[int64]string, len(u.Deletes)+len(u.Changes))
	once := func(field string, id int64) error {
		if before, twice := named[id]; twice {
			return refuse(field, "task %d is in %s already", id, before)
		}
		named[id] = field
		return nil
	}
	for _, id := range u.Deletes {
		if err := once("deletes", id); err != nil {
			return err
		}
	}
	for i := range u.Changes {
		if err := u.Changes[i].validate("updates[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
		if err := once("updates", u.Changes[i].ID); err != nil {
			return err
		}
	}
	for i := range u.Adds {
		field := "adds[" + strconv.Itoa(i) + "]"
		if err := checkGroup(field+".group", u.Adds[i].Group); err != nil {
			return err
		}
		if err := checkTime(field, u.Adds[i].At); err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) validate(field string) error {
	if err := checkNumber(field+".id", c.ID); err != nil {
		return err
	}
	if c.Group != "" {
		if err := checkGroup(field+".group", c.Group); err != nil {
			return err
		}
	}
	if c.Keep && len(c.Data) > 0 {
		return refuse(field+".keep", "with data: want one of them")
	}
	return checkTime(field, c.At)
}

func checkTime(field string, at When) error {
	switch {
	case at > MaxTime:
		return refuse(field+".timespec", "%d is beyond the year 9999", int64(at))
	case at < -MaxAfter:
		return refuse(field+".timespec", "%d: want %d at least, 1,000 years from now", int64(at), int64(-MaxAfter))
	}
	return nil
}

// Validate returns a *events.InvalidError that names the first field which breaks a rule, and the limit.
func (c *Claim) Validate() error {
	switch {
	case c.Duration < MinDuration || c.Duration > MaxDuration:
		return refuse("duration", "%s, want %s to %s", c.Duration, MinDuration, MaxDuration)
	case c.Wait < 0 || c.Wait > MaxWait:
		return refuse("wait", "%s, want 0 to %s", c.Wait, MaxWait)
	case len(c.Depends) > MaxIDs:
		return refuse("depends", "%d ids exceed the limit of %d", len(c.Depends), MaxIDs)
	}
	if err := checkNumber("clientid", c.Client); err != nil {
		return err
	}
	if err := checkKey(c.Key, c.Age); err != nil {
		return err
	}
	if err := ValidateGroup(c.Group); err != nil {
		return err
	}
	return checkNumbers("depends", c.Depends)
}

// Validate returns a *events.InvalidError that names the first field which breaks a rule, and the limit.
func (p *Page) Validate() error {
	if err := ValidateGroup(p.Group); err != nil {
		return err
	}
	switch {
	case p.After < 0 || p.After > MaxNumber:
		return refuse("after", "%d, want 0 to %d", p.After, int64(MaxNumber))
	case p.Limit < 0:
		return refuse("limit", "%d, want 0 or more", p.Limit)
	}
	return nil
}

// RequestID identifies a keyed update in events and the fold: the client, its key, and a digest of the rest of the
// update. It is "" without a key.
func (u *Update) RequestID() string {
	if u.Key == "" {
		return ""
	}
	var w wire.Writer
	w.Array(4)
	writeNumbers(&w, u.Depends)
	writeNumbers(&w, u.Deletes)
	w.Array(5 * len(u.Changes))
	for i := range u.Changes {
		c := &u.Changes[i]
		w.Int(c.ID)
		w.Text(c.Group)
		w.Int(int64(c.At))
		writeData(&w, c.Data)
		w.Bool(c.Keep)
	}
	w.Array(3 * len(u.Adds))
	for i := range u.Adds {
		a := &u.Adds[i]
		w.Text(a.Group)
		w.Int(int64(a.At))
		writeData(&w, a.Data)
	}
	return events.ItemRequestID(uint64(u.Client), u.Key, w.B)
}

// RequestID identifies the claim for deduplication. Wait is not part of it. It is "" without a key.
func (c *Claim) RequestID() string {
	if c.Key == "" {
		return ""
	}
	var w wire.Writer
	w.Array(3)
	w.Text(c.Group)
	w.Int(int64(c.Duration))
	writeNumbers(&w, c.Depends)
	return events.ItemRequestID(uint64(c.Client), c.Key, w.B)
}

func writeNumbers(w *wire.Writer, all []int64) {
	w.Array(len(all))
	for _, n := range all {
		w.Int(n)
	}
}

// writeData writes no data as it writes empty ones.
func writeData(w *wire.Writer, data []byte) {
	w.BytesHead(len(data))
	w.B = append(w.B, data...)
}
