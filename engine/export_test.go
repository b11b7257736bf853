package engine

import "time"

// Parts of a node that tests use without one.
type (
	ArchiveWatch = archiveWatch
	Housekeeper  = housekeeper
)

// The names by which tests of these parts call them.
var (
	NewHousekeeper   = newHousekeeper
	ReadSessionFile  = readSessionFile
	WriteSessionFile = writeSessionFile
)

const WatchArchiveEvery time.Duration = watchArchiveEvery
