// Command api submits a task for each request, and answers with its result. It takes requests also while no worker
// runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"taskledger/engine"
	"taskledger/examples/service/bill"
)

// serve answers POST /bills/ORDER. A request that is repeated meets the task of the first one.
func serve(w http.ResponseWriter, r *http.Request, client *engine.Client) {
	f, _ := bill.Make.Submit(r.Context(), client, bill.Order{Number: r.PathValue("order")}) // an error comes back from Wait
	ctx, stop := context.WithTimeout(r.Context(), 5*time.Second)
	defer stop()
	if number, err := f.Wait(ctx); err == nil {
		fmt.Fprintln(w, number)
	} else if errors.Is(err, context.DeadlineExceeded) {
		w.WriteHeader(http.StatusAccepted) // it is recorded, and will be done
	} else {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// listen answers requests until the node ends.
func listen(ctx context.Context, node *engine.Node) error {
	http.HandleFunc("POST /bills/{order}", func(w http.ResponseWriter, r *http.Request) { serve(w, r, node.Client) })
	server := &http.Server{Addr: os.Getenv("LISTEN")}
	context.AfterFunc(ctx, func() { server.Close() })
	return server.ListenAndServe()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	node := engine.NodeConfig{Slots: -1} // it owns shards, and makes no attempts
	if err := bill.Servers.Run(ctx, node, listen); err != nil {
		log.Fatal(err)
	}
}
