package ledger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"

	"taskledger/behaviors"
	"taskledger/engine/embedded"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/task"
)

// perTenant is a projection of a service's own: what it counts, and how far it has come. Stored as one value, both
// change together, so that every event counts once.
type perTenant struct {
	Count  map[string]int
	Cursor ledger.Cursor
}

// fold counts the tasks that succeeded, by the part of their ids before the slash.
func (p *perTenant) fold(b ledger.EntryBatch) {
	for _, ev := range b.Events {
		if ev.Kind() == events.KindSucceeded {
			p.Count[ev.Task.Affinity()]++
		}
	}
	p.Cursor = b.Cursor
}

// A service builds its own projection from the start of time, is stopped in the middle, and goes on where it was.
func ExampleLedger_Follow() {
	dir, err := os.MkdirTemp("", "follow")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	bill := behaviors.Define[int, int]("bill", nil)
	node, err := embedded.Start(ctx, dir, bill.Bind(func(_ context.Context, amount int) (int, error) { return 2 * amount, nil }))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	submit := func(id events.TaskID) {
		f, err := bill.SubmitWith(ctx, node, 1, task.SubmitOptions{ID: id})
		if err == nil {
			_, err = f.Wait(ctx)
		}
		if err != nil {
			log.Fatal(err)
		}
	}

	stored := []byte(`{"Count":{}}`) // in the service's own database
	follow := func(until func(perTenant) bool) {
		var p perTenant
		if err := json.Unmarshal(stored, &p); err != nil {
			log.Fatal(err)
		}
		for b, err := range node.Ledger().Follow(ctx, p.Cursor) {
			if err != nil {
				log.Fatal(err)
			}
			p.fold(b)
			if stored, err = json.Marshal(p); err != nil {
				log.Fatal(err)
			}
			if until(p) {
				return
			}
		}
	}
	sum := func(p perTenant) (n int) {
		for count := range maps.Values(p.Count) {
			n += count
		}
		return n
	}

	for i := range 3 {
		submit(events.TaskID(fmt.Sprint("red/", i)))
		submit(events.TaskID(fmt.Sprint("blue/", i)))
	}
	follow(func(p perTenant) bool { return sum(p) == 2 })
	submit("red/3")
	follow(func(p perTenant) bool { return sum(p) == 7 })

	var p perTenant
	if err := json.Unmarshal(stored, &p); err != nil {
		log.Fatal(err)
	}
	fmt.Println("blue:", p.Count["blue"], "red:", p.Count["red"])
	// Output: blue: 3 red: 4
}
