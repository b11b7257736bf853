package builtin_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/task"
)

// clock holds the time of a Getter.
type clock struct {
	t       *testing.T
	set     int  // timers
	running bool // one of them
	over    int  // the time of this timer, and of each later one, is over; 0 = of none
}

func (c *clock) after(d time.Duration, f func()) (stop func() bool) {
	if c.set++; c.running || d != 30*time.Second {
		c.t.Errorf("timer %d is of %s, and another one runs: %t", c.set, d, c.running)
	}
	c.running = true
	if c.over > 0 && c.set >= c.over {
		go f()
	}
	return func() bool {
		c.running = false
		return true
	}
}

// getting returns a behavior that gets a URL by the time of a clock.
func getting(c *clock) task.Behavior {
	g := builtin.NewGetter(builtin.HTTPOptions{AllowPrivate: true})
	g.SetAfter(c.after)
	return behaviors.Define[string, int]("get", nil).Bind(func(ctx context.Context, url string) (int, error) {
		res, err := g.Get(ctx, url, nil)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		all, err := io.ReadAll(res.Body)
		return len(all), err
	})
}

func TestGetter_ASilentServerIsATimeoutThatIsRetriedAndNamesTheHostAlone(t *testing.T) {
	for where, c := range map[string]struct {
		over int
		what string
	}{
		"/header": {1, "header of an answer"},
		"/body":   {3, "byte of the answer"},
		"/500":    {3, "byte of the answer"},
	} {
		at := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/500" {
				w.WriteHeader(http.StatusInternalServerError)
			}
			if r.URL.Path != "/header" {
				_, _ = io.WriteString(w, "text")
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		})
		host := strings.TrimPrefix(at, "http://")
		get := getting(&clock{t: t, over: c.over})
		o := get.Run(t.Context(), testkit.Attempt(t, "http://user:secret@"+host+where+"?token=secret"))
		e := testkit.WantFailure(t, o, events.CodeTimeout, false)
		if !strings.HasSuffix(e.Message, host+": no "+c.what+" came for 30s") || strings.Contains(e.Message, "secret") {
			t.Errorf("%s: %q", where, e.Message)
		}
	}
}

// Neither the whole nor what the caller does between two reads counts.
func TestGetter_ServersHaveTheWholeTimeForEachByte(t *testing.T) {
	const parts = 20
	goOn := make(chan struct{})
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range parts {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			<-goOn
		}
	})
	g, c := builtin.NewGetter(builtin.HTTPOptions{AllowPrivate: true}), &clock{t: t}
	g.SetAfter(c.after)
	res, err := g.Get(t.Context(), at, nil)
	must(t, err)
	defer res.Body.Close()
	for range parts {
		if n, err := res.Body.Read(make([]byte, 100)); n != 1 || err != nil || c.running {
			t.Fatalf("%d bytes, %v; a timer runs: %t", n, err, c.running)
		}
		goOn <- struct{}{}
	}
	if c.set != parts+1 {
		t.Errorf("%d timers, want one for the header and %d for the body", c.set, parts)
	}
}
