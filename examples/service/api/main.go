// Command api submits a task for each request, and answers with its result. It takes requests also while no worker runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/examples/service/bill"
)

// serve answers POST /bills/ORDER. A request that is repeated meets the task of the first one.
func serve(w http.ResponseWriter, r *http.Request, node *engine.Node) {
	f, _ := bill.Make.Submit(r.Context(), node.Client, bill.Order{Number: r.PathValue("order")}) // an error comes back from Wait
	ctx, stop := context.WithTimeout(r.Context(), 5*time.Second)
	defer stop()
	number, err := f.Wait(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		w.WriteHeader(http.StatusAccepted) // it is recorded, and will be done
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, number)
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := cluster.Open(ctx, cluster.Config{Etcd: []string{os.Getenv("ETCD")}, NATS: []string{os.Getenv("NATS")}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	node, err := c.NewNode(engine.NodeConfig{Slots: -1}) // it owns shards, and makes no attempts
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /bills/{order}", func(w http.ResponseWriter, r *http.Request) { serve(w, r, node) })
	l, err := net.Listen("tcp", os.Getenv("LISTEN"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr())
	go http.Serve(l, nil) // it ends with the process
	if err := node.Run(ctx); err != nil {
		log.Print(err)
	}
}
