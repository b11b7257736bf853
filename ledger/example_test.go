package ledger_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"taskledger/behaviors"
	"taskledger/engine/embedded"
	"taskledger/ledger"
	"taskledger/task"
)

// billed runs a node with one task, bill-7, that has ended.
func billed(ctx context.Context) *embedded.Node {
	double := behaviors.Define[int, int]("double", nil)
	node, err := embedded.Start(ctx, "", double.Bind(func(_ context.Context, amount int) (int, error) { return 2 * amount, nil }))
	if err != nil {
		log.Fatal(err)
	}
	f, _ := double.SubmitWith(ctx, node, 21, task.SubmitOptions{ID: "bill-7"}) // an error comes back from Wait as well
	if _, err := f.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	return node
}

// Every event of a task, and the task as it was after the first of them.
func ExampleLedger_History() {
	ctx := context.Background()
	node := billed(ctx)
	defer node.Close()

	for ev, err := range node.Ledger().History(ctx, "bill-7") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ev.Seq, ev.Kind())
	}
	task, err := node.Ledger().StateAfter(ctx, "bill-7", 1)
	fmt.Println(task.Status, task.Attempt, err)
	// Output:
	// 1 Created
	// 2 Started
	// 3 Succeeded
	// CREATED 0 <nil>
}

// An auditor checks the history of a task in a file, without the cluster, against a checkpoint that was kept.
func ExampleVerifyExport() {
	ctx := context.Background()
	node := billed(ctx)
	defer node.Close()
	kept, err := node.Ledger().Checkpoint(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if err := node.Ledger().ExportTask(ctx, "bill-7", &file, nil); err != nil {
		log.Fatal(err)
	}

	forged := bytes.Replace(file.Bytes(), []byte(`"task":"bill-7"`), []byte(`"task":"bill-8"`), 1)
	for _, export := range [][]byte{file.Bytes(), forged} {
		found, err := ledger.VerifyExport(bytes.NewReader(export), kept)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %d events, damage %q\n", found.Task, found.Events, found.Damage)
	}
	// Output:
	// bill-7: 3 events, damage ""
	// bill-8: 0 events, damage "garbled"
}

// Verify recomputes everything that is stored, and compares it with what the owners serve.
func ExampleLedger_Verify() {
	ctx := context.Background()
	node := billed(ctx)
	defer node.Close()

	found, err := node.Ledger().Verify(ctx, ledger.VerifyOptions{Archive: true})
	if err != nil {
		log.Fatal(err)
	}
	var events uint64
	for _, shard := range found {
		events += shard.Events
		if shard.Damage != "" {
			fmt.Println(shard.Shard, shard.Damage, shard.Problem)
		}
	}
	fmt.Println(len(found), "shards,", events, "events")
	// Output: 16 shards, 3 events
}
