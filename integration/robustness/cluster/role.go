package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"taskledger/integration/robustness/traffic"
)

// roleVariable names the environment variable that holds a Role as JSON.
const roleVariable = "ROBUSTNESS_ROLE_OF_TASKLEDGER"

// roleKind names the role of a process.
type roleKind string

// The kinds.
const (
	roleEtcd   roleKind = "etcd"
	roleNATS   roleKind = "nats"
	roleNode   roleKind = "node"
	roleClient roleKind = "client"
)

// Role is all that a process of a run is told at its start: a member of etcd, NATS, a node or a client. The driver
// gives this same binary a role, gives it orders on its standard input and hears its words on its standard output, both
// as lines of JSON. A process ends in order when its input does.
type Role struct {
	Kind  roleKind
	Name  string
	Dir   string // of its data; "" = it keeps none
	Begin int64  // of the run, as history.Now tells

	// Of a member of etcd; the addresses are host:port of the links that lead to it.
	Peers, Clients string            `json:",omitempty"`
	Members        map[string]string `json:",omitempty"` // address of the peers of every member, by name
	Quota          int64             `json:",omitempty"` // bytes; 0 = etcd's default

	MaxPending int64 `json:",omitempty"` // of NATS: bytes that may wait for a client before it is dropped; 0 = NATS's default

	// Of a node or a client.
	Seed    uint64   `json:",omitempty"` // of what it submits
	Etcd    []string `json:",omitempty"`
	NATS    string   `json:",omitempty"`
	Shards  int      `json:",omitempty"`
	Few     bool     `json:",omitempty"` // it asks for less, as slots are few
	Archive bool     `json:",omitempty"` // NATS keeps what leaves the journals

	// Of a client.
	Source string `json:",omitempty"` // of what it submits; no other process of the run has it
	Pad    int    `json:",omitempty"` // bytes that each submit carries in vain

	// Of a node.
	FaultyStore bool          `json:",omitempty"` // its writes can be made to fail
	Slots       int           `json:",omitempty"`
	TTL         time.Duration `json:",omitempty"`

	Limits map[string]int `json:",omitempty"` // attempts of a behavior at once
}

// Order is a line on a process's standard input. It is answered by a Word of the same Number.
type Order struct {
	Number int
	Clock  *time.Duration   `json:",omitempty"` // how far a node's wall clock is to be off
	Writes *bool            `json:",omitempty"` // whether a node's writes fail now and then
	Bus    *bool            `json:",omitempty"` // whether a node's messages are doubled and delayed
	Submit *bool            `json:",omitempty"` // whether a node submits, or a client makes requests
	Ask    *traffic.Request `json:",omitempty"` // one that a client is to make; it answers when that has ended
	Count  bool             `json:",omitempty"` // asks for Word.Count
}

// Word is a line on a process's standard output.
type Word struct {
	Ready   bool   `json:",omitempty"`
	Peers   string `json:",omitempty"` // where a member of etcd listens: host:port
	Clients string `json:",omitempty"` // where a member of etcd or NATS listens: host:port
	ID      string `json:",omitempty"` // of a member of etcd

	Session string            `json:",omitempty"` // the node has begun one
	Died    string            `json:",omitempty"` // why a node or a client ended that was not told to
	Report  *traffic.Report   `json:",omitempty"`
	Call    *traffic.Call     `json:",omitempty"`
	Item    *traffic.ItemCall `json:",omitempty"`
	Damage  string            `json:",omitempty"` // what a client of a task store need not expect

	Answers int    `json:",omitempty"` // number of the Order
	Count   int64  `json:",omitempty"` // how often what was ordered was felt since it was; of Order.Count: of what the role says
	Err     string `json:",omitempty"`
}

// inRole is a process that has taken on its role.
type inRole struct {
	Role
	mu  sync.Mutex
	out *json.Encoder
}

// ExitFailed is the exit code of a process whose log says what failed, unlike that of one that crashed.
const ExitFailed = 1

// RunRole takes on the role that this process was given; false when it has none.
func RunRole() (had bool, code int) {
	text := os.Getenv(roleVariable)
	if text == "" {
		return false, 0
	}
	p := &inRole{out: json.NewEncoder(os.Stdout)}
	err := json.Unmarshal([]byte(text), &p.Role)
	if err == nil {
		err = p.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, p.Name, err)
		return true, ExitFailed
	}
	return true, 0
}

func (p *inRole) run() error {
	switch p.Kind {
	case roleEtcd:
		return p.etcd()
	case roleNATS:
		return p.nats()
	case roleNode:
		return p.node()
	case roleClient:
		return p.client()
	}
	return fmt.Errorf("role %q is unknown", p.Kind)
}

// say tells the driver. Without one nobody hears.
func (p *inRole) say(w Word) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(w)
}

// obey carries out orders until there are no more.
func (p *inRole) obey(carryOut func(Order) (count int64, err error)) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var o Order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("order cannot be read: %w", err)
		}
		w := Word{Answers: o.Number}
		var err error
		if w.Count, err = carryOut(o); err != nil {
			w.Err = err.Error()
		}
		p.say(w)
	}
	return lines.Err()
}

// idle waits for the end of the orders.
func idle() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
