package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The groups of tasks.
const (
	mapGroup    = "map"    // pieces to count
	reduceGroup = "reduce" // partitions to sum up
	resultGroup = "result" // their sums
	wordGroups  = "words/" // and a partition: counts of its words
)

func wordGroup(partition int) string { return wordGroups + strconv.Itoa(partition) }

// partsAtOnce is the number of counts that one update sums up.
const partsAtOnce = 200

// work maps and reduces until ctx ends. It waits for what comes next only if there is neither.
func work(ctx context.Context, s *store, dir string) error {
	kinds := []struct {
		group string
		wait  time.Duration
		do    func(context.Context, *store, string, *task) error
	}{{mapGroup, 0, mapPiece}, {reduceGroup, 0, reduce}, {mapGroup, waits, mapPiece}}
	for ctx.Err() == nil {
		for _, kind := range kinds {
			t, err := s.claim(ctx, kind.group, kind.wait)
			if err == nil && t != nil {
				err = kind.do(ctx, s, dir, t)
			}
			if err != nil && !errors.Is(err, errConflict) { // of another's task there is nothing left to do
				return err
			}
			if t != nil {
				break
			}
		}
	}
	return nil
}

// mapPiece counts the words of a piece. One update adds the counts and deletes the task.
func mapPiece(ctx context.Context, s *store, dir string, t *task) error {
	p, err := parsePiece(*t.Data)
	if err != nil {
		return err
	}
	text, err := p.read(dir)
	if err != nil {
		return err
	}
	counts := map[string]int{}
	count(text, counts)
	var parts [partitions]map[string]int
	for word, n := range counts {
		at := &parts[partitionOf(word)]
		if *at == nil {
			*at = map[string]int{}
		}
		(*at)[word] = n
	}
	u := update{Deletes: []int64{t.ID}}
	for i, part := range parts {
		if part == nil {
			continue
		}
		data, err := dataOf(part)
		if err != nil {
			return err
		}
		u.Adds = append(u.Adds, task{Group: wordGroup(i), Data: data})
	}
	_, err = s.update(ctx, u)
	return err
}

// reduce sums up a partition. The claim of its task is the lock of its counts. Each update deletes the counts that were
// summed up and adds their sum: to the others, and the claim goes on, or in the end as the result.
func reduce(ctx context.Context, s *store, _ string, t *task) error {
	partition, err := strconv.Atoi(*t.Data)
	if err != nil {
		return fmt.Errorf("task of %s: %w", reduceGroup, err)
	}
	for id := t.ID; ; {
		parts, err := s.list(ctx, wordGroup(partition), partsAtOnce+1)
		if err != nil {
			return err
		}
		last := len(parts) <= partsAtOnce
		sum := map[string]int{}
		var u update
		for _, part := range parts[:min(len(parts), partsAtOnce)] {
			if err := addTo(sum, *part.Data); err != nil {
				return err
			}
			u.Deletes = append(u.Deletes, part.ID)
		}
		data, err := dataOf(sum)
		if err != nil {
			return err
		}
		if last {
			u.Deletes = append(u.Deletes, id)
			u.Adds = []task{{Group: resultGroup, Data: data}}
			_, err = s.update(ctx, u)
			return err
		}
		u.Adds = []task{{Group: wordGroup(partition), Data: data}}
		u.Updates = []task{{ID: id, Keep: true, Timespec: -holds.Milliseconds()}}
		made, err := s.update(ctx, u)
		if err != nil {
			return err
		}
		id = made[1].ID
	}
}

// dataOf is the data of a task of counts.
func dataOf(counts map[string]int) (*string, error) {
	text, err := json.Marshal(counts)
	data := string(text)
	return &data, err
}

// addTo adds the counts of a task.
func addTo(sum map[string]int, data string) error {
	var part map[string]int
	if err := json.Unmarshal([]byte(data), &part); err != nil {
		return fmt.Errorf("counts: %w", err)
	}
	for word, n := range part {
		sum[word] += n
	}
	return nil
}
