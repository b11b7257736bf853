package token

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Limits of a file of tokens.
const (
	maxFileBytes = 8 << 20
	maxTokens    = 10_000
)

const (
	// refreshAfter bounds the age of the tokens in memory.
	refreshAfter = time.Second

	// unknownAfter bounds the age of the tokens for a request with an unknown secret: its token may just have been made.
	// It also limits how often strangers can have the file read.
	unknownAfter = 20 * time.Millisecond
)

// list is the form of the file.
type list struct {
	Tokens []Token `json:"tokens"`
}

// Read returns the tokens of a file. It is an error if there is none, if it is no regular file, and if somebody else
// could have put it there: it must be of root or of the user of this process, and neither the file nor its directory
// may be writable by others.
func Read(path string) ([]Token, error) {
	tokens, _, err := read(path, stamp{})
	return tokens, err
}

// read is Read for a file that is not as before, and returns how it is.
func read(path string, before stamp) ([]Token, stamp, error) {
	f, err := open(path)
	if err != nil {
		return nil, before, fmt.Errorf("tokens: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, before, fmt.Errorf("tokens: %w", err)
	}
	now := stampOf(info)
	if now.same(before) {
		return nil, before, nil
	}
	if err := trusted(path, info); err != nil {
		return nil, before, fmt.Errorf("tokens: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, before, fmt.Errorf("tokens: %w", err)
	}
	tokens, err := parse(data)
	if err != nil {
		return nil, before, fmt.Errorf("tokens in %s: %w", path, err)
	}
	return tokens, now, nil
}

// trusted refuses what somebody else could have put in the place of the file.
func trusted(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write to %s: want mode 0600", path)
	}
	if err := ofOurs(info); err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if dir.Mode().Perm()&0o002 != 0 && dir.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("others may write to the directory of %s: want mode 0700", path)
	}
	return nil
}

func parse(data []byte) ([]Token, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("more than %d bytes", maxFileBytes)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var l list
	if err := d.Decode(&l); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	if len(l.Tokens) > maxTokens {
		return nil, fmt.Errorf("%d tokens exceed the limit of %d", len(l.Tokens), maxTokens)
	}
	known := map[string]bool{}
	for i := range l.Tokens {
		if err := l.Tokens[i].check(); err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
		if known[l.Tokens[i].SHA256] {
			return nil, fmt.Errorf("token %d: %s is there twice", i+1, l.Tokens[i].ID)
		}
		known[l.Tokens[i].SHA256] = true
	}
	return l.Tokens, nil
}

// Write replaces the file as a whole, for its owner alone. Without Lock, two writers at a time lose what one of them
// wrote.
func Write(path string, tokens []Token) (err error) {
	data, err := json.MarshalIndent(list{tokens}, "", "  ")
	if err != nil {
		return err
	}
	if _, err := parse(data); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tokens-") // of mode 0600
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write tokens: %w", err), os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// A caller waits for the file no longer than refreshWithin. A refresh that lasts for hangs is reported.
const (
	refreshWithin = time.Second
	hangs         = 10 * time.Second
)

// File knows the tokens of a file. It sees changes within a second, and new tokens at once. Its methods may be called
// concurrently.
type File struct {
	path   string
	report func(error) // of a file that cannot be read, when the error changes
	open   func(path string, before stamp) (*table, error)

	mu         sync.Mutex
	refreshed  time.Time // when the last refresh began
	refreshing bool      // it has not ended
	reported   string    // the last error, while it lasts
	known      *table
}

// table holds the tokens of a file.
type table struct {
	is     stamp
	tokens map[[sha256.Size]byte]*Token
}

// stamp tells one state of a file from another.
type stamp struct {
	info    fs.FileInfo // nil = there is none
	changed int64
}

func stampOf(info fs.FileInfo) stamp { return stamp{info, changed(info)} }

// same reports whether nothing of the file was changed: a file that is put in its place has another inode, and a change
// in place another time of change, whatever time it shows as that of its content.
func (s stamp) same(other stamp) bool {
	return s.info != nil && other.info != nil && os.SameFile(s.info, other.info) &&
		s.changed == other.changed && s.info.Size() == other.info.Size() &&
		s.info.ModTime().Equal(other.info.ModTime()) && s.info.Mode() == other.info.Mode()
}

// Open reads a file of tokens. A change that cannot be read is reported, and the tokens before it hold on: whoever
// revokes one and damages the file has not revoked it.
func Open(path string, report func(error)) (*File, error) {
	f := &File{
		path:      path,
		report:    report,
		open:      openTable,
		refreshed: time.Now(),
	}
	var err error
	if f.known, err = f.open(path, stamp{}); err != nil {
		return nil, err
	}
	return f, nil
}

// openTable reads a file that is not as before; nil = it is.
func openTable(path string, before stamp) (*table, error) {
	tokens, now, err := read(path, before)
	if err != nil || now.same(before) {
		return nil, err
	}
	t := &table{is: now, tokens: make(map[[sha256.Size]byte]*Token, len(tokens))}
	for i := range tokens {
		var sum [sha256.Size]byte
		_, _ = hex.Decode(sum[:], []byte(tokens[i].SHA256)) // it is checked
		t.tokens[sum] = &tokens[i]
	}
	return t, nil
}

// Find returns the token of a secret, nil for none. The token is not to be changed. Where the file cannot be read at
// once, what it held before counts.
func (f *File) Find(secret string) *Token {
	sum := sha256.Sum256([]byte(secret))
	if found := f.find(sum, refreshAfter); found != nil {
		return found
	}
	return f.find(sum, unknownAfter)
}

// find looks at tokens that are of an age at most.
func (f *File) find(sum [sha256.Size]byte, age time.Duration) *Token {
	if ended := f.begin(age); ended != nil {
		timer := time.NewTimer(refreshWithin)
		select {
		case <-ended:
		case <-timer.C:
		}
		timer.Stop()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known.tokens[sum]
}

// begin refreshes the tokens in memory once they are of an age, and returns a channel that is closed at the end;
// nil = there is nothing to wait for.
func (f *File) begin(age time.Duration) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := time.Since(f.refreshed)
	if f.refreshing {
		if since >= hangs {
			f.reportLocked(fmt.Errorf("tokens: %s has not been read for %s: its file system hangs", f.path, hangs))
		}
		return nil
	}
	if since < age {
		return nil
	}
	f.refreshed, f.refreshing = time.Now(), true
	before, ended := f.known.is, make(chan struct{})
	go func() {
		defer close(ended)
		t, err := f.open(f.path, before)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.refreshing = false
		if t != nil {
			f.known = t
		}
		f.reportLocked(err)
	}()
	return ended
}

// reportLocked reports an error, once while it lasts.
func (f *File) reportLocked(err error) {
	switch {
	case err == nil:
		f.reported = ""
	case err.Error() != f.reported:
		f.reported = err.Error()
		f.report(err)
	}
}
