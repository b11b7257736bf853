package command

// decided is a command of LaneSubmit or LaneWork: it is decided within an entry.
type decided interface{ Decide(d *Decider) Answer }

// maxCommandBytes bounds the Size of a command that is decided within an entry. The largest one lists MaxReconciled
// attempts, the others carry one payload.
const maxCommandBytes = 296 << 10

// Check returns a *task.LimitError or a *store.InvalidError for a command that is larger than a shard decides or
// answers. Senders ask before they queue a command, owners before they decide or answer it.
func Check(c Command) error {
	if err := c.Limits(); err != nil {
		return err
	}
	if _, ok := c.(decided); ok {
		return atMost("command", c.Size(), maxCommandBytes)
	}
	return nil
}

// RefuseInvalid refuses a command for which Check returns an error.
func RefuseInvalid(c Command) (refusal Answer, refused bool) {
	if err := Check(c); err != nil {
		return Refused(AnswerInvalid, "%v", err), true
	}
	return Answer{}, false
}
