// Command completed prints every outcome that the cluster publishes. Its argument is the URL of NATS.
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
	nc, err := nats.Connect(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if _, err := nc.Subscribe("taskledger.completed.>", show); err != nil {
		log.Fatal(err)
	}
	select {}
}
