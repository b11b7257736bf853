package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// floor returns the lowest patch of a 3.x minor line that reads linearizably after a pause, keeps leases honest and
// closes the known ways around authentication; ok is false for lines that never got there.
func floor(minor int) (patch int, ok bool) {
	switch {
	case minor < 5:
		return 0, false
	case minor == 5:
		return 33, true
	case minor == 6:
		return 14, true
	case minor == 7:
		return 1, true
	}
	return 0, true
}

// checkVersion returns an error when a server of that version must not be used.
func checkVersion(version string) error {
	release, _, _ := strings.Cut(version, "-")
	parts := strings.Split(release, ".")
	var n [3]int
	for i := range n {
		var err error
		if len(parts) != len(n) {
			err = strconv.ErrSyntax
		} else {
			n[i], err = strconv.Atoi(parts[i])
		}
		if err != nil {
			return fmt.Errorf("etcd version %q: want major.minor.patch", version)
		}
	}
	const want = "want at least 3.5.33, 3.6.14 or 3.7.1"
	if n[0] > 3 {
		return nil
	}
	if patch, ok := floor(n[1]); n[0] < 3 || !ok || n[2] < patch {
		return fmt.Errorf("etcd version %s is too old: %s", version, want)
	}
	return nil
}

// stragglersWithin bounds the wait for other members after the first one has answered: a member that hangs must not
// use up the time of whoever opens the store.
const stragglersWithin = 500 * time.Millisecond

// checkServers refuses the cluster when any member that answers is too old, or none answers.
func (s *Store) checkServers(ctx context.Context) error {
	answers, silent := s.askMembers(ctx, stragglersWithin)
	for _, a := range answers {
		if err := checkVersion(a.status.Version); err != nil {
			return fmt.Errorf("endpoint %s: %w", s.called(a.endpoint), err)
		}
	}
	if len(answers) == 0 {
		return errors.Join(silent...)
	}
	for _, err := range silent {
		s.log.WarnContext(ctx, "etcd member does not answer", "err", err)
	}
	return nil
}

// checkAuth refuses an etcd that lets everybody do everything: to such a one the client goes without its user.
func (s *Store) checkAuth(ctx context.Context) error {
	var status *clientv3.AuthStatusResponse
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		status, err = s.client.AuthStatus(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("ask whether authentication is on: %w", err)
	}
	if !status.Enabled {
		return ErrAuthOff
	}
	return nil
}
