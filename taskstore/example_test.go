package taskstore_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/engine/embedded"
	"taskledger/taskstore"
)

const text = `a store keeps the lines of a text in one group
mappers claim text and count every word of it
the count is a task of its own and names the word
no two mappers hold the same line in their hands
if mappers die the claims they held run out
what is a key for some is but a word to others
a reducer owns some key and sums up the counts
their sum is sent to the store in one update
it deletes parts of their work when done
so a late reducer fails in deleting their parts
who waits for lines wakes up to go on
the rest of a key of ours has to rest`

const wordPrefix = "reduceword "

// The words of a text are counted: three mappers take a line each, and three reducers a word each. A handler that dies
// leaves its item to the next; one that is late changes nothing. With a client of package taskstore/client in place of
// the node, the workers may be in as many processes.
func Example_mapReduce() {
	node := must(embedded.Start(context.Background(), ""))
	defer node.Close()
	s := must(taskstore.Open(node.Stores(), "words", taskstore.Options{}))
	ctx, stop := context.WithCancel(context.Background())
	var running errgroup.Group
	for group, handle := range map[string]taskstore.Handler{"map": mapLine, "reduce": reduceWord(s)} {
		w := must(taskstore.NewWorker(s, group, handle, taskstore.WorkerOptions{Slots: 3, Duration: 10 * time.Second}))
		running.Go(func() error { return w.Run(ctx) })
	}

	var lines taskstore.Update
	for line := range strings.Lines(text) {
		lines.Adds = append(lines.Adds, taskstore.Add{Group: "map", Data: []byte(line)})
	}
	must(s.Update(ctx, lines))
	awaitNone(ctx, s, "map")

	var words taskstore.Update
	for _, group := range must(s.Linear().Groups(ctx)) {
		if word, is := strings.CutPrefix(group, wordPrefix); is {
			words.Adds = append(words.Adds, taskstore.Add{Group: "reduce", Data: []byte(word)})
		}
	}
	must(s.Update(ctx, words))
	awaitNone(ctx, s, "reduce")

	var output []string
	for it, err := range s.Linear().Group(ctx, "output", taskstore.List{}) {
		if err != nil {
			panic(err)
		}
		output = append(output, string(it.Data))
	}
	slices.Sort(output)
	slices.Reverse(output)
	for _, line := range output[:10] {
		count, word, _ := strings.Cut(line, " ")
		fmt.Println(word, strings.TrimLeft(count, "0"))
	}
	stop()
	if err := running.Wait(); err != nil {
		panic(err)
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

// mapLine adds the count of each word of a line to the group of the word. The line goes away with that.
func mapLine(_ context.Context, line *taskstore.Item) (u taskstore.Update, err error) {
	counts := map[string]int{}
	for word := range strings.FieldsSeq(string(line.Data)) {
		counts[word]++
	}
	for word, n := range counts {
		u.Adds = append(u.Adds, taskstore.Add{Group: wordPrefix + word, Data: strconv.AppendInt(nil, int64(n), 10)})
	}
	return u, nil
}

// reduceWord sums up the counts of a word and puts the sum in their place. Nobody claims the counts: who holds the word
// holds them.
func reduceWord(s *taskstore.Store) taskstore.Handler {
	return func(ctx context.Context, word *taskstore.Item) (u taskstore.Update, err error) {
		sum := 0
		for part, err := range s.Group(ctx, wordPrefix+string(word.Data), taskstore.List{Owned: true}) {
			if err != nil {
				return u, err
			}
			n, err := strconv.Atoi(string(part.Data))
			if err != nil {
				return u, err
			}
			sum += n
			u.Deletes = append(u.Deletes, part.ID)
		}
		u.Adds = []taskstore.Add{{Group: "output", Data: fmt.Appendf(nil, "%04d %s", sum, word.Data)}}
		return u, nil
	}
}

// awaitNone waits until a group has no items. Whether any work is left is asked with Linear.
func awaitNone(ctx context.Context, s *taskstore.Store, group string) {
	for slices.Contains(must(s.Linear().Groups(ctx)), group) {
		time.Sleep(10 * time.Millisecond)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
