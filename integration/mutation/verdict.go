package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"time"
)

// verdict says whether a mutation was noticed.
type verdict struct {
	name string
	by   string // the test or the harness that is there to notice it
	finding
	err error // why it was not noticed
}

// finding says how a mutation shows in histories.
type finding struct {
	histories int      // that it took; 0 = a test noticed it
	noticed   []string // the invariants of the bug that are broken in the last one
	how       string   // the first of these
}

func (v *verdict) String() string {
	switch {
	case v.err != nil:
		return fmt.Sprintf("FAILED %s, %s: %s", v.name, v.by, firstLine(v.err.Error(), ""))
	case v.histories == 0:
		return fmt.Sprintf("passed %s, %s", v.name, v.by)
	}
	noticed := strings.Join(v.noticed, ", ")
	return fmt.Sprintf("passed %s, %s: %d histories: %s: %s", v.name, v.by, v.histories, noticed, v.how)
}

// court comes to verdicts side by side, as many at a time as it has places, and prints them.
type court struct {
	log      *log.Logger
	places   chan struct{}
	running  sync.WaitGroup
	verdicts []*verdict
}

// judge has look notice a mutation as soon as there is a place, unless ctx ends before.
func (c *court) judge(ctx context.Context, name, by string, look func() (finding, error)) {
	v := &verdict{name: name, by: by}
	c.verdicts = append(c.verdicts, v)
	c.running.Go(func() {
		c.places <- struct{}{}
		defer func() { <-c.places }()
		if v.err = ctx.Err(); v.err != nil {
			return
		}
		began := time.Now()
		v.finding, v.err = look()
		c.log.Printf("%6.1fs %s", time.Since(began).Seconds(), v)
	})
}

// close waits for all verdicts, prints how many are good, and returns why the others are not.
func (c *court) close(ctx context.Context) error {
	c.running.Wait()
	errs, passed := []error{ctx.Err()}, 0
	for _, v := range c.verdicts {
		switch {
		case v.err == nil:
			passed++
		case !errors.Is(v.err, ctx.Err()):
			errs = append(errs, fmt.Errorf("%s, %s: %w", v.name, v.by, v.err))
		}
	}
	c.log.Printf("%d of %d passed", passed, len(c.verdicts))
	return errors.Join(errs...)
}
