// Command completed prints every outcome that the cluster publishes. Its arguments are the URL of NATS and, if that
// asks for one, the file that holds the seed of an nkey.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/nats-io/nats.go"
)

func show(m *nats.Msg) {
	var event struct { // CloudEvents 1.0
		Subject string // the task's id
		Data    struct{ Behavior, Status string }
	}
	if err := json.Unmarshal(m.Data, &event); err == nil {
		fmt.Println(event.Subject, event.Data.Behavior, event.Data.Status)
	}
}

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr,
			"usage: completed URL [SEEDFILE], as in: completed nats://127.0.0.1:4222 taskledger-data/nats.nk")
		os.Exit(2)
	}
	var options []nats.Option
	if len(os.Args) == 3 {
		sign, err := nats.NkeyOptionFromSeed(os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, sign)
	}
	nc, err := nats.Connect(os.Args[1], options...)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := nc.Subscribe("taskledger.completed.>", show); err != nil {
		log.Fatal(err)
	}
	select {}
}
