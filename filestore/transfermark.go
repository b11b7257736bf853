package filestore

import (
	"errors"
	"fmt"

	"taskledger/store"
)

// copyingFormat is the format in the notes of a store into which a cluster is being copied. Programs that know nothing
// of copies refuse it, too.
const copyingFormat = "taskledger copy"

// unfinished returns the error for a store into which a cluster was being copied.
func unfinished(cluster, of string) error {
	return fmt.Errorf("copy of cluster %s from %s %w", cluster, of, store.ErrUnfinished)
}

// ErrUnsettled reports a store that may have lost entries in a crash, which only a node can settle.
var ErrUnsettled = errors.New("a crash may have lost entries, which a node has to settle: start one there, and stop it")
