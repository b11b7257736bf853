package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"taskledger/store"
)

// readSessionFile returns the session that an earlier process left; false when there is none.
func readSessionFile(path string) (last store.Session, found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return last, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	if err != nil {
		return store.Session{}, false, fmt.Errorf("read session file: %w", err)
	}
	return last, true, nil
}

// writeSessionFile writes the file whole or not at all: what a crash left half-written could not be read.
func writeSessionFile(path string, s store.Session) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	next := path + ".new"
	if err = os.WriteFile(next, text, 0o600); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(next))
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
