package collections

import (
	"encoding/json"
	"strings"
)

// The drivers that every node has. A driver in Go is named GoPrefix and its name, 1 to 48 bytes of [a-z0-9-].
const (
	Exec     = "exec"
	Fetch    = "fetch"
	Noop     = "noop"
	GoPrefix = "go:"
)

// Driver names what a run of a collection does, with its settings. Those that its driver does not have are zero.
type Driver struct {
	Driver  string            `json:"driver"`
	Program string            `json:"program,omitempty"` // exec: as the operator of the node allowed it
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Dir     string            `json:"dir,omitempty"`    // absolute; "" = "/"
	URL     string            `json:"url,omitempty"`    // fetch: of http or https
	Path    string            `json:"path,omitempty"`   // fetch: relative, without "..", parted by "/"
	To      string            `json:"to,omitempty"`     // fetch: likewise
	Params  json.RawMessage   `json:"params,omitempty"` // of a driver in Go
}

// settingsOf lists the keys that a driver has.
func settingsOf(driver string) []string {
	switch {
	case driver == Exec:
		return []string{"program", "args", "env", "dir"}
	case driver == Fetch:
		return []string{"url", "path", "to"}
	case strings.HasPrefix(driver, GoPrefix):
		return []string{"params"}
	}
	return nil
}
