package projection

import "taskledger/events"

// Description holds the tags of a task, and the deadline of its run.
type Description struct {
	Tags     []string
	Deadline events.Millis // of a run that has not ended; 0 = none
}

// describe returns the description of a task; nil where it says nothing.
func describe(tags []string, deadline events.Millis) *Description {
	if len(tags) == 0 && deadline == 0 {
		return nil
	}
	return &Description{tags, deadline}
}

// Tags returns the tags of the task, in order. They are the task's own: read only.
func (t *Task) Tags() []string {
	if t.About == nil {
		return nil
	}
	return t.About.Tags
}

// Deadline returns when the run of the task fails unless it has ended; 0 = it has no deadline.
func (t *Task) Deadline() events.Millis {
	if t.About == nil {
		return 0
	}
	return t.About.Deadline
}

// bytes counts what the description adds to a task in a snapshot.
func (d *Description) bytes() int64 {
	if d == nil {
		return 0
	}
	n := 8
	for _, tag := range d.Tags {
		n += 2 + len(tag)
	}
	return int64(n)
}
