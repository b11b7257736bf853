package events

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Check returns an error for a partition that no work may have.
func (p *WorkPartition) Check() error {
	if err := checkName("id of a partition", p.ID, MaxPartitionBytes); err != nil {
		return err
	}
	for _, f := range [...]struct {
		name     string
		is, most uint64
	}{{"buckets", p.Buckets, MaxBuckets}, {"workers", uint64(p.Workers), MaxWorkers}, {"threads", uint64(p.Threads), MaxThreads}} {
		if f.is < 1 || f.is > f.most {
			return fmt.Errorf("partition %q: %s: %d, want 1 to %d", p.ID, f.name, f.is, f.most)
		}
	}
	switch {
	case p.Mode >= workModeEnd:
		return fmt.Errorf("partition %q: mode %d, want less than %d", p.ID, p.Mode, workModeEnd)
	case p.Form >= workFormEnd:
		return fmt.Errorf("partition %q: form %d, want less than %d", p.ID, p.Form, workFormEnd)
	case p.Form != FormBuckets && (p.Buckets != 1 || p.Workers != 1):
		return fmt.Errorf("partition %q: a stream of %d buckets and %d workers, want one", p.ID, p.Buckets, p.Workers)
	case p.MovesToken && (p.Form == FormBuckets || p.Mode == ModeFull):
		return fmt.Errorf("partition %q: only a stream that is not full is told to move its token", p.ID)
	case p.Form != FormBuckets && len(p.Rules) > 0:
		return fmt.Errorf("partition %q: rules of a stream, which goes by those of its node", p.ID)
	case len(p.Thresholds) > MaxThresholds:
		return fmt.Errorf("partition %q: %d thresholds exceed the limit of %d", p.ID, len(p.Thresholds), MaxThresholds)
	}
	for i, t := range p.Thresholds {
		if err := checkName("counter", t.Counter, MaxCounterBytes); err != nil {
			return fmt.Errorf("partition %q: %w", p.ID, err)
		}
		for _, before := range p.Thresholds[:i] {
			if before.Counter == t.Counter {
				return fmt.Errorf("partition %q: counter %q has two thresholds", p.ID, t.Counter)
			}
		}
	}
	return nil
}

// checkName returns an error for a text that is empty, too long or no UTF-8.
func checkName(what, text string, limit int) error {
	if n := len(text); n == 0 || n > limit || !utf8.ValidString(text) {
		return fmt.Errorf("%s %q: %d bytes, want 1 to %d, of UTF-8", what, Head(text, limit), n, limit)
	}
	return nil
}

// CheckPartitions returns an error for partitions that no work may have.
func CheckPartitions(all []WorkPartition) error {
	if n := len(all); n == 0 || n > MaxPartitions {
		return fmt.Errorf("partitions: %d, want 1 to %d", n, MaxPartitions)
	}
	segments, rules := 0, 0
	for i := range all {
		p := &all[i]
		if err := p.Check(); err != nil {
			return err
		}
		segments += len(p.Segments)
		rules += len(p.Rules)
		for j := range i {
			if all[j].ID == p.ID {
				return fmt.Errorf("partition %q is there twice", p.ID)
			}
		}
	}
	if segments > MaxSegmentBytes {
		return fmt.Errorf("segments: %d bytes exceed the limit of %d", segments, MaxSegmentBytes)
	}
	if rules > MaxRuleBytes {
		return fmt.Errorf("rules: %d bytes exceed the limit of %d", rules, MaxRuleBytes)
	}
	return nil
}

func (b *WorkPlanned) check() error {
	switch {
	case b.Run == 0:
		return errors.New("run 0 of a work")
	case len(b.Definition) > MaxDefinitionBytes || !utf8.ValidString(b.Definition):
		return fmt.Errorf("definition: %d bytes, want %d at most, of UTF-8", len(b.Definition), MaxDefinitionBytes)
	case b.Failed && (len(b.Partitions) > 0 || b.Definition != ""):
		return errors.New("a definition of a run that has the one of the run before")
	case b.Failed:
		return nil
	}
	return CheckPartitions(b.Partitions)
}

func (b *PartitionStarted) check() error { return checkPartitionNumber(b.Partition) }

func (b *PartitionEnded) check() error { return checkPartitionNumber(b.Partition) }

func checkPartitionNumber(n uint32) error {
	if n == 0 || n > MaxPartitions {
		return fmt.Errorf("partition %d, want 1 to %d", n, MaxPartitions)
	}
	return nil
}

// CheckItems returns an error for counts and errors that no end of a bucket may tell.
func CheckItems(n ItemCounts, errs []ItemError) error {
	const most = 1 << 53 // the sums of all buckets stay far from overflow
	if n.Done > most || n.Failed > most || n.Skipped > most {
		return fmt.Errorf("items: %d done, %d failed, %d skipped, want %d at most", n.Done, n.Failed, n.Skipped, uint64(most))
	}
	if len(errs) > MaxBucketErrors || uint64(len(errs)) > n.Failed {
		return fmt.Errorf("errors: %d of %d failed items, want %d at most", len(errs), n.Failed, MaxBucketErrors)
	}
	bytes := 0
	for _, e := range errs {
		bytes += len(e.Item) + len(e.Code) + len(e.Message)
		if !utf8.ValidString(e.Item) || !utf8.ValidString(e.Code) || !utf8.ValidString(e.Message) {
			return errors.New("errors: want UTF-8")
		}
	}
	if bytes > MaxBucketErrorBytes {
		return fmt.Errorf("errors: %d bytes exceed the limit of %d", bytes, MaxBucketErrorBytes)
	}
	return nil
}

func (b *BucketsMoved) check() error {
	all := b.Worker == 0
	switch {
	case all && (b.Attempt != 0 || b.Ended != 0 || b.Returned != 0 || b.Started != 0 || b.Cause != ReturnedGivenUp):
		return errors.New("buckets of all workers do more than return")
	case all:
		return nil
	case b.Attempt == 0:
		return fmt.Errorf("worker %d moves a bucket without an attempt", b.Worker)
	case b.Ended == 0 && b.Returned == 0 && b.Started == 0:
		return errors.New("no bucket moves")
	case b.Ended != 0 && b.Returned != 0:
		return fmt.Errorf("bucket %d ends, and bucket %d of the same worker is returned", b.Ended, b.Returned)
	case max(b.Ended, b.Returned, b.Started) > MaxBuckets:
		return fmt.Errorf("bucket %d, want %d at most", max(b.Ended, b.Returned, b.Started), uint64(MaxBuckets))
	case b.Cause >= returnCauseEnd || (b.Cause != NotReturned) != (b.Returned != 0):
		return fmt.Errorf("bucket %d is returned for cause %d", b.Returned, b.Cause)
	case b.Ended == 0 && (b.Items != ItemCounts{} || len(b.Errors) > 0):
		return errors.New("items of a bucket that has not ended")
	}
	return CheckItems(b.Items, b.Errors)
}

func (b *PermitsGranted) check() error {
	if n := len(b.Items); n == 0 || n > MaxPermits {
		return fmt.Errorf("%d permits, want 1 to %d", n, MaxPermits)
	}
	if b.Bucket == 0 || b.Bucket > MaxBuckets {
		return fmt.Errorf("permits of bucket %d, want 1 to %d", b.Bucket, uint64(MaxBuckets))
	}
	return checkName("counter", b.Counter, MaxCounterBytes)
}

func (b *WorkReset) check() error {
	switch {
	case b.What == 0 || b.What >= resetScopeEnd:
		return fmt.Errorf("reset of %d, want 1 to %d", b.What, resetScopeEnd-1)
	case b.What != ResetToken && (b.Token != "" || b.Reason != ""):
		return fmt.Errorf("a token in a reset of %d", b.What)
	}
	if err := CheckToken(b.Token); err != nil {
		return err
	}
	return CheckReason(b.Reason)
}
