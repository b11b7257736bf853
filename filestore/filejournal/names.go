package filejournal

import (
	"fmt"
	"strconv"
	"strings"

	"taskledger/filestore/journal"
)

const (
	formatFile     = "format"
	runFile        = "run"
	segmentPrefix  = "log-"
	snapshotPrefix = "snapshot-"
)

func segmentName(number uint64) string { return fmt.Sprintf("%s%016x", segmentPrefix, number) }

func segmentNumber(name string) (uint64, bool) {
	digits, is := strings.CutPrefix(name, segmentPrefix)
	if !is || len(digits) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, err == nil && segmentName(n) == name
}

// isFile reports whether a name is that of a file of a journal.
func isFile(name string) bool {
	_, is := segmentNumber(name)
	return is || name == formatFile || name == runFile || isSnapshot(name)
}

func snapshotName(k journal.Key) string {
	if k.Shard == journal.Notes {
		return fmt.Sprintf("%snotes-%d", snapshotPrefix, k.Slot)
	}
	return fmt.Sprintf("%s%d-%d", snapshotPrefix, k.Shard, k.Slot)
}

func isSnapshot(name string) bool {
	_, is := snapshotKey(name)
	return is
}

// snapshotKey returns the key of the snapshot in a file.
func snapshotKey(name string) (k journal.Key, is bool) {
	rest, is := strings.CutPrefix(name, snapshotPrefix)
	if !is {
		return k, false
	}
	if _, err := fmt.Sscanf(rest, "notes-%d", &k.Slot); err == nil {
		k.Shard = journal.Notes
		return k, snapshotName(k) == name
	}
	_, err := fmt.Sscanf(rest, "%d-%d", &k.Shard, &k.Slot)
	return k, err == nil && snapshotName(k) == name
}
