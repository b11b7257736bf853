// Command worker runs the tasks that ../api submits. Start as many as there is work for.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"taskledger/engine"
	"taskledger/examples/service/bill"
	"taskledger/task"
)

func makeBill(_ context.Context, o bill.Order) (string, error) { return "INV-" + o.Number, nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	node := engine.NodeConfig{Behaviors: []task.Behavior{bill.Make.Bind(makeBill)}}
	if err := bill.Servers.Run(ctx, node); err != nil { // until a signal
		log.Fatal(err)
	}
}
