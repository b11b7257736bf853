package task

// Operation is what an operator asks of a task: see the methods of engine.Client of these names.
type Operation uint64

// The operations, in stored order.
const (
	Cancel Operation = iota
	RunNow
	Retry
	Suspend
	Resume
	Delete
	OperationCount // there are so many
)

var operationNames = [OperationCount]string{"cancel", "run", "retry", "suspend", "resume", "delete"}

// String names the operation.
func (o Operation) String() string { return operationNames[o] }
