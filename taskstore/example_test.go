package taskstore_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"taskledger/engine/embedded"
	"taskledger/item"
	"taskledger/taskstore"
)

// story is what the words of are counted in.
const story = `a mapper takes a line of the text
and counts each word in it
mappers add the counts to a group of each word
the group is a key of the readers
a reducer is the owner of a key
mappers delete their line in the same step
to be late is to lose their work
reducers sum a key in their group
and write the sum of their word
the output is in order
mappers wait for a task
reducers list parts of groups to add`

// Words are counted by mappers and reducers that may die at any moment: whatever each of them does, it does in one update with the deletion of
// its task.
func Example_mapReduce() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	node, err := embedded.Start(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	words, err := taskstore.Open(node, "words", taskstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	lines := item.Update{}
	for line := range strings.Lines(story) {
		lines.Adds = append(lines.Adds, item.Add{Group: "map", Data: []byte(line)})
	}
	if _, err := words.Update(ctx, lines); err != nil {
		log.Fatal(err)
	}
	var workers sync.WaitGroup
	work := func(group string, handle taskstore.Handler) {
		for range 3 {
			own, err := taskstore.Open(node, "words", taskstore.Options{})
			if err != nil {
				log.Fatal(err)
			}
			w, err := taskstore.NewWorker(own, group, handle, taskstore.WorkerOptions{Duration: 10 * time.Second})
			if err != nil {
				log.Fatal(err)
			}
			workers.Go(func() { _ = w.Run(ctx) })
		}
	}
	defer workers.Wait()
	defer stop()

	// A mapper makes a task for each word of a line, in the group of the word.
	work("map", func(_ context.Context, line *item.Item) (item.Update, error) {
		counts := map[string]int{}
		for _, word := range strings.Fields(string(line.Data)) {
			counts[word]++
		}
		parts := item.Update{}
		for word, n := range counts {
			parts.Adds = append(parts.Adds, item.Add{Group: "word " + word, Data: []byte(strconv.Itoa(n))})
		}
		return parts, nil
	})
	awaitEmpty(ctx, words, "map")

	// A reducer has a word: nobody else adds the parts of it up.
	groups, err := words.Linear().Groups(ctx)
	if err != nil {
		log.Fatal(err)
	}
	reduce := item.Update{}
	for _, group := range groups {
		if word, is := strings.CutPrefix(group, "word "); is {
			reduce.Adds = append(reduce.Adds, item.Add{Group: "reduce", Data: []byte(word)})
		}
	}
	if _, err := words.Update(ctx, reduce); err != nil {
		log.Fatal(err)
	}
	work("reduce", func(ctx context.Context, of *item.Item) (item.Update, error) {
		sum, parts := 0, item.Update{}
		for part, err := range words.Linear().Group(ctx, "word "+string(of.Data), taskstore.List{Owned: true}) {
			if err != nil {
				return item.Update{}, err
			}
			n, err := strconv.Atoi(string(part.Data))
			if err != nil {
				return item.Update{}, err
			}
			sum += n
			parts.Deletes = append(parts.Deletes, part.ID)
		}
		parts.Adds = []item.Add{{Group: "output", Data: fmt.Appendf(nil, "%04d %s", sum, of.Data)}}
		return parts, nil
	})
	awaitEmpty(ctx, words, "reduce")

	var all []string
	for line, err := range words.Linear().Group(ctx, "output", taskstore.List{Owned: true}) {
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, string(line.Data))
	}
	slices.Sort(all)
	slices.Reverse(all)
	for _, line := range all[:10] {
		count, word, _ := strings.Cut(strings.TrimLeft(line, "0"), " ")
		fmt.Println(word, count)
	}
	// Output:
	// the 8
	// a 8
	// of 6
	// to 4
	// their 4
	// is 4
	// in 4
	// word 3
	// mappers 3
	// key 3
}

// awaitEmpty waits until no task of a group is left, also none that somebody has: it asks the owner, which proves that it is.
func awaitEmpty(ctx context.Context, s *taskstore.Store, group string) {
	for left := true; left; {
		left = false
		for _, err := range s.Linear().Group(ctx, group, taskstore.List{Owned: true, Limit: 1}) {
			if err != nil {
				log.Fatal(err)
			}
			left = true
		}
		time.Sleep(10 * time.Millisecond)
	}
}
