package projection

import (
	"slices"

	"taskledger/internal/wire"
)

// section is a kind of records of a shard that are no tasks, as snapshots and digests have them. Each is described in a
// file of its own, and its name is never used again for anything else.
type section struct {
	name string
	// list returns what is to be written of the state as it is.
	list func(s *Shard) listed
	// read reads a row into the state.
	read func(s *Shard, in *wire.Reader)
}

// sections are in the order in which they are stored, behind those of the tasks.
var sections = slices.Concat([]section{clockSection, senderSection}, recordSections(), itemSections())

// listed is the rows of a section that are to be written.
type listed struct {
	rows  int
	write func(i int, w *wire.Writer) // the i-th row as it was when it was listed, whatever has changed since

	section, next int
}

// The sections of which each has its own way. Those of sections follow from firstListed on.
const (
	ofNodes = iota // a table: the tasks refer to its rows
	ofKinds        // and so is this
	ofTasks
	firstListed
)

var taskSections = [firstListed]string{"nodes", "kinds", "tasks"}

var sectionCount = firstListed + len(sections)

func sectionName(i int) string {
	if i < firstListed {
		return taskSections[i]
	}
	return sections[i-firstListed].name
}

// sectionOf returns the number of the section with a name, -1 for none.
func sectionOf(name string) int {
	if i := slices.Index(taskSections[:], name); i >= 0 {
		return i
	}
	if i := slices.IndexFunc(sections, func(of section) bool { return of.name == name }); i >= 0 {
		return firstListed + i
	}
	return -1
}
