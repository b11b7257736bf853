package connect

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/etcdstore"
	"taskledger/internal/connection"
	"taskledger/natsbus"
)

// checkWithin bounds what a member of etcd is asked for.
const checkWithin = 10 * time.Second

// Finding is the result of one check.
type Finding struct {
	What    string `json:"what"`
	Says    string `json:"says,omitempty"`    // what there is, and what may be done there
	Problem string `json:"problem,omitempty"` // "" = it works
}

// Found is a finding of a check that ended so.
func Found(what, says string, err error) Finding {
	if err != nil {
		return Finding{What: what, Problem: err.Error()}
	}
	return Finding{What: what, Says: says}
}

// Need grades how much a node depends on a part of its servers.
type Need int

// Check does not ask for an Unneeded part, and finds no fault where a Useful one is missing.
const (
	Unneeded Need = iota
	Useful
	Needed
)

// Check asks each server that the addresses name, as a node would, for what a node needs there, and changes nothing.
// archive grades JetStream.
func Check(ctx context.Context, a Addresses, archive Need) (all []Finding) {
	etcdTLS, etcdCAs, err := a.EtcdTLS.config()
	if err != nil {
		return []Finding{Found("TLS of etcd", "", err)}
	}
	natsTLS, natsCAs, err := a.NATSTLS.config()
	if err != nil {
		return []Finding{Found("TLS of NATS", "", err)}
	}
	for _, endpoint := range a.Etcd {
		says, err := checkEtcd(ctx, etcdstore.Config{
			Cluster:     a.Cluster,
			ID:          a.ID,
			Shards:      a.Shards,
			Existing:    true,
			Endpoints:   []string{endpoint},
			TLS:         etcdTLS,
			Authorities: etcdCAs,
			Username:    a.EtcdUser,
			Password:    a.EtcdPassword,
			Log:         a.Log,
		})
		all = append(all, Found("etcd "+bareEtcd(endpoint), says, err))
	}
	if a.Private {
		all = append(all, Found("exec-allow", "as far as can be told, nobody else can write etcd", checkPrivate(ctx, a)))
	}
	for i, server := range a.NATS {
		what := fmt.Sprintf("nats %d", i+1)
		u, err := url.Parse(server)
		if err != nil || u.Host == "" { // the text may hold a password
			all = append(all, Found(what, "", errors.New("want a URL such as nats://host:4222")))
			continue
		}
		what = "nats " + Bare([]string{server})[0]
		if u.User == nil && a.NATSUser != "" {
			u.User = url.UserPassword(a.NATSUser, a.NATSPassword)
		}
		jetStream, err := natsbus.Check(ctx, natsbus.Config{
			Cluster:     a.Cluster,
			URLs:        []string{u.String()},
			TLS:         natsTLS,
			Authorities: natsCAs,
			Creds:       a.NATSCreds,
			NKey:        a.NATSNKey,
			Log:         a.Log,
		})
		all = append(all, Found(what, "connected; may publish and subscribe", err))
		if archive == Unneeded || err != nil {
			continue
		}
		says := "JetStream answers"
		if archive == Useful && errors.Is(jetStream, natsbus.ErrNoJetStream) {
			says, jetStream = "none, so the journal is kept in etcd, and grows: "+jetStream.Error(), nil
		}
		all = append(all, Found("archive by "+what, says, jetStream))
	}
	return all
}

// CheckIn asks the servers of the node that runs on dir for the cluster, as a node that joins it would, and changes
// nothing. Of a count the fields that count for In.
func CheckIn(ctx context.Context, dir string, a Addresses) Finding {
	ctx, stop := context.WithTimeout(ctx, checkWithin)
	defer stop()
	says := "a node serves there; there is no such cluster yet"
	a.Existing = true
	link, err := In(ctx, dir, a)
	switch {
	case err == nil:
		says = "a node serves there; cluster " + link.Store.Cluster().ID
		err = link.Close()
	case errors.Is(err, etcdstore.ErrNoCluster) && a.ID == "": // else no node would create it
		err = nil
	}
	return Found("join "+dir, says, err)
}

// bareEtcd leaves out what an endpoint may hold of a user.
func bareEtcd(endpoint string) string {
	if bare := Bare([]string{endpoint}); len(bare) > 0 {
		return bare[0]
	}
	return endpoint
}

// checkPrivate refuses the etcd of a cluster where others can write it, as a node that runs programs does.
func checkPrivate(ctx context.Context, a Addresses) error {
	ctx, stop := context.WithTimeout(ctx, checkWithin)
	defer stop()
	a.NATS, a.ID, a.Shards, a.Existing = nil, "", 0, true
	link, err := At(ctx, a)
	switch {
	case err == nil:
		return link.Close()
	case errors.Is(err, etcdstore.ErrNoCluster): // it is looked for behind what is asked of etcd
		return nil
	case errors.Is(err, connection.ErrNotPrivate):
		return fmt.Errorf("it would let others run programs: %w", err)
	}
	return fmt.Errorf("who can write etcd is not known: %w", err)
}

// checkEtcd opens the cluster, and asks for a lease and for the right to write.
func checkEtcd(ctx context.Context, cfg etcdstore.Config) (says string, err error) {
	ctx, stop := context.WithTimeout(ctx, checkWithin)
	defer stop()
	says = "there is no such cluster yet"
	store, err := etcdstore.Open(ctx, cfg)
	switch {
	case err == nil:
		says = "cluster " + store.Cluster().ID
		err = store.Close()
	case errors.Is(err, etcdstore.ErrNoCluster) && cfg.ID == "": // else no node would create it
		err = nil
	}
	if err != nil {
		return "", err
	}
	client, err := etcdstore.NewClient(ctx, cfg)
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }() // tells that its context has ended
	name := cfg.Cluster
	if name == "" {
		name = "taskledger"
	}
	// The comparison never holds, so nothing is written; etcd checks the rights for what would be.
	key := name + "/check"
	if _, err := client.Txn(ctx).If(clientv3.Compare(clientv3.Version(key), "<", 0)).Then(clientv3.OpPut(key, "")).Commit(); err != nil {
		return "", fmt.Errorf("write below %s/: %w", name, err)
	}
	lease, err := client.Grant(ctx, int64(checkWithin/time.Second))
	if err == nil {
		_, err = client.Revoke(ctx, lease.ID)
	}
	if err != nil {
		return "", fmt.Errorf("grant and revoke a lease: %w", err)
	}
	return says + "; may read, write and have leases", nil
}
