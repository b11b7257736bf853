// Package overappends measures what an entry of a journal costs in each kind of store: in files, strict and
// opportunistic, and in the etcd of this process, all on one disk and in one run.
package overappends

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"time"

	"taskledger/cmd/node/internal/bench"
	"taskledger/engine/embedded"
	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/store"
)

const (
	entryBytes = 256
	// shards are as many as entries may be under way: those of one shard wait for each other.
	shards = 64
	// windows counts those of a round: two of each store.
	windows = 6
	// sessionTTL is longer than any measurement.
	sessionTTL = time.Hour
)

// Config says how to measure.
type Config struct {
	InFlight int           // entries under way at any time, 1 to 64
	Duration time.Duration // of all windows
}

// Most is the largest Config.InFlight.
const Most = shards

// Result holds what was measured. A ratio is the median over the rounds: entries for each of etcd's in as much time.
type Result struct {
	EtcdPerS                float64 `json:"etcd_per_s"`
	StrictPerS              float64 `json:"strict_per_s"`
	OpportunisticPerS       float64 `json:"opportunistic_per_s"`
	EtcdAloneMs             float64 `json:"etcd_alone_p50_ms"`
	StrictAloneMs           float64 `json:"strict_alone_p50_ms"`
	OpportunisticAloneMs    float64 `json:"opportunistic_alone_p50_ms"`
	StrictRatio             float64 `json:"strict_ratio"`
	OpportunisticRatio      float64 `json:"opportunistic_ratio"`
	StrictAloneRatio        float64 `json:"strict_alone_ratio"` // of the p50 of etcd to that of the store
	OpportunisticAloneRatio float64 `json:"opportunistic_alone_ratio"`
	InFlight                int     `json:"in_flight"`
}

// Bounds holds the lowest ratios that are wanted.
type Bounds struct{ Strict, StrictAlone, Opportunistic, OpportunisticAlone float64 }

// Within returns an error that names the ratios below their bounds.
func (r Result) Within(b Bounds) error {
	var errs []error
	for _, c := range []struct {
		name      string
		is, least float64
	}{
		{"strict_ratio", r.StrictRatio, b.Strict},
		{"strict_alone_ratio", r.StrictAloneRatio, b.StrictAlone},
		{"opportunistic_ratio", r.OpportunisticRatio, b.Opportunistic},
		{"opportunistic_alone_ratio", r.OpportunisticAloneRatio, b.OpportunisticAlone},
	} {
		if c.is < c.least {
			errs = append(errs, fmt.Errorf("%s %.2f is below the %.2f asked for", c.name, c.is, c.least))
		}
	}
	return errors.Join(errs...)
}

// journal holds the part of a store that is measured.
type journal interface {
	Join(ctx context.Context, info store.NodeInfo, ttl time.Duration) (store.Session, error)
	Take(ctx context.Context, s store.Session, shard int, seen store.Owner) (store.Ownership, error)
	Append(ctx context.Context, o store.Ownership, after store.Head, entry []byte) (int64, error)
}

// subject is a store of which one session owns all shards.
type subject struct {
	store journal
	owned []store.Ownership
	heads []store.Head

	perS  []float64 // of each round
	alone []float64 // p50 of each round, in milliseconds
}

// Run makes rounds of windows: in each of them every store has one with entries under way on many shards, and one with
// an entry at a time.
func Run(ctx context.Context, cfg Config) (r Result, err error) {
	dir, err := os.MkdirTemp("", "taskledger-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	servers, err := embedded.StartServers(ctx, embedded.ServersConfig{NoNATS: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	cluster, err := servers.Connect(ctx, "", shards, slog.New(slog.DiscardHandler))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	all := []*subject{{store: cluster.Store}}
	for _, d := range []filejournal.Durability{filejournal.Strict, filejournal.Opportunistic} {
		at := filejournal.Options{Durability: d}
		s, err := filestore.Open(dir+"/"+string(d), filestore.Config{Shards: shards}, at)
		if err != nil {
			return r, err
		}
		defer func() { _ = s.Close() }() // its directory is removed
		all = append(all, &subject{store: s})
	}
	for _, s := range all {
		if err := s.own(ctx); err != nil {
			return r, err
		}
	}
	window := min(max(cfg.Duration/(2*windows), 500*time.Millisecond), 2*time.Second)
	for range max(1, int(cfg.Duration/(windows*window))) {
		for _, s := range all {
			if err := s.measure(ctx, cfg.InFlight, window); err != nil {
				return r, err
			}
		}
	}
	return result(all, cfg.InFlight), nil
}

// own begins a session and takes all shards.
func (s *subject) own(ctx context.Context) error {
	session, err := s.store.Join(ctx, store.NodeInfo{Name: "bench", Reads: store.Reads{}}, sessionTTL)
	if err != nil {
		return err
	}
	s.heads = make([]store.Head, shards)
	for shard := range shards {
		o, err := s.store.Take(ctx, session, shard, store.Owner{})
		if err != nil {
			return err
		}
		s.owned = append(s.owned, o)
	}
	return nil
}

// append writes the next entry of the shard of a worker.
func (s *subject) append(ctx context.Context, worker int) error {
	after := s.heads[worker]
	data := bytes.Repeat([]byte{byte(after.Number), 'x'}, entryBytes/2)
	revision, err := s.store.Append(ctx, s.owned[worker], after, data)
	s.heads[worker] = store.Head{Number: after.Number + 1, Revision: revision}
	return err
}

// measure makes both windows of a round.
func (s *subject) measure(ctx context.Context, inFlight int, d time.Duration) error {
	runtime.GC() // no window pays for the garbage of another one
	n, took, _, err := bench.Loop(ctx, inFlight, d, s.append)
	if err != nil {
		return err
	}
	s.perS = append(s.perS, float64(n)/took.Seconds())
	var times []float64
	_, _, _, err = bench.Loop(ctx, 1, d, func(ctx context.Context, _ int) error {
		began := time.Now()
		err := s.append(ctx, 0)
		times = append(times, float64(time.Since(began).Microseconds())/1000)
		return err
	})
	s.alone = append(s.alone, bench.Median(times))
	return err
}

// result sums up what was measured of etcd, strict and opportunistic.
func result(all []*subject, inFlight int) Result {
	etcd, strict, opportunistic := all[0], all[1], all[2]
	return Result{
		EtcdPerS:                bench.Median(etcd.perS),
		StrictPerS:              bench.Median(strict.perS),
		OpportunisticPerS:       bench.Median(opportunistic.perS),
		EtcdAloneMs:             bench.Median(etcd.alone),
		StrictAloneMs:           bench.Median(strict.alone),
		OpportunisticAloneMs:    bench.Median(opportunistic.alone),
		StrictRatio:             ratio(strict.perS, etcd.perS),
		OpportunisticRatio:      ratio(opportunistic.perS, etcd.perS),
		StrictAloneRatio:        ratio(etcd.alone, strict.alone),
		OpportunisticAloneRatio: ratio(etcd.alone, opportunistic.alone),
		InFlight:                inFlight,
	}
}

// ratio returns the median of the ratios of values of the same round.
func ratio(of, to []float64) float64 {
	ratios := slices.Clone(of)
	for i := range ratios {
		ratios[i] /= to[i]
	}
	return bench.Median(ratios)
}
