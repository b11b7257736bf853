package engine

import (
	"taskledger/events"
)

// explainCommand asks why a task does not run.
type explainCommand struct{ Task events.TaskID }

func (*explainCommand) op() uint64 { return opExplain }

func (*explainCommand) size() int { return 64 }
