package schedule

// Setting says how a definition is set.
type Setting struct {
	Seen   Version // changes no other version; 0 = any, Absent = makes one
	Reason string  // for the history, at most 256 bytes
}
