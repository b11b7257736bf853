package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/engine/internal/signal"
	"taskledger/events"
	"taskledger/projection/settings"
	"taskledger/store"
	"taskledger/task"
)

// settingsSubject hints that the settings have changed.
const settingsSubject = "settings"

const (
	// followSettingsEvery bounds the time in which a process does not know that the settings have changed, while their
	// owner answers.
	followSettingsEvery = time.Second
	// settingsTimeout bounds the time for which owners that have heard no settings wait for the owner of these before
	// they read them from the store.
	settingsTimeout = 2 * time.Second
	// settingsRetry is the pause after a read that failed; doubled with each that follows, up to settingsRetryMost.
	settingsRetry     = 5 * time.Second
	settingsRetryMost = 5 * time.Minute
)

// nodeSettings holds what a process knows of the settings of the cluster. It outlives sessions: what was learned once
// holds until something newer is learned. But something may have been paused while the process had no session: each
// session starts nothing before it has heard the settings itself.
type nodeSettings struct {
	known  atomic.Pointer[settings.State] // nil until there was a proven answer
	unread atomic.Pointer[unreadSettings]
}

// unreadSettings is why the settings are not known.
type unreadSettings struct {
	why   string
	since events.Millis
}

// learn takes settings, unless those or newer ones are known. It reports whether it did.
func (s *nodeSettings) learn(now settings.State) bool {
	for {
		old := s.known.Load()
		if old != nil && now.Last <= old.Last {
			return false
		}
		if s.known.CompareAndSwap(old, &now) {
			return true
		}
	}
}

// paused reports whether a behavior must not start: nothing may before the settings were heard.
func (m *member) paused(behavior string) bool {
	return !m.heard.Load() || m.settings.known.Load().Paused(behavior)
}

func (m *member) settingsShard() int { return events.Settings.Shard(m.shards) }

// learnSettings takes settings. The first of a session must be as they are in the journal since it began: proven,
// or read there.
func (m *member) learnSettings(now settings.State) {
	changed := m.settings.learn(now)
	if changed {
		m.log.Info("settings have changed", "paused", now.Pauses())
	}
	first := m.heard.CompareAndSwap(false, true)
	if first {
		m.settings.unread.Store(nil)
	}
	if changed || first {
		m.place.ringOwners()
	}
}

// whySettings explains why nothing starts while the settings are not known.
func (m *member) whySettings() explanation.Explanation {
	if unread := m.settings.unread.Load(); unread != nil {
		return explanation.Explanation{Why: task.WhySettings, Since: unread.since, Text: unread.why}
	}
	const say = "what is paused is not known yet, so nothing starts: it is asked of shard %d, which holds the settings"
	return explanation.Explanation{Why: task.WhySettings, Text: fmt.Sprintf(say, m.settingsShard())}
}

// followSettings keeps the settings of this process current: at once when somebody hints at a change, else every
// second.
func (m *member) followSettings(ctx context.Context) error {
	changed := signal.New()
	if m.bus != nil {
		err := m.bus.Subscribe(ctx, settingsSubject, "", func(store.Message) { changed.Notify() })
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("subscribe to settings: %w", err)
		}
	}
	ticker := time.NewTicker(followSettingsEvery)
	defer ticker.Stop()
	m.spawn(m.readSettings)
	for {
		m.askSettings(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-changed:
		}
	}
}

// askSettings asks the owner of the settings. The first answer of a session must be proven: an owner that has been
// replaced may not know of a pause. Later ones need no proof: older settings than the known ones are not taken.
func (m *member) askSettings(ctx context.Context) {
	first := !m.heard.Load()
	timeout := m.ttl
	if first {
		timeout = settingsTimeout
	}
	one, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := m.sender.Ask(one, m.settingsShard(), command.LaneQuery, &command.Settings{Linear: first})
	switch {
	case err != nil: // it is asked again in a second
	case a.Code == command.AnswerUnserved && first:
		m.settingsUnread(ctx, a.Text)
	case a.Code == command.AnswerOK:
		now, err := command.DecodeSettings(a.Data)
		if err != nil {
			m.log.WarnContext(ctx, "settings cannot be read", "err", err)
			return
		}
		m.learnSettings(now)
	}
}

// settingsUnread says why the settings cannot be read.
func (m *member) settingsUnread(ctx context.Context, cause string) {
	const say = "what is paused is not known, so nothing starts: shard %d, which holds the settings, cannot be read: %s"
	why := fmt.Sprintf(say, m.settingsShard(), cause)
	since := m.now()
	if before := m.settings.unread.Load(); before != nil {
		since = before.since
	} else {
		m.log.ErrorContext(ctx, "nothing is started", "cause", why)
	}
	m.settings.unread.Store(&unreadSettings{why, since})
}

// readSettings reads the settings from the store as long as the session has heard none, beside those who ask for them.
func (m *member) readSettings(ctx context.Context) {
	ticker := time.NewTicker(settingsTimeout / 10)
	defer ticker.Stop()
	read := settingsReader{m: m}
	for !m.heard.Load() {
		read.step(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// settingsReader reads the settings of a session that has heard none from the store, when nobody answers for them.
type settingsReader struct {
	m     *member
	since time.Time // shards are served here
	pause time.Duration
	retry time.Time // not before
}

// step reads if it is time.
func (r *settingsReader) step(ctx context.Context, now time.Time) {
	if len(r.m.place.served()) == 0 { // nothing could start here
		return
	}
	if r.since.IsZero() {
		r.since = now
	}
	if now.Sub(r.since) < settingsTimeout || now.Before(r.retry) {
		return
	}
	err := r.read(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	r.m.settingsUnread(ctx, err.Error())
	r.pause = min(max(2*r.pause, settingsRetry), settingsRetryMost)
	r.retry = now.Add(r.pause)
}

// read folds the journal of the settings' shard, as its next owner would.
func (r *settingsReader) read(ctx context.Context) error {
	have, err := r.m.loader.Load(ctx, r.m.settingsShard())
	if err != nil {
		return err
	}
	r.m.learnSettings(*settings.Of(have.State))
	return nil
}
