package task

import "fmt"

// Operation names a change that an operator makes to a task: see the methods of engine.Operations of these names.
type Operation uint64

// The operations, in stored order.
const (
	Cancel Operation = iota
	RunNow
	Retry
	Suspend
	Resume
	Delete
	OperationCount // counts the operations, and names none
)

var operationNames = [OperationCount]string{"cancel", "run", "retry", "suspend", "resume", "delete"}

// String returns "cancel", "run", "retry", "suspend", "resume" or "delete".
func (o Operation) String() string {
	if o >= OperationCount {
		return fmt.Sprintf("operation %d", uint64(o))
	}
	return operationNames[o]
}
