package trend_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api/operations"
	"taskledger/api/ui/trend"
	"taskledger/engine"
	"taskledger/meter"
)

var began = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// shard returns the report of an owner that has counted so many attempts that succeeded, each of which took so long.
func shard(number int, epoch, succeeded int64, took time.Duration) engine.ShardInfo {
	f := meter.Figures{Behavior: "noop"}
	f.Counts[meter.AttemptsSucceeded] = succeeded
	for range succeeded {
		f.Times[meter.Duration].Add(took.Milliseconds())
	}
	return engine.ShardInfo{
		Shard:   number,
		Epoch:   epoch,
		Began:   uint64(epoch),
		Figures: []meter.Figures{f},
	}
}

func silent(number int) engine.ShardInfo {
	return engine.ShardInfo{Shard: number, Problem: "nobody answers"}
}

// succeeded returns what the points count.
func succeeded(points []trend.Point) (counts []int64) {
	for i := range points {
		total := points[i].Total()
		counts = append(counts, total.Counts[meter.AttemptsSucceeded])
	}
	return counts
}

// add takes samples ten seconds apart.
func add(t *trend.Trend, samples ...[]engine.ShardInfo) {
	for i, s := range samples {
		t.Add(began.Add(time.Duration(i)*trend.Every), s)
	}
}

func TestTrend_CountsTheDifferencesOfSamples(t *testing.T) {
	var is trend.Trend
	add(&is,
		[]engine.ShardInfo{shard(0, 1, 100, time.Second), shard(1, 1, 7, time.Second)},
		[]engine.ShardInfo{shard(0, 1, 130, time.Second), shard(1, 1, 7, time.Second)},
		[]engine.ShardInfo{shard(0, 1, 130, time.Second), shard(1, 1, 9, time.Second)},
	)
	points := is.Points()
	if got := succeeded(points); !slices.Equal(got, []int64{30, 2}) {
		t.Errorf("counted %v", got)
	}
	sum, of := trend.Sum(points)
	if len(sum) != 1 || sum[0].Counts[meter.AttemptsSucceeded] != 32 || sum[0].Times[meter.Duration].N() != 32 || of != 20*time.Second {
		t.Errorf("%+v of %s", sum, of)
	}
	if q := sum[0].Times[meter.Duration].Quantile(0.5); q < 300*time.Millisecond || q > time.Second {
		t.Errorf("the median is %s", q)
	}
}

// Another owner counts from when it took the shard over: its figures came after the sample before.
func TestTrend_TakesTheFiguresOfANewOwnerAsTheyAre(t *testing.T) {
	var is trend.Trend
	add(&is,
		[]engine.ShardInfo{shard(0, 1, 100, time.Second)},
		[]engine.ShardInfo{shard(0, 2, 3, time.Second)},
		[]engine.ShardInfo{shard(0, 2, 103, time.Second)},
		[]engine.ShardInfo{shard(0, 3, 104, time.Second)},
	)
	if got := succeeded(is.Points()); !slices.Equal(got, []int64{3, 100, 104}) {
		t.Errorf("counted %v", got)
	}
}

// What a shard did while nobody answered is no peak of the ten seconds in which it is heard again.
func TestTrend_LeavesAShardOutUntilItHasAnsweredTwice(t *testing.T) {
	var is trend.Trend
	add(&is,
		[]engine.ShardInfo{shard(0, 1, 10, time.Second), shard(1, 1, 10, time.Second)},
		[]engine.ShardInfo{shard(0, 1, 11, time.Second), silent(1)},
		[]engine.ShardInfo{shard(0, 1, 12, time.Second), shard(1, 1, 900, time.Second)},
		[]engine.ShardInfo{shard(0, 1, 13, time.Second), shard(1, 1, 905, time.Second)},
	)
	points := is.Points()
	if got := succeeded(points); !slices.Equal(got, []int64{1, 1, 6}) {
		t.Errorf("counted %v", got)
	}
	if !slices.Equal(points[0].Missing, []int{1}) || !slices.Equal(points[1].Missing, []int{1}) || points[2].Missing != nil {
		t.Errorf("missing are %v, %v and %v", points[0].Missing, points[1].Missing, points[2].Missing)
	}
	if got := trend.LeftOut(points); !slices.Equal(got, []int{1}) {
		t.Errorf("left out are %v", got)
	}
}

func TestTrend_SaysWhenNobodyCouldBeAsked(t *testing.T) {
	var is trend.Trend
	one := []engine.ShardInfo{shard(0, 1, 10, time.Second)}
	add(&is, one, nil, one, one)
	points := is.Points()
	if len(points) != 3 || !points[0].Unknown || points[1].Unknown || points[2].Unknown || points[2].Missing != nil {
		t.Errorf("%+v", points)
	}
	if _, of := trend.Sum(points); of != 2*trend.Every {
		t.Errorf("the sum is of %s", of)
	}
}

func TestTrend_KeepsAQuarterOfAnHour(t *testing.T) {
	var is trend.Trend
	for i := range 1000 {
		is.Add(began.Add(time.Duration(i)*trend.Every), []engine.ShardInfo{shard(0, 1, int64(i), time.Millisecond)})
	}
	points := is.Points()
	if n := len(points); n != int(trend.Window/trend.Every) {
		t.Errorf("%d points are kept", n)
	}
	if of := points[len(points)-1].To.Sub(points[0].From); of != trend.Window {
		t.Errorf("they are of %s", of)
	}
	is.Add(began, []engine.ShardInfo{shard(0, 1, 2000, time.Millisecond)})
	if got := is.Points(); len(got) != len(points) {
		t.Errorf("a clock that was set back makes a point: %+v", got[len(got)-1])
	}
}

func TestDraw_BreaksCurvesWhereNothingIsKnown(t *testing.T) {
	var is trend.Trend
	one := func(n int64) []engine.ShardInfo { return []engine.ShardInfo{shard(0, 1, n, time.Second)} }
	add(&is, one(0), one(30), nil, one(40), one(60))
	c := trend.Draw(is.Points(), trend.Curve{Name: "rate", Of: func(p *trend.Point) (float64, bool) {
		total := p.Total()
		return float64(total.Counts[meter.AttemptsSucceeded]) / p.To.Sub(p.From).Seconds(), !p.Unknown
	}})
	if len(c.Lines) != 1 || c.Top != 5 || c.Lines[0].Most != 3 || c.Lines[0].Last != 2 || !c.Lines[0].Known {
		t.Fatalf("%+v", c)
	}
	parts := c.Lines[0].Parts
	if len(parts) != 2 || !strings.HasSuffix(parts[1], "900.0,60.0") || !strings.HasSuffix(parts[0], ",40.0") {
		t.Errorf("%q", parts)
	}
	if c := trend.Draw(nil); c.Lines != nil {
		t.Errorf("of nothing: %+v", c)
	}
}

// observer answers for its one shard, unless it fails.
type observer struct {
	operations.Observer
	asked atomic.Int64
	fails atomic.Bool
}

func (o *observer) Shards(context.Context) ([]engine.ShardInfo, error) {
	n := o.asked.Add(1)
	if o.fails.Load() {
		return nil, errors.New("the cluster is away")
	}
	return []engine.ShardInfo{shard(0, 1, n*n, time.Second)}, nil
}

func TestSampler_AsksEveryTenSecondsUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o observer
		var is trend.Trend
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- (&trend.Sampler{Observer: &o, Into: &is}).Run(ctx) }()
		time.Sleep(25 * time.Second)
		if got := succeeded(is.Points()); !slices.Equal(got, []int64{3, 5}) {
			t.Errorf("counted %v", got)
		}
		o.fails.Store(true)
		time.Sleep(10 * time.Second)
		if points := is.Points(); len(points) != 3 || !points[2].Unknown {
			t.Errorf("without an answer: %+v", points)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// hanging never answers.
type hanging struct{ operations.Observer }

func (hanging) Shards(ctx context.Context) ([]engine.ShardInfo, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestSampler_GivesUpAClusterThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var is trend.Trend
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- (&trend.Sampler{Observer: hanging{}, Into: &is}).Run(ctx) }()
		time.Sleep(35 * time.Second)
		if points := is.Points(); len(points) < 2 || !points[0].Unknown {
			t.Errorf("%+v", points)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
