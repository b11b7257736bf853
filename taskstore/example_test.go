package taskstore_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"taskledger/engine/embedded"
	"taskledger/taskstore"
)

const text = `a mapper is given a line of text
the mappers split a line to find each word in it
for each word a pair of key with count is added
pairs of one key are in the same group
a reducer claims a group then sums the counts
mappers like reducers keep their claims in time
to finish is to delete plus add in one update
the late ones lose their items also the results of their work
the sum of a word goes to the output
mappers end before the reducers start
every key has a sum
their order is that of size`

// mapLine counts the words of a line: in one update, each becomes an item of its group, and the line is deleted.
func mapLine(_ context.Context, line *taskstore.Item) (*taskstore.Update, error) {
	counts := map[string]int{}
	for _, word := range strings.Fields(string(line.Data)) {
		counts[word]++
	}
	var u taskstore.Update
	for word, n := range counts {
		u.Adds = append(u.Adds, taskstore.Add{Group: "word " + word, Data: []byte(strconv.Itoa(n))})
	}
	return &u, nil
}

// reduce sums what is counted of a word. Who has claimed the word has its counts, which nobody else looks at.
func reduce(s *taskstore.Store) taskstore.Handler {
	return func(ctx context.Context, word *taskstore.Item) (*taskstore.Update, error) {
		var u taskstore.Update
		sum := 0
		for it, err := range s.Linear().Group(ctx, taskstore.Page{Group: "word " + string(word.Data)}) {
			if err != nil {
				return nil, err
			}
			n, err := strconv.Atoi(string(it.Data))
			if err != nil {
				return nil, err
			}
			sum += n
			u.Deletes = append(u.Deletes, it.ID)
		}
		u.Adds = []taskstore.Add{{Group: "output", Data: fmt.Appendf(nil, "%04d %s", sum, word.Data)}}
		return &u, nil
	}
}

// work runs three workers until nothing is left in a group.
func work(ctx context.Context, s *taskstore.Store, group string, h taskstore.Handler) error {
	running, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range 3 {
		w, err := taskstore.NewWorker(taskstore.WorkerConfig{Store: s, Group: group, Handler: h})
		if err != nil {
			return err
		}
		all.Go(func() {
			if err := w.Run(running); err != nil {
				log.Print(err)
			}
		})
	}
	for left := true; left; time.Sleep(10 * time.Millisecond) {
		left = false
		for _, err := range s.Linear().Group(ctx, taskstore.Page{Group: group, Owned: true, Limit: 1}) {
			if left = true; err != nil {
				return err
			}
		}
	}
	return nil
}

// mapReduce counts the words of the text.
func mapReduce(ctx context.Context, s *taskstore.Store) (map[string]int, error) {
	var lines, words taskstore.Update
	for line := range strings.Lines(text) {
		lines.Adds = append(lines.Adds, taskstore.Add{Group: "map", Data: []byte(line)})
	}
	if _, err := s.Update(ctx, &lines); err != nil {
		return nil, err
	}
	if err := work(ctx, s, "map", mapLine); err != nil {
		return nil, err
	}
	groups, err := s.Linear().Groups(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if word, is := strings.CutPrefix(g, "word "); is {
			words.Adds = append(words.Adds, taskstore.Add{Group: "reduce", Data: []byte(word)})
		}
	}
	if _, err := s.Update(ctx, &words); err != nil {
		return nil, err
	}
	if err := work(ctx, s, "reduce", reduce(s)); err != nil {
		return nil, err
	}
	sums := map[string]int{}
	for it, err := range s.Linear().Group(ctx, taskstore.Page{Group: "output"}) {
		if err != nil {
			return nil, err
		}
		sums[string(it.Data)]++
	}
	return sums, nil
}

// Words are counted by workers that may die at any moment: each step is one update.
func Example_mapReduce() {
	ctx := context.Background()
	node, err := embedded.Start(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	s, err := taskstore.Open(node, "words", taskstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sums, err := mapReduce(ctx, s)
	if err != nil {
		log.Fatal(err)
	}
	sorted := slices.Sorted(maps.Keys(sums))
	slices.Reverse(sorted)
	for _, line := range sorted[:10] {
		fmt.Println(line)
	}
	// Output:
	// 0008 the
	// 0008 a
	// 0006 of
	// 0004 to
	// 0004 their
	// 0004 is
	// 0004 in
	// 0003 word
	// 0003 mappers
	// 0003 key
}
