// Package advertised reads what a node with the servers inside writes into its data directory, so that other
// processes of the same user find it.
package advertised

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Servers tells other processes of a user how to reach the servers inside a running node. It lies in the data
// directory as cluster.json, readable by that user alone.
type Servers struct {
	Data string   `json:"data"`           // tells these data from others that may come into the same directory
	Etcd []string `json:"etcd"`           // unix:PATH, and the URL of an open port if there is one
	NATS string   `json:"nats,omitempty"` // URL; "" = no NATS
	NKey string   `json:"nkey,omitempty"` // path of the file that holds the seed NATS asks for
	API
}

// API holds the addresses of a node's HTTP API. The zero value says that it has none.
type API struct {
	Addresses []string `json:"api,omitempty"`   // unix:PATH first
	URL       string   `json:"url,omitempty"`   // the other one
	Token     string   `json:"token,omitempty"` // of the user of this machine, as long as the node runs
}

// Path returns the path of cluster.json in a data directory.
func Path(dir string) string { return filepath.Join(dir, "cluster.json") }

// Read returns what the servers on dir advertise. It wraps fs.ErrNotExist when none do. After a crash it returns
// addresses where nobody listens, until servers start on dir again.
func Read(dir string) (Servers, error) {
	var s Servers
	text, err := os.ReadFile(Path(dir))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return Servers{}, fmt.Errorf("no running cluster advertised in %s: %w", dir, err)
	}
	return s, nil
}
