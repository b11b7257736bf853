package notice

import (
	"log/slog"
	"strings"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// maxErrorText bounds the text of an error in a record of the log, in bytes.
const maxErrorText = 200

// Mishaps gathers the lost attempts and the final failures of an entry while that is decided, and logs them once it
// is committed. One goroutine at a time may use it.
type Mishaps struct {
	log    *Log
	shard  int
	lost   []mishap
	failed []mishap
	left   struct{ lost, failed int64 } // what exceeds a burst
}

type mishap struct {
	task              events.TaskID
	behavior, session string
	attempt           uint32
	code, text        string
	repeated          bool
}

// NewMishaps returns those of a shard.
func NewMishaps(log *Log, shard int) *Mishaps { return &Mishaps{log: log, shard: shard} }

// Note takes an event and the task after it. A cancelled task has not failed: somebody asked for that.
func (m *Mishaps) Note(t *projection.Task, ev *events.Event) {
	switch b := ev.Body.(type) {
	case *events.Lost:
		if m.log.Enabled(slog.LevelWarn) {
			m.lost = take(m.lost, &m.left.lost, mishap{
				task:     t.ID,
				behavior: t.Kind.Behavior,
				session:  b.Node,
				attempt:  t.Attempt,
			})
		}
	case *events.Failed:
		if b.Run != 0 && b.Error.Code != events.CodeCancelled && m.log.Enabled(slog.LevelWarn) {
			m.failed = take(m.failed, &m.left.failed, mishap{
				task:     t.ID,
				behavior: t.Kind.Behavior,
				session:  t.LastNode.String(),
				attempt:  t.Attempt,
				code:     b.Error.Code,
				text:     firstLine(b.Error.Message),
				repeated: b.Next != 0,
			})
		}
	}
}

func take(all []mishap, left *int64, m mishap) []mishap {
	if len(all) == burst {
		*left++
		return all
	}
	return append(all, m)
}

// Report logs what was noted, which is committed now.
func (m *Mishaps) Report() {
	const lost, failed, repeated = "an attempt was lost", "a task failed for good", "a run of a repeated task failed"
	for _, l := range m.lost {
		m.log.Say(slog.LevelWarn, lost, "shard", m.shard, "task", string(l.task), "behavior", l.behavior,
			"attempt", l.attempt, "ran_on", store.NodeName(l.session), "ran_in_session", l.session)
	}
	for _, f := range m.failed {
		message := failed
		if f.repeated {
			message = repeated
		}
		m.log.Say(slog.LevelWarn, message, "shard", m.shard, "task", string(f.task), "behavior", f.behavior,
			"attempts", f.attempt, "ran_on", store.NodeName(f.session), "code", f.code, "error", f.text)
	}
	m.log.Leave(slog.LevelWarn, lost, m.left.lost)
	m.log.Leave(slog.LevelWarn, failed, m.left.failed)
	clear(m.lost)
	clear(m.failed)
	m.lost, m.failed, m.left.lost, m.left.failed = m.lost[:0], m.failed[:0], 0, 0
}

// firstLine is the beginning of an error's text: that of a panic has the stack behind it.
func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "")
}
