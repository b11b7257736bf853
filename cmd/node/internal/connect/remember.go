package connect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// RememberedIn is the file in a data directory that holds the id of the named cluster ("" = "taskledger"), of which its
// node was last.
func RememberedIn(dir, name string) string {
	return filepath.Join(dir, "cluster-"+cmp.Or(name, "taskledger")+".id")
}

// Remembered returns the id of the cluster of which the node with a data directory was last; "" = of none.
func Remembered(dir, name string) (id string, err error) {
	text, err := os.ReadFile(RememberedIn(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read which cluster the node is of: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Remember keeps the id of the cluster of which a node is. The file is whole or as it was.
func Remember(dir, name, id string) error {
	to := RememberedIn(dir, name)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(to+".new", []byte(id+"\n"), 0o600)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		return fmt.Errorf("keep which cluster the node is of: %w", err)
	}
	return nil
}
