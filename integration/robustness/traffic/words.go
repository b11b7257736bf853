package traffic

import "taskledger/integration/robustness/history"

// Call is an operation of a node or a client, told when it begins, with Return 0 and no Answer, and again when it has
// ended. Its Client is one of those in the process that make one call at a time.
type Call struct {
	Number int // of the process's calls
	history.Operation
}

// ItemCall is a call to a task store, told when it begins, without an Answer, and again when it has ended.
type ItemCall struct {
	Number int64 // of those of the source
	Source string
	history.ItemCall
}
