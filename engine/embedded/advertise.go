package embedded

import (
	"os"
	"path/filepath"

	"taskledger/internal/advertised"
)

// Advertise writes where the servers are, and the HTTP API if there is one, into the directory, readable by the user
// alone, until Close: another process joins with cluster.Config.Dir. Only the command line has an API to name; other
// programs pass nil.
func (s *Servers) Advertise(api *advertised.API) error {
	at := advertised.Servers{
		Data: s.member,
		Etcd: s.etcdEndpoints(),
		NATS: s.NATSURL(),
		NKey: s.NATSNKey(),
	}
	if api != nil {
		at.API = *api
	}
	return advertised.Write(s.dir, at)
}

// Served reports whether servers have ever been started on the directory.
func Served(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, seedFile))
	return err == nil
}
