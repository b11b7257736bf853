package projection

import (
	"slices"

	"taskledger/internal/wire"
	"taskledger/projection/extension"
)

// sections returns the rows of the shard beside those of its tasks, in the order in which they are stored.
func (s *Shard) sections() []extension.Section {
	all := []extension.Section{s.clockSection(), s.senderSection()}
	for i := range s.extensions.all {
		all = append(all, s.extensions.all[i].Sections...)
	}
	return all
}

// listedNames names the sections of every shard.
var listedNames = func() (names []string) {
	for _, of := range NewShard(0).sections() {
		names = append(names, of.Name)
	}
	return names
}()

// listed is the rows of a section that are to be written.
type listed struct {
	rows  int
	write func(i int, w *wire.Writer) // the i-th row as it was when it was listed, whatever has changed since

	section, next int
}

// The sections of tasks, which are written in a way of their own. Those of Shard.sections follow from firstListed on.
const (
	ofNodes = iota // a table: the tasks refer to its rows
	ofKinds        // and so is this
	ofTasks
	firstListed
)

var taskSections = [firstListed]string{"nodes", "kinds", "tasks"}

var sectionCount = firstListed + len(listedNames)

func sectionName(i int) string {
	if i < firstListed {
		return taskSections[i]
	}
	return listedNames[i-firstListed]
}

// sectionOf returns the number of the section with a name, -1 for none.
func sectionOf(name string) int {
	if i := slices.Index(taskSections[:], name); i >= 0 {
		return i
	}
	if i := slices.Index(listedNames, name); i >= 0 {
		return firstListed + i
	}
	return -1
}
