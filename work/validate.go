package work

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"taskledger/events"
	"taskledger/work/segmentation"
)

// The limits of a definition.
const (
	MaxPartitions   = 64
	MaxWorkers      = 256
	MaxThreads      = 256
	MaxRules        = 32
	MaxCodeBytes    = 128
	MaxThresholds   = 16
	MaxCounterBytes = 64
	// MaxSegmentationBytes bounds segmentation.Plan.Bytes of all partitions together.
	MaxSegmentationBytes = 192 << 10
)

// Validate returns a *store.InvalidError unless the definition can be carried out: it names the field, such as
// "partitions[1].workers", and the limit. It is called before the task of a work is made.
func (w *Work[P, I]) Validate() error {
	if err := events.ValidateBehavior(w.id); err != nil {
		return refuse("id", "%s", strings.TrimPrefix(err.Error(), "behavior "))
	}
	if _, err := w.options.Policy.Complete(); err != nil {
		return refuse("policy", "%v", err)
	}
	if n := len(w.partitions); n < 1 || n > MaxPartitions {
		return refuse("partitions", "%d, want 1 to %d", n, MaxPartitions)
	}
	ids := map[string]int{}
	bytes := int64(0)
	for i := range w.partitions {
		p := &w.partitions[i]
		name := p.name(i)
		if err := p.check(name); err != nil {
			return err
		}
		if other, twice := ids[p.ID]; twice {
			return refuse(name+".id", "%q is that of %s, too", p.ID, p.name(other))
		}
		ids[p.ID] = i
		bytes += p.Segmentation.Bytes()
	}
	if bytes > MaxSegmentationBytes {
		return refuse("partitions", "segmentations of %d bytes exceed the limit of %d", bytes, MaxSegmentationBytes)
	}
	return w.checkStreams()
}

// name returns the name that the partition at a place has in what is refused.
func (p *Partition[P, I]) name(place int) string {
	if p.flow != nil {
		return fmt.Sprintf("streams[%d]", place)
	}
	return fmt.Sprintf("partitions[%d]", place)
}

// check returns what is wrong with the partition, which stands in the definition by that name.
func (p *Partition[P, I]) check(name string) error {
	err := events.ValidateBehavior(p.ID)
	switch {
	case err != nil:
		return refuse(name+".id", "%s", strings.TrimPrefix(err.Error(), "behavior "))
	case !p.Mode.Valid():
		modes := [...]string{Full.String(), Simulate.String(), DryRun.String()}
		return refuse(name+".mode", "%d, want one of %q", p.Mode, modes)
	case p.Items == nil && p.flow == nil:
		return refuse(name+".items", "nil, want a function")
	case p.Process == nil && p.Mode != DryRun:
		return refuse(name+".process", "nil, want a function unless the mode is %s", DryRun)
	case p.Workers < 1 || p.Workers > MaxWorkers:
		return refuse(name+".workers", "%d, want 0 to %d", p.Workers, MaxWorkers)
	case p.Threads < 1 || p.Threads > MaxThreads:
		return refuse(name+".threads", "%d, want 0 to %d", p.Threads, MaxThreads)
	}
	if err := p.Segmentation.Validate(); err != nil {
		if wrong, ok := errors.AsType[*segmentation.InvalidError](err); ok {
			return refuse(name+".segmentation."+wrong.Field, "%s", wrong.Problem)
		}
		return refuse(name+".segmentation", "%v", err)
	}
	if err := checkRules(name, p.Rules); err != nil {
		return err
	}
	if p.flow != nil {
		if err := p.flow.check(name, p.Rules); err != nil {
			return err
		}
	} else if i := slices.IndexFunc(p.Rules, Rule.holds); i >= 0 {
		return refuse(fmt.Sprintf("%s.rules[%d].react", name, i), "%q, which streams alone have", p.Rules[i].React)
	}
	if n := len(p.thresholds()); n > MaxThresholds {
		return refuse(name+".thresholds", "%d with those of rules, want %d at most", n, MaxThresholds)
	}
	return checkThresholds(name, p.Thresholds)
}

func checkRules(of string, rules []Rule) error {
	if n := len(rules); n > MaxRules {
		return refuse(of+".rules", "%d, want %d at most", n, MaxRules)
	}
	for i, r := range rules {
		name := fmt.Sprintf("%s.rules[%d]", of, i)
		repeats := r.React == Retry
		switch {
		case len(r.Code) > MaxCodeBytes:
			return refuse(name+".code", "%d bytes exceed the limit of %d", len(r.Code), MaxCodeBytes)
		case int(r.React) >= len(reactions):
			return refuse(name+".react", "%d, want one of %q", r.React, reactions)
		case r.Times < 0, repeats && r.Times > MaxRetries:
			return refuse(name+".times", "%d, want 0 to %d", r.Times, MaxRetries)
		case r.Times > 0 && !repeats && r.React != Stop:
			return refuse(name+".times", "%d, want 0 with the reaction %q", r.Times, r.React)
		case r.Backoff < 0 || r.Backoff > MaxBackoff:
			return refuse(name+".backoff", "%s, want 0 to %s", r.Backoff, MaxBackoff)
		case r.Backoff > 0 && !repeats:
			return refuse(name+".backoff", "%s, want 0 with the reaction %q", r.Backoff, r.React)
		case r.Pass && r.React != Park:
			return refuse(name+".pass", "true, want false with the reaction %q", r.React)
		}
	}
	return nil
}

func checkThresholds(of string, all []Threshold) error {
	places := map[string]int{}
	for i, t := range all {
		name := fmt.Sprintf("%s.thresholds[%d]", of, i)
		first, twice := places[t.Counter]
		switch n := len(t.Counter); {
		case n < 1 || n > MaxCounterBytes:
			return refuse(name+".counter", "%d bytes, want 1 to %d", n, MaxCounterBytes)
		case strings.ContainsFunc(t.Counter, notOfCounters):
			return refuse(name+".counter", "%q, want [A-Za-z0-9._-]", t.Counter)
		case twice:
			return refuse(name+".counter", "%q is that of thresholds[%d], too", t.Counter, first)
		case t.Limit < 0:
			return refuse(name+".limit", "%d, want 0 or more", t.Limit)
		}
		places[t.Counter] = i
	}
	return nil
}

func notOfCounters(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
}
