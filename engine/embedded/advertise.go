package embedded

import (
	"errors"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

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

// InUse reports whether servers run on the directory, or start there.
func InUse(dir string) bool {
	file, err := fileutil.TryLockFile(filepath.Join(dir, lockFile), os.O_RDWR, 0o600)
	if err == nil {
		_ = file.Close() // nothing was written
	}
	return errors.Is(err, fileutil.ErrLocked)
}
