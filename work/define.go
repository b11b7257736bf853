package work

import (
	"context"
	"iter"
	"slices"
	"strconv"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work/segmentation"
)

// Partition is a part of a work: a set of items, cut into buckets, and what is done with each item. P is the type of
// the parameters of the work, I that of an item. Its functions are called on the nodes of the workers; unless
// something else is said they may be called concurrently.
type Partition[P, I any] struct {
	// ID names the partition in reports, 1 to 48 bytes of [a-z0-9-], without another of its name in the work. "": its
	// place, "1" for the first one.
	ID string
	// Mode says what is done with the items. The zero value is Full.
	Mode Mode

	// Items returns the items of a bucket; required. It should select those whose keys the bucket contains, in any
	// order that is the same each time. It heeds its context, which ends when nothing more is wanted: an iterator that
	// does not return within ten seconds is left behind and fails the attempt. The first error that it yields fails the
	// attempt and gives the bucket back.
	//
	// Items that are yielded while their keys change may be in no bucket, or in two.
	Items func(ctx context.Context, params P, b Bucket) iter.Seq2[I, error]
	// Count returns the number of items of all buckets, for reports. It is called when the partition begins. If it
	// fails, that is logged and the number is unknown. nil: unknown.
	Count func(ctx context.Context, params P) (int64, error)
	// Key returns the key of an item. Within a worker, items of one key are processed one after the other, in their
	// order. nil, or "": the item has no key and waits for none. One goroutine at a time calls it for a bucket.
	Key func(item I) string
	// Process does the work for an item; required unless the mode is DryRun. Its context ends when the attempt has to
	// stop. nil: the item is done. Skip: it is skipped. Any other error, or a panic: Rules decide. An error that is
	// returned once the context has ended is not counted: the bucket is given back.
	Process func(ctx context.Context, item I) error

	// Segmentation cuts the set into buckets. The zero value is one bucket.
	Segmentation segmentation.Plan
	// Workers is the number of workers that have a bucket at the same time, 1 to MaxWorkers. 0 stands for 1.
	Workers int64
	// Threads is the number of items that each worker processes at the same time, 1 to MaxThreads. 0 stands for 1.
	Threads int64
	// Rules say what errors of items do, at most MaxRules. Without any a failed item is counted, and the work goes on.
	Rules []Rule
	// Thresholds limit how often Permit permits something. There are at most MaxThresholds, those of rules included.
	Thresholds []Threshold

	flow flow[P] // of a stream, else nil
}

// Options are choices for a work. The zero value of each field is its default.
type Options struct {
	// Policy bounds the attempts of the work's task and of its workers. It is recorded with each of them. Its zero
	// fields select its defaults.
	Policy task.Policy
}

// Work is the definition of a work. It is immutable and may be used concurrently.
type Work[P, I any] struct {
	id         string
	options    Options
	behavior   *behaviors.Behavior[P, Result]
	partitions []Partition[P, I]
	foreign    *foreign
}

// Define declares a work of partitions, which follow one another. id is 1 to 48 bytes of [a-z0-9-]; options may be nil.
// What it is given is copied. Define never fails: Validate tells what is wrong with a definition.
func Define[P, I any](id string, options *Options, partitions ...Partition[P, I]) *Work[P, I] {
	w := &Work[P, I]{id: id, foreign: new(foreign)}
	if options != nil {
		w.options = *options
	}
	w.behavior = behaviors.Define(id, &behaviors.Rules[P, Result]{Policy: w.options.Policy})
	for i, p := range partitions {
		if p.ID == "" {
			p.ID = strconv.Itoa(i + 1)
		}
		if p.Workers == 0 {
			p.Workers = 1
		}
		if p.Threads == 0 {
			p.Threads = 1
		}
		rules := make([]Rule, len(p.Rules))
		for n, r := range p.Rules {
			rules[n] = r.complete()
		}
		p.Rules = rules
		p.Thresholds, p.Segmentation = slices.Clone(p.Thresholds), separate(p.Segmentation)
		w.partitions = append(w.partitions, p)
	}
	return w
}

// separate returns a plan that shares no memory with p.
func separate(p segmentation.Plan) segmentation.Plan {
	p.Alphabets, p.Explicit = slices.Clone(p.Alphabets), slices.Clone(p.Explicit)
	return p
}

// ID returns the id of the work, which is that of its behavior.
func (w *Work[P, I]) ID() string { return w.id }

// Policy returns the policy of the attempts, as Options have it.
func (w *Work[P, I]) Policy() task.Policy { return w.options.Policy }

// Planned returns what a run of the definition follows. Validate has to accept the definition.
func (w *Work[P, I]) Planned() Plan {
	plan := Plan{Definition: w.hash()}
	small := w.rulesFit()
	for i := range w.partitions {
		p := w.partitions[i].plan()
		p.Segmentation = separate(p.Segmentation)
		if !small {
			p.Rules = nil
		}
		plan.Partitions = append(plan.Partitions, p)
	}
	return plan
}

// ruleBytes bounds what a rule takes in a plan without its code, and what the rules of a partition take besides.
const ruleBytes = 24

// rulesFit reports whether the rules of all partitions are so small that a plan has them.
func (w *Work[P, I]) rulesFit() bool {
	bytes := 0
	for i := range w.partitions {
		bytes += ruleBytes
		for _, r := range w.partitions[i].Rules {
			bytes += ruleBytes + len(r.Code)
		}
	}
	return bytes <= events.MaxRuleBytes
}

func (p *Partition[P, I]) plan() PartitionPlan {
	plan := PartitionPlan{
		ID:           p.ID,
		Mode:         p.Mode,
		Segmentation: p.Segmentation,
		Buckets:      p.Segmentation.Total(),
		Workers:      p.Workers,
		Threads:      p.Threads,
		Thresholds:   p.thresholds(),
	}
	if p.flow != nil {
		plan.Form, plan.MovesToken = p.flow.form()
	} else {
		plan.Rules = recordedRules(p.Rules)
	}
	return plan
}

// thresholds returns those of the partition, and then those of its rules.
func (p *Partition[P, I]) thresholds() (all []Threshold) {
	all = append(all, p.Thresholds...)
	for i, r := range p.Rules {
		if t, counts := r.counter(i); counts {
			all = append(all, t)
		}
	}
	return all
}

// partition returns the partition of an id, nil if the definition has none.
func (w *Work[P, I]) partition(id string) *Partition[P, I] {
	for i := range w.partitions {
		if w.partitions[i].ID == id {
			return &w.partitions[i]
		}
	}
	return nil
}
