// Package advertised reads and writes what a running node leaves in its data directory, so that other processes of the
// same user find it.
package advertised

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// InFiles is the Store of a node whose store is in files: no other process can open it, so its API is the only way in.
const InFiles = "files"

// Servers tells other processes of a user how to reach the servers inside a running node. It lies in the data
// directory as cluster.json, readable by that user alone.
type Servers struct {
	Data  string   `json:"data"`            // tells these data from others that may come into the same directory
	Store string   `json:"store,omitempty"` // InFiles; "" = in etcd
	Etcd  []string `json:"etcd,omitempty"`  // unix:PATH, and the URL of an open port if there is one; none InFiles
	NATS  string   `json:"nats,omitempty"`  // URL; "" = no NATS
	NKey  string   `json:"nkey,omitempty"`  // path of the file that holds the seed NATS asks for
	API
}

// API holds the addresses of a node's HTTP API. The zero value says that it has none. A node whose store is InFiles has
// always one, at least at a socket.
type API struct {
	Addresses []string `json:"api,omitempty"`   // unix:PATH first
	URL       string   `json:"url,omitempty"`   // the other one; "" = the socket alone
	Token     string   `json:"token,omitempty"` // of the user of this machine, as long as the node runs; the socket asks for it, too
}

// Socket returns the path of the Unix socket of the API; "" = it has none. It lies in a directory that nobody but the
// user of the node may enter.
func (a API) Socket() string {
	for _, at := range a.Addresses {
		if path, is := strings.CutPrefix(at, "unix:"); is {
			return path
		}
	}
	return ""
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

// Write advertises servers in a data directory, which the caller holds the lock of.
func Write(dir string, s Servers) error {
	text, err := json.Marshal(s)
	if err == nil {
		err = Replace(Path(dir), text)
	}
	if err != nil {
		return fmt.Errorf("advertise: %w", err)
	}
	return nil
}

// Withdraw removes what is advertised in a data directory; that there is nothing is no error.
func Withdraw(dir string) error {
	if err := os.Remove(Path(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("withdraw advertised addresses: %w", err)
	}
	return nil
}

// Replace writes a file whole or not at all, for the user alone. A crash may undo it, and does not leave it empty.
func Replace(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
