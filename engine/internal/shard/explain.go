package shard

import (
	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/projection"
	"taskledger/task"
)

// explain says why a task does not run.
func (o *Owner) explain(c *command.Explain) command.Answer {
	t := o.state.Task(c.Task)
	if t == nil {
		return o.explainRecord(c.Task)
	}
	return o.why(t).Answer()
}

// why explains.
func (o *Owner) why(t *projection.Task) (e explanation.Explanation) {
	behavior := t.Kind.Behavior
	substatus, since := t.Substatus(o.now())
	defer func() { e.Substatus, e.Text = substatus, e.Text+o.tellExtensions(t) }()
	switch {
	case t.OnNode():
		return explanation.Explanation{Why: task.WhyRunning, Since: since, Text: explanation.OfRunning(t)}
	case t.Final():
		return explanation.Explanation{Why: task.WhyFinished, Since: since, Text: explanation.OfEnd(t)}
	case t.Suspended:
		return explanation.Explanation{Why: task.WhySuspended, Since: since, Text: explanation.OfSuspended(t)}
	}
	if e, blocked := o.cfg.Explainer.WhyBlocked(behavior, substatus == task.SubReady); blocked {
		if e.Since != 0 {
			e.Since = max(e.Since, since)
		}
		return e
	}
	if e, waits := o.explainExtensions(t); waits {
		e.Since = max(e.Since, since)
		return e
	}
	if substatus != task.SubReady {
		return explanation.Explanation{Why: task.WhyScheduled, Since: since, Text: explanation.OfWait(t)}
	}
	if why := o.cfg.Admission.Refusal(); why != "" && t.Repeats() {
		return explanation.Explanation{
			Why:   task.WhyStoreFull,
			Since: since,
			Text:  "it is repeated, and repetitions wait: " + why,
		}
	}
	e = o.cfg.Explainer.Ready(behavior, func() bool { return o.offerFor(behavior) != nil })
	e.Since = since
	return e
}
