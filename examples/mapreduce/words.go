package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// pieceBytes is the size of what one map task counts, up to the end of its last word.
	pieceBytes = 64 << 10
	// partitions are the groups over which words are spread. What a piece has of each is one task, and an update takes
	// 1,000 of them. The sums of a partition are one task in the end, of 256 KiB at most: a directory with more
	// different words needs more partitions.
	partitions = 128
	// longest bounds the characters of a word that count.
	longest = 64
)

// piece is a part of a file, as the data of a map task.
type piece struct {
	path     string // below the directory
	from, to int64
}

func (p piece) String() string { return fmt.Sprintf("%s:%d:%d", p.path, p.from, p.to) }

// parsePiece reads what String writes. A path may have colons.
func parsePiece(text string) (p piece, err error) {
	parts := strings.Split(text, ":")
	n := len(parts)
	if n < 3 {
		return p, fmt.Errorf("piece %q: want path:from:to", text)
	}
	p.path = strings.Join(parts[:n-2], ":")
	if p.from, err = strconv.ParseInt(parts[n-2], 10, 64); err == nil {
		p.to, err = strconv.ParseInt(parts[n-1], 10, 64)
	}
	return p, err
}

// pieces cuts the files of a directory between words.
func pieces(dir string, add func(piece) error) error {
	return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !utf8.ValidString(name) {
			return fmt.Errorf("%q: the data of a task are a text, and this name is none", name)
		}
		text, err := os.ReadFile(path)
		for from := 0; err == nil && from < len(text); {
			to := from + cut(text[from:])
			err = add(piece{filepath.ToSlash(name), int64(from), int64(to)})
			from = to
		}
		return err
	})
}

// cut returns where the first piece of a text ends: at the first end of a word from pieceBytes on.
func cut(text []byte) (to int) {
	for to < len(text) {
		r, size := utf8.DecodeRune(text[to:])
		if to >= pieceBytes && !inWord(r) {
			return to
		}
		to += size
	}
	return to
}

// inWord reports whether a character is part of a word. What is no UTF-8 is not.
func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// count adds the words of a text: runs of letters and digits.
func count(text string, into map[string]int) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !inWord(r) }) {
		if runes := []rune(word); len(runes) > longest {
			word = string(runes[:longest])
		}
		into[word]++
	}
}

// read reads a piece of a file below a directory.
func (p piece) read(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(p.path)))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, p.from, p.to-p.from))
	return string(text), err
}

// partitionOf returns the partition of a word.
func partitionOf(word string) int {
	h := fnv.New32a()
	_, _ = io.WriteString(h, word) // it never fails
	return int(h.Sum32() % partitions)
}
