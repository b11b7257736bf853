package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"taskledger/collections"
	"taskledger/events"
)

const (
	hashShown    = 16  // hex digits of a hash that people see
	maxNameBytes = 128 // of the name of a file
)

// File is a file of collections, with what tells it from others.
type File struct {
	Name string // the base of its path, at most 128 bytes
	Hash string // SHA-256 of its bytes, 64 hex digits
	collections.File
}

// Read reads a file, as collections.Parse does.
func Read(path string, text []byte) (File, []collections.Warning, error) {
	is, warnings, err := collections.Parse(path, text)
	if err != nil {
		return File{}, warnings, err
	}
	sum := sha256.Sum256(text)
	return File{
		Name: events.Head(strings.ToValidUTF8(filepath.Base(path), "?"), maxNameBytes),
		Hash: hex.EncodeToString(sum[:]),
		File: *is,
	}, warnings, nil
}

// Short returns the beginning of a hash, which people see.
func Short(hash string) string { return hash[:min(len(hash), hashShown)] }

// reason says in the history of a schedule which file has set it.
func (f *File) reason() string { return "file " + Short(f.Hash) + " " + f.Name + ", by sync apply" }
