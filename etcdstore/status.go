package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// memberStatus is what the member at an endpoint tells of itself.
type memberStatus struct {
	endpoint string
	status   *clientv3.StatusResponse
}

// errOutrun is why a member is not waited for any longer.
var errOutrun = errors.New("it does not answer, and another member has")

// askMembers asks all members at once for their status. It returns what those told that answered within the request
// time-out, and within so long after the first one did, and an error for each that did not.
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

// called is what errors call an endpoint.
func (s *Store) called(endpoint string) string {
	if endpoint == anyEndpoint && s.dialled != "" {
		return s.dialled
	}
	return endpoint
}
