package filejournal

import (
	"fmt"

	"taskledger/filestore/journal"
)

// AppendAll is Append of several entries, in order, which share as few syncs as they can. After an error some of the
// first ones may be kept.
func (j *Journal) AppendAll(entries []journal.Entry) error {
	all := make([]*write, len(entries))
	for i, e := range entries {
		all[i] = &write{entry: e}
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	j.writeAll(all)
	for _, w := range all {
		if w.err != nil {
			return fmt.Errorf("append entry %d of shard %d: %w", w.entry.Number, w.entry.Shard, w.err)
		}
	}
	return nil
}

// MayHaveLost reports whether entries that were answered may be missing in a journal that was opened to be read. Only
// a program that opens it for writing can settle that.
func (j *Journal) MayHaveLost() bool {
	j.writing.Lock()
	defer j.writing.Unlock()
	stopped := !j.run.Clean && (j.run.Boot == "" || j.run.Boot != j.options.Boot)
	return j.MayLose() && (j.run.Lost != "" || j.readOnly && stopped)
}
