package etcdstore

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// memberStatus is what the member at an endpoint tells of itself.
type memberStatus struct {
	endpoint string
	status   *clientv3.StatusResponse
}

// askMembers asks all members at once for their status. It returns what those told that answered within the request
// time-out, and an error for each that did not.
func (s *Store) askMembers(ctx context.Context) (answers []memberStatus, silent []error) {
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
		})
	}
	asking.Wait()
	for i, endpoint := range endpoints {
		if errs[i] != nil {
			silent = append(silent, fmt.Errorf("ask %s for its status: %w", endpoint, errs[i]))
			continue
		}
		answers = append(answers, memberStatus{endpoint, statuses[i]})
	}
	return answers, silent
}
