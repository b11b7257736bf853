package trees

// The counters of the partitions. A copy or a deletion asks for a permit right before it is made, and so does an item
// that fails: a counter less the failed items of its partition is the number of copies or deletions, also where a
// bucket was worked on twice. An item that is neither copied nor deleted, and cannot be, is counted apart, without a
// limit: a directory that cannot be read, or a part that cannot be removed.
const (
	CounterCopies    = "copies"
	CounterDeletes   = "deletes"
	CounterUntouched = "untouched"
)

// CodeChanged is the code of a file that was changed while it was copied.
const CodeChanged = "changed"
