// Package mirror makes a directory equal to another one by a work on three nodes of this process, and more of others.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"taskledger/behaviors"
	"taskledger/cmd/node/internal/connect"
	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/cmd/node/internal/team"
	"taskledger/engine/embedded"
	"taskledger/task"
	"taskledger/work"
)

// leaveWithin bounds how long the first process waits for others to read the outcome and leave. It is longer than the
// session of one that was killed.
const leaveWithin = 3 * team.TTL

// Run mirrors, and returns when the work has ended. It returns a *LimitError if there is more to delete than is
// allowed, and a *FailedError if some items failed.
func Run(ctx context.Context, cfg Config) error {
	params, err := trees.Resolve(cfg.Source, cfg.Target)
	if err != nil {
		return err
	}
	if cfg.Join != "" {
		return join(ctx, &cfg, params)
	}
	return begin(ctx, &cfg, params)
}

// begin runs the first process of a mirror.
func begin(ctx context.Context, cfg *Config, params trees.Params) (err error) {
	if err := cfg.Limits.Validate(); err != nil {
		return err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if cfg.Dir == "" {
		var remove func() error
		if dir, remove, err = makeTemporary(); err == nil {
			defer func() { err = errors.Join(err, remove()) }()
		}
	}
	if err != nil {
		return err
	}
	if err := params.Outside("data", dir); err != nil {
		return err
	}
	of := shared{
		Params: params,
		Limits: cfg.Limits,
		Follow: cfg.Follow,
		Since:  time.Now(),
	}
	if err := of.name(dir); err != nil {
		return err
	}
	pair, err := trees.Open(params)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	if cfg.Follow {
		if err := pair.CanFollow(); err != nil {
			return err
		}
	}
	return lead(ctx, cfg, of, pair, dir)
}

// lead runs the servers in a directory, and the nodes of the first process.
func lead(ctx context.Context, cfg *Config, of shared, pair *trees.Pair, dir string) (err error) {
	servers, err := embedded.StartServers(ctx, embedded.ServersConfig{Dir: dir, Log: cfg.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	if err := servers.Advertise(nil); err != nil {
		return err
	}
	mirror, follow := pair.Work(of.Limits), pair.Follow(of.Limits)
	nodes, err := team.Start(ctx, servers, cfg.Log, func(string) task.Behavior { return mirror }, follow)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, nodes.Close()) }()
	client := nodes.Members[0].Client
	if err := of.renew(ctx, client); err != nil {
		return err
	}
	if err := of.write(dir); err != nil {
		return err
	}
	invitation := cfg.Invite(dir, of.Params)
	fmt.Fprintf(cfg.Err, "%s: 3 nodes mirror %s to %s; their cluster is in %s\none more process joins with: %s\n",
		of.Task, of.Params.Source, of.Params.Target, dir, invitation)
	defer func() { tellInterrupted(cfg, of.Task, err) }()
	if err := awaitProcesses(ctx, cfg, nodes, invitation); err != nil {
		return err
	}
	r := run{
		Config: cfg,
		shared: of,
		client: client,
	}
	r.mirror.future = func(ctx context.Context) (*behaviors.Future[work.Result], error) {
		return mirror.Submit(ctx, r.client, of.Params, task.SubmitOptions{ID: of.Task})
	}
	r.follow.future = func(ctx context.Context) (*behaviors.Future[work.Result], error) {
		return follow.Submit(ctx, r.client, trees.FollowParams{
			Params: of.Params,
			Since:  of.Since,
		}, task.SubmitOptions{ID: of.follows()})
	}
	err = r.end(ctx)
	if !r.ended {
		return err
	}
	if !r.interrupted {
		err = errors.Join(err, remove(dir))
	}
	r.awaitLeaving(ctx, nodes)
	if r.interrupted {
		r.tellFollowed()
	}
	return err
}

// awaitLeaving waits until the nodes of other processes have left, which need the servers for that. Whoever does not
// leave in time finds no servers any more.
func (r *run) awaitLeaving(ctx context.Context, nodes *team.Team) {
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	_ = nodes.Await(leaving, func(alive int) bool { return alive <= len(nodes.Members) })
}

// join runs one more process of a running mirror.
func join(ctx context.Context, cfg *Config, params trees.Params) (err error) {
	of, err := read(cfg.Join)
	if err != nil {
		return err
	}
	if params != of.Params {
		return refuse("join", "%s mirrors %s to %s", cfg.Join, of.Params.Source, of.Params.Target)
	}
	if given := cfg.Limits; given != (trees.Limits{}) && !given.Equal(of.Limits) {
		fmt.Fprintln(cfg.Err, "the limits of the first process count, not those that were given here")
	}
	pair, err := trees.Open(params)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	link, err := connect.In(ctx, cfg.Join, connect.Addresses{Existing: true, Private: true, Log: cfg.Log})
	if err != nil {
		return err
	}
	mirror, follow := pair.Work(of.Limits), pair.Follow(of.Limits)
	node, err := team.Join(ctx, link, team.Config{
		Name:     fmt.Sprintf("p%d", os.Getpid()),
		Behavior: mirror,
		Also:     []task.Behavior{follow},
		Log:      cfg.Log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	fmt.Fprintf(cfg.Err, "%s: one more node mirrors %s to %s\n", of.Task, params.Source, params.Target)
	r := run{
		Config: cfg,
		shared: of,
		client: node.Client,
		joined: true,
	}
	r.mirror.future = func(context.Context) (*behaviors.Future[work.Result], error) {
		return mirror.Attach(r.client, of.Task), nil
	}
	r.follow.future = func(ctx context.Context) (*behaviors.Future[work.Result], error) {
		return follow.Attach(r.client, of.follows()), r.awaitFollowing(ctx)
	}
	return r.end(ctx)
}
