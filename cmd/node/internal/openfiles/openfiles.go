// Package openfiles shares out the files that the process may open: connections, etcd, NATS and what runs would
// otherwise take them from each other, and the etcd inside ends the process when it cannot open a file.
package openfiles

import "fmt"

const (
	// Least is the smallest limit with which a node starts.
	Least = 512
	// reserve is for etcd, for NATS beside its clients, and for files.
	reserve = 192
	// Socket and Metrics are the connections of the Unix socket and of the listener of metrics.
	Socket  = 32
	Metrics = 32
	// unlimited is more than anybody needs.
	unlimited = 1 << 20
	// most is the most connections of the API.
	most = 12_000
	// ofExec and ofOther are the files of an attempt of behavior exec, whose program has pipes, and of another one.
	ofExec, ofOther = 8, 2
)

// Wanted holds the configured sizes of a node.
type Wanted struct {
	Inside bool // its servers
	Slots  int  // 0: it runs nothing
	Exec   int  // attempts of exec at once; 0: none are allowed
}

// Plan divides the open files among their users.
type Plan struct {
	Connections int // of the API, on all listeners of TCP together
	NATS        int // connections of the NATS inside; 0 = there is none
	Exec        int // attempts of exec at once: as wanted, or as many as fit
	Others      int // attempts at once of each other behavior that opens files; as many as there are slots, or as fit
}

// Share makes the plan for a limit of open files. A fourth of what is not reserved is for connections at least,
// whatever the slots are.
func Share(limit int, w Wanted) (Plan, error) {
	if limit < Least {
		return Plan{}, fmt.Errorf("the process may open %d files, want at least %d: raise the limit, by ulimit -n, LimitNOFILE= or --ulimit nofile=", limit, Least)
	}
	p := Plan{Exec: min(w.Exec, w.Slots), Others: w.Slots}
	if w.Inside {
		p.NATS = max(64, min(limit/8, 1024))
	}
	left := limit - reserve - Socket - Metrics - p.NATS
	attempts := left - left/4
	needed := func() int { return ofExec*p.Exec + ofOther*(w.Slots-p.Exec) }
	if needed() > attempts && p.Exec > 0 {
		p.Exec = max(1, min(p.Exec, max((attempts-ofOther*w.Slots)/(ofExec-ofOther), attempts/2/ofExec)))
	}
	if needed() > attempts { // of the others two open files: http and checksum
		p.Others = min(p.Others, (attempts-ofExec*p.Exec)/ofOther/2)
	}
	p.Connections = min(most, left-min(needed(), attempts))
	return p, nil
}
