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

// lookAgain is how old what is known of the file may be.
const lookAgain = time.Second

// list is the form of the file.
type list struct {
	Tokens []Token `json:"tokens"`
}

// Read returns the tokens of a file. A file that is not there, or that others may write to, is an error.
func Read(path string) ([]Token, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("tokens: others may write to %s: want mode 0600", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	tokens, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokens in %s: %w", path, err)
	}
	return tokens, nil
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

// Write replaces the file as a whole, for its owner alone. Without Lock, two writers at a time lose what one of them wrote.
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

// File knows the tokens of a file, and sees its changes within a second. Its methods may be called concurrently.
type File struct {
	path string
	told func(error) // what is wrong with the file, when that changes

	mu     sync.Mutex
	looked time.Time
	is     stamp
	wrong  string // what was told last, while that lasts
	tokens map[[sha256.Size]byte]*Token
}

// stamp tells one state of a file from another.
type stamp struct {
	at   time.Time
	size int64
}

// Open reads a file of tokens. A change that cannot be read is told, and the tokens before it hold on: whoever revokes one and damages the
// file has not revoked it.
func Open(path string, told func(error)) (*File, error) {
	f := &File{path: path, told: told}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if err := f.read(info); err != nil {
		return nil, err
	}
	f.looked = time.Now()
	return f, nil
}

func (f *File) read(info fs.FileInfo) error {
	tokens, err := Read(f.path)
	if err != nil {
		return err
	}
	f.is = stamp{info.ModTime(), info.Size()}
	f.tokens = make(map[[sha256.Size]byte]*Token, len(tokens))
	for i := range tokens {
		var sum [sha256.Size]byte
		_, _ = hex.Decode(sum[:], []byte(tokens[i].SHA256)) // it is checked
		f.tokens[sum] = &tokens[i]
	}
	return nil
}

// Find returns the token of a secret, nil for none. The token is not to be changed.
func (f *File) Find(secret string) *Token {
	sum := sha256.Sum256([]byte(secret))
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= lookAgain {
		f.looked = now
		info, err := os.Stat(f.path)
		if err == nil && (stamp{info.ModTime(), info.Size()}) != f.is {
			err = f.read(info)
		}
		switch {
		case err == nil:
			f.wrong = ""
		case err.Error() != f.wrong:
			f.wrong = err.Error()
			f.told(err)
		}
	}
	return f.tokens[sum]
}
