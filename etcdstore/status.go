package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// memberStatus pairs an endpoint with the status that its member reported.
type memberStatus struct {
	endpoint string
	status   *clientv3.StatusResponse
}

// errOutrun ends the wait for a member that is slower than another one.
var errOutrun = errors.New("it does not answer, and another member has")

// askMembers asks all members at once for their status. It returns the answers that came within the request
// time-out and within after the first answer, and an error for each member that did not answer by then.
func (s *Store) askMembers(ctx context.Context, after time.Duration) (answers []memberStatus, silent []error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	endpoints := s.client.Endpoints()
	if len(endpoints) == 0 {
		endpoints = []string{"in-process"}
	}
	statuses, errs := make([]*clientv3.StatusResponse, len(endpoints)), make([]error, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() {
			errs[i] = s.bounded(ctx, func(ctx context.Context) (err error) {
				statuses[i], err = s.client.Status(ctx, endpoint)
				return err
			})
			if errs[i] == nil {
				time.AfterFunc(after, func() { stop(errOutrun) })
			} else if errors.Is(context.Cause(ctx), errOutrun) {
				errs[i] = errOutrun
			}
		})
	}
	asking.Wait()
	for i, endpoint := range endpoints {
		if errs[i] != nil {
			silent = append(silent, fmt.Errorf("ask %s for its status: %w", s.called(endpoint), errs[i]))
			continue
		}
		answers = append(answers, memberStatus{endpoint, statuses[i]})
	}
	return answers, silent
}

// called returns the name of an endpoint in errors.
func (s *Store) called(endpoint string) string {
	if endpoint == anyEndpoint && s.dialled != "" {
		return s.dialled
	}
	return endpoint
}
