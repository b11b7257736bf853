package work_test

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"taskledger/behaviors"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// Names is the parameter of the work: where its items are.
type Names struct{ Of []string }

// names yields the names of a bucket: a database would select them by its bounds.
func names(_ context.Context, p Names, b work.Bucket) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, name := range p.Of {
			if b.Contains(name) && !yield(name, nil) {
				return
			}
		}
	}
}

func greet(ctx context.Context, name string) error {
	switch {
	case strings.HasPrefix(name, "#"):
		return work.Skip("a comment")
	case !strings.ContainsAny(name, "aeiou"):
		return behaviors.Code("unspeakable", fmt.Errorf("%s has no vowel", name), nil)
	}
	if is, _ := work.Run(ctx); is.Mode == work.Simulate {
		return nil
	}
	fmt.Println("hello", name)
	return nil
}

func Example() {
	greetings := work.Define("greetings", nil, work.Partition[Names, string]{
		Items:   names,
		Process: greet,
		Key:     func(name string) string { return name },
		// Below "h", "h" to "p", and from "p" on.
		Segmentation: segmentation.Plan{Kind: segmentation.Interval, Alphabets: []string{"hp"}},
		Rules:        []work.Rule{{Code: "unspeakable", React: work.Retry, Backoff: 1}},
	})
	if err := greetings.Validate(); err != nil {
		fmt.Println(err)
	}
	all := Names{[]string{"rosa", "anna", "hgr", "#end", "otto"}}

	ledger := newRecord() // the engine's, in a node
	state, err := greetings.Attempt(context.Background(), ledger.attempt(), all, work.Attempt{})
	fmt.Println(state == work.Finished, err)
	for _, r := range ledger.reports {
		fmt.Printf("bucket %d: %+v %v\n", r.Bucket, r.Items, r.Errors)
	}

	// Output:
	// hello anna
	// hello otto
	// hello rosa
	// true <nil>
	// bucket 1: {Done:1 Failed:0 Skipped:1} []
	// bucket 2: {Done:1 Failed:1 Skipped:0} [{hgr unspeakable hgr has no vowel}]
	// bucket 3: {Done:1 Failed:0 Skipped:0} []
}
