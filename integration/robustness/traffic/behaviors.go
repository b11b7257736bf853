package traffic

import "taskledger/task"

// Behaviors returns all that tasks are submitted with.
func Behaviors(begin int64, report func(Report)) []task.Behavior {
	return []task.Behavior{
		&Work{once, begin, report},
		&Work{again, begin, report},
		&Work{regular, begin, report},
		newErrand(begin, report),
		newBrook(begin, report),
	}
}
