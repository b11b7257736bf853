package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"taskledger/etcdstore"
	"taskledger/internal/advertised"
	"taskledger/internal/connection"
	"taskledger/natsbus"
	"taskledger/store"
)

// ErrNoNode reports that no node runs on Config.Dir. It wraps store.ErrUnavailable, and is another error than
// task.ErrNoNode.
var ErrNoNode = fmt.Errorf("%w: no node runs", store.ErrUnavailable)

// directory finds the servers inside the node that runs on a directory, at each dial anew.
type directory struct {
	path, data string
	private    bool  // refuse servers that open a port of etcd, or are of another user
	user       int64 // of this process
}

// probeWithin bounds the look whether anybody listens where a directory says.
const probeWithin = time.Second

// inDir directs both configurations to the servers of the directory, wherever they will be.
func inDir(ctx context.Context, dir string, private bool, etcd *etcdstore.Config, bus *natsbus.Config) error {
	found, err := advertised.Read(dir)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
		return &store.InvalidError{Field: "dir", Problem: err.Error()}
	case err != nil:
		return fmt.Errorf("%w on %s", ErrNoNode, dir)
	case found.Store != "":
		return &store.InvalidError{
			Field:   "dir",
			Problem: "the store in " + dir + " is in " + found.Store + ", which one process has: ask its API",
		}
	}
	d := directory{dir, found.Data, private, me()}
	probing, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	conn, err := d.dialEtcd(probing)
	if errors.Is(err, connection.ErrNotPrivate) {
		return err
	}
	if err != nil && ctx.Err() != nil { // the time was over before it was known whether a node runs
		return fmt.Errorf("%w: connect to the node on %s: %w", store.ErrUnavailable, dir, context.Cause(ctx))
	}
	if err != nil { // a killed node leaves its addresses behind
		return fmt.Errorf("%w on %s any more: %w", ErrNoNode, dir, err)
	}
	conn.Close()
	etcd.Dial, etcd.DialName = logRefused(etcd.Log, d.dialEtcd), found.Etcd[0]+", the etcd of the node on "+dir+","
	if found.NATS != "" {
		bus.URLs, bus.NKey, bus.Dial = []string{found.NATS}, found.NKey, d.dialNATS
	}
	return nil
}

// now reads where the servers are. Other data than those that were opened are another cluster, and servers that ran
// without a port of etcd may have come back with one.
func (d directory) now() (advertised.Servers, error) {
	a, err := advertised.Read(d.path)
	if err == nil && a.Data != d.data {
		err = fmt.Errorf("%s holds the data of another cluster by now", d.path)
	}
	if at := slices.IndexFunc(a.Etcd, port); err == nil && d.private && at >= 0 {
		err = fmt.Errorf("%w at %s: start the node on %s without EtcdPort (serve: --etcd-port)",
			connection.ErrNotPrivate, a.Etcd[at], d.path)
	}
	return a, err
}

// dialEtcd looks again once it is connected: what was advertised before may be of servers that ended meanwhile, and the
// next ones void it before they listen.
func (d directory) dialEtcd(ctx context.Context) (net.Conn, error) {
	a, err := d.now()
	if err != nil {
		return nil, err
	}
	conn, err := d.dialSocket(ctx, a)
	if err != nil {
		return nil, err
	}
	if _, err := d.now(); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (d directory) dialSocket(ctx context.Context, a advertised.Servers) (net.Conn, error) {
	for _, endpoint := range a.Etcd {
		if path, found := strings.CutPrefix(endpoint, "unix:"); found {
			if err := d.trusted(filepath.Dir(path)); err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	return nil, fmt.Errorf("%s names no socket of etcd", advertised.Path(d.path))
}

// port reports whether the endpoint is no socket.
func port(endpoint string) bool {
	_, socket := socketPath(endpoint)
	return !socket
}

// trusted refuses the directory of a socket that another user may have made: one that is gone may have been below the
// directory for temporary files. What is private must be of the user of this process, also where that is root and may
// read what others own.
func (d directory) trusted(dir string) error {
	advert := advertised.Path(d.path)
	told, err := os.Stat(advert)
	if err != nil {
		return err
	}
	by := owner(told)
	if d.private && by != d.user {
		return fmt.Errorf("%w: the node on %s is of user %d, and this process of user %d",
			connection.ErrNotPrivate, d.path, by, d.user)
	}
	return closedToOthers(dir, by, "the owner of "+advert)
}

// closedToOthers returns an error unless the user owns the directory and nobody else may enter it. The error calls that
// user whom.
func closedToOthers(dir string, user int64, whom string) error {
	around, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no socket of etcd: %w", err)
	}
	if err != nil {
		return err
	}
	if !around.IsDir() || around.Mode().Perm()&0o077 != 0 || owner(around) != user {
		return fmt.Errorf("%s: want a directory that is closed to others, of %s", dir, whom)
	}
	return nil
}

// dialNATS dials while etcd's socket answers: the port is the node's then. The port of a node that died may be
// anybody's, who could pass the challenge of the next start on to this process, and the answer back.
func (d directory) dialNATS(ctx context.Context) (net.Conn, error) {
	alive, err := d.dialEtcd(ctx)
	if err != nil {
		return nil, err
	}
	alive.Close()
	a, err := d.now()
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(a.NATS)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%s names no NATS", advertised.Path(d.path))
	}
	return new(net.Dialer).DialContext(ctx, "tcp", u.Host)
}
