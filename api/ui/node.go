package ui

// node is a member as the API shows it.
type node struct {
	Name         string   `json:"node"`
	Session      string   `json:"session"`
	Version      string   `json:"version"`
	Behaviors    []string `json:"behaviors"`
	Slots        int      `json:"slots"`
	Owner        bool     `json:"owner"`
	Draining     bool     `json:"draining"`
	JoinedAt     string   `json:"joined_at"`
	ClockAheadMs int64    `json:"clock_ahead_ms"`
}

// nodes is the answer of the API that lists them.
type nodes struct {
	Nodes []node `json:"nodes"`
}
