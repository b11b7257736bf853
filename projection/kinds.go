package projection

import "taskledger/events"

// kind returns the kind of a behavior, policy and creator.
func (s *Shard) kind(key kindKey) *Kind {
	if k := s.latest; k != nil && k.Behavior == key.behavior && k.Creator == key.creator && k.Policy == key.policy {
		return k
	}
	k := s.kinds[key]
	if k == nil {
		k = &Kind{Behavior: key.behavior, Policy: key.policy, Creator: key.creator, group: s.group(key.behavior)}
		k.group.kinds++
		s.kinds[key] = k
		s.idle++
	}
	s.latest = k
	return k
}

func (s *Shard) group(behavior string) *group {
	g := s.groups[behavior]
	if g == nil {
		g = &group{at: -1, ready: queue{rank: rankPriority, before: byDue},
			repeats: queue{rank: rankPriority, before: byDue}, finished: queue{rank: rankKeepUntil, before: byOutcome}}
		s.groups[behavior] = g
	}
	return g
}

// join counts a task of a kind, and leave one less. Kinds and groups without tasks go when they are many: a lone
// task that comes and goes does not make them anew each time.
func (s *Shard) join(k *Kind) {
	if k.tasks++; k.tasks == 1 {
		s.idle--
	}
}

func (s *Shard) leave(k *Kind) {
	if k.tasks--; k.tasks > 0 {
		return
	}
	if s.idle++; s.idle > maxIdle && s.idle > len(s.kinds)/2 {
		s.dropIdle()
	}
}

// retype gives a task that is in no queue the terms that an event brings; nil leaves it as it is.
func (s *Shard) retype(t *Task, terms *events.Terms) {
	if terms == nil {
		return
	}
	t.Priority = terms.Priority
	k := s.kind(kindKey{t.Kind.Behavior, terms.Policy, t.Kind.Creator})
	s.join(k)
	s.leave(t.Kind)
	t.Kind = k
}

// terms returns what an event brings of policy and priority for a task that exists, nil for nothing.
func terms(body events.Body) *events.Terms {
	switch b := body.(type) {
	case *events.Rescheduled:
		return b.Terms
	case *events.Merged:
		return b.Terms
	case *events.Joined:
		return b.Terms
	}
	return nil
}

// maxIdle bounds the kinds without tasks that a shard may keep in any case.
const maxIdle = 64

func (s *Shard) dropIdle() {
	s.idle, s.latest = 0, nil
	for key, k := range s.kinds {
		if k.tasks > 0 {
			continue
		}
		delete(s.kinds, key)
		if k.group.kinds--; k.group.kinds == 0 {
			delete(s.groups, k.Behavior)
		}
	}
}
