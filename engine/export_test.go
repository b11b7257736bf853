package engine

// The tests of the session file read and write it without a node.
var (
	ReadSessionFile  = readSessionFile
	WriteSessionFile = writeSessionFile
)
