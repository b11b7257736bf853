// Command worker runs the tasks that ../api submits. Start as many as there is work for.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/examples/service/bill"
	"taskledger/task"
)

func makeBill(_ context.Context, o bill.Order) (string, error) { return "INV-" + o.Number, nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := cluster.Open(ctx, cluster.Config{Etcd: []string{os.Getenv("ETCD")}, NATS: []string{os.Getenv("NATS")}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	node, err := c.NewNode(engine.NodeConfig{Behaviors: []task.Behavior{bill.Make.Bind(makeBill)}})
	if err != nil {
		log.Fatal(err)
	}
	if err := node.Run(ctx); err != nil { // until a signal
		log.Print(err)
	}
}
