package engine_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// questionBytes bounds a question, and an answer.
const questionBytes = 64 << 10

// answering makes a node that answers questions.
func answering(all map[string]engine.Question) func(*cfg) {
	return func(c *cfg) { c.Questions = all }
}

// caller is a node or a client.
type caller interface{ Operations() engine.Operations }

// ask asks until an answer of any kind comes: on a busy machine it may take longer than a question waits.
func ask(t *testing.T, from caller, session, name, question string) (answer string, err error) {
	t.Helper()
	testcluster.Await(t, "an answer to "+name, func() bool {
		var got []byte
		got, err = from.Operations().Ask(within(t), session, name, []byte(question))
		answer = string(got)
		return !errors.Is(err, store.ErrUnavailable)
	})
	return answer, err
}

func TestAsk_IsAnsweredByTheNodeThatIsAskedAndByNoOther(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	var called [2]atomic.Int64
	who := func(i int, name string) func(*cfg) {
		return answering(map[string]engine.Question{"who": func(_ context.Context, q []byte) ([]byte, error) {
			called[i].Add(1)
			return []byte(name + " " + string(q)), nil
		}})
	}
	a, b := c.StartNode("a", who(0, "a")), c.StartNode("b", who(1, "b"))
	silent := c.StartNode("c", nil)
	client := c.StartClient("caller", nil)
	if got, err := ask(t, client, b.SessionID(), "who", "are you"); got != "b are you" || err != nil {
		t.Errorf("node b answers %q, %v", got, err)
	}
	if got, err := ask(t, a, b.SessionID(), "who", ""); got != "b " || err != nil {
		t.Errorf("asked by another node, node b answers %q, %v", got, err)
	}
	if n := called[0].Load(); n != 0 {
		t.Errorf("node a was called %d times for another one", n)
	}
	if got, err := ask(t, a, a.SessionID(), "who", "am I"); got != "a am I" || err != nil {
		t.Errorf("asked by itself, node a answers %q, %v", got, err)
	}
	for name, of := range map[string]string{"whom": a.SessionID(), "who": silent.SessionID()} {
		if _, err := ask(t, client, of, name, ""); !errors.Is(err, engine.ErrNoQuestion) {
			t.Errorf("question %s of %s: %v, want %v", name, of, err, engine.ErrNoQuestion)
		}
	}
	nobody := store.SessionID("a", "aaaaaaaaaa")
	if _, err := client.Operations().Ask(within(t), nobody, "who", nil); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("no such session: %v, want %v", err, store.ErrUnavailable)
	}
}

func TestAsk_TellsWhatBecameOfTheFunction(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	long := strings.Repeat("x", questionBytes)
	type f = func() ([]byte, error)
	functions := map[string]f{
		"fails":    func() ([]byte, error) { return nil, errors.New("no such table") },
		"panics":   func() ([]byte, error) { panic("boom") },
		"exits":    func() ([]byte, error) { runtime.Goexit(); return nil, nil },
		"garbles":  func() ([]byte, error) { return nil, errors.New("no \xff text") },
		"tells-me": func() ([]byte, error) { return nil, errors.New(long) },
		"is-long":  func() ([]byte, error) { return []byte(long), nil },
		"too-long": func() ([]byte, error) { return []byte(long + "x"), nil },
	}
	all := map[string]engine.Question{}
	for name, f := range functions {
		all[name] = func(context.Context, []byte) ([]byte, error) { return f() }
	}
	n := c.StartNode("a", answering(all))
	told := map[string]string{
		"fails":    "no such table",
		"panics":   "it panicked: boom",
		"exits":    "it ended its goroutine",
		"garbles":  "no  text",
		"tells-me": long[:1024],
	}
	for range 2 { // more than are answered at once: each gives its place back
		for name, want := range told {
			_, err := ask(t, n, n.SessionID(), name, "")
			if err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
				t.Errorf("%s: %.2000v, want %s", name, err, want)
			}
		}
	}
	if got, err := ask(t, n, n.SessionID(), "is-long", long); got != long || err != nil {
		t.Errorf("the longest question and answer: %d bytes, %v", len(got), err)
	}
	limited := func(what string, err error, field string) {
		t.Helper()
		if limit, is := errors.AsType[*task.LimitError](err); !is || limit.Field != field ||
			limit.Limit != questionBytes || limit.Got != questionBytes+1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := ask(t, n, n.SessionID(), "too-long", "")
	limited("an answer that is too long", err, "answer")
	_, err = ask(t, n, n.SessionID(), "is-long", long+"x")
	limited("a question that is too long", err, "question")
}

func TestAsk_MoreQuestionsThanANodeAnswersAtOnceAreRefused(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	var begun atomic.Int64
	let := make(chan struct{})
	n := c.StartNode("a", answering(map[string]engine.Question{
		"hangs": func(context.Context, []byte) ([]byte, error) { begun.Add(1); <-let; return nil, nil },
		"well":  func(context.Context, []byte) ([]byte, error) { return []byte("so"), nil },
	}))
	for range 4 {
		go func() { // until as many run as may: on a busy machine the bus may lose a question
			for begun.Load() < 4 {
				_, _ = n.Operations().Ask(within(t), n.SessionID(), "hangs", nil)
			}
		}()
	}
	testcluster.Await(t, "four calls", func() bool { return begun.Load() == 4 })
	_, err := ask(t, n, n.SessionID(), "well", "")
	if _, is := errors.AsType[*task.OverloadError](err); !is {
		t.Errorf("a fifth question: %v, want an overload", err)
	}
	close(let)
	testcluster.Await(t, "an answer once there is room", func() bool {
		got, err := n.Operations().Ask(within(t), n.SessionID(), "well", nil)
		return string(got) == "so" && err == nil
	})
}

func TestAsk_WithoutABusIsUnavailable(t *testing.T) {
	t.Parallel()
	well := answering(map[string]engine.Question{
		"well": func(context.Context, []byte) ([]byte, error) { return []byte("so"), nil },
	})
	none := testcluster.New(t, testcluster.Options{NoNATS: true}).StartNode("a", well)
	away := testcluster.New(t, testcluster.Options{}).StartNode("a", with(well, (&wire{cut: true}).through))
	for name, n := range map[string]*testcluster.Node{"none": none, "away": away} {
		ctx, cancel := context.WithTimeout(within(t), 10*time.Millisecond)
		got, err := n.Operations().Ask(ctx, n.SessionID(), "well", nil)
		cancel()
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "bus") || got != nil {
			t.Errorf("%s: answer %q, %v", name, got, err)
		}
	}
}

func TestQuestions_OfWrongNamesAreRefused(t *testing.T) {
	t.Parallel()
	fine := func(context.Context, []byte) ([]byte, error) { return nil, nil }
	for name, f := range map[string]engine.Question{
		"": fine, "Who": fine, "a.b": fine, "a b": fine, strings.Repeat("a", 49): fine, "nil": nil,
	} {
		c := engine.NodeConfig{Questions: map[string]engine.Question{name: f}}
		if invalid, is := errors.AsType[*store.InvalidError](c.Validate()); !is || invalid.Field != "questions" {
			t.Errorf("%q: %v", name, c.Validate())
		}
	}
	c := engine.NodeConfig{Questions: map[string]engine.Question{strings.Repeat("a-9", 16): fine}}
	if err := c.Validate(); err != nil {
		t.Errorf("the longest name: %v", err)
	}
	client := testcluster.New(t, testcluster.Options{NoNATS: true}).StartClient("caller", nil)
	for field, of := range map[string][2]string{"session": {"a.b", "who"}, "name": {store.SessionID("a", "aaaaaaaaaa"), "Who"}} {
		_, err := client.Operations().Ask(within(t), of[0], of[1], nil)
		if invalid, is := errors.AsType[*store.InvalidError](err); !is || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
