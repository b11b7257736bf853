package trend

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The size of a chart in its own units: an SVG is as large as its page lets it be.
const (
	Width  = 900
	Height = 100
)

// Curve is a number that each point has, or has not.
type Curve struct {
	Name string
	Of   func(p *Point) (value float64, known bool)
}

// Chart holds curves over the same time.
type Chart struct {
	From, To time.Time
	Top      float64 // the value at the upper edge
	Lines    []Line
}

// Line is a curve of a chart.
type Line struct {
	Name string
	// Parts are the points of polylines in the units of the chart. Between two of them nothing is known.
	Parts []string
	Last  float64 // the value of the newest point that has one
	Most  float64
	Known bool // a point has a value
}

// Draw lays out curves of points over Window, which ends with the newest point.
func Draw(points []Point, curves ...Curve) (c Chart) {
	if len(points) == 0 {
		return c
	}
	c.To = points[len(points)-1].To
	c.From = c.To.Add(-Window)
	for _, curve := range curves {
		line := Line{Name: curve.Name}
		for i := range points {
			if is, known := curve.Of(&points[i]); known {
				line.Last, line.Most, line.Known = is, max(line.Most, is), true
			}
		}
		c.Top = max(c.Top, line.Most)
		c.Lines = append(c.Lines, line)
	}
	c.Top = above(c.Top)
	for i, curve := range curves {
		c.Lines[i].Parts = c.parts(points, curve)
	}
	return c
}

// parts returns a curve as steps, each as long as its point.
func (c *Chart) parts(points []Point, curve Curve) (parts []string) {
	var part strings.Builder
	end := func() {
		if part.Len() > 0 {
			parts = append(parts, strings.TrimSpace(part.String()))
			part.Reset()
		}
	}
	for i := range points {
		p := &points[i]
		is, known := curve.Of(p)
		if !known {
			end()
			continue
		}
		y := Height - is/c.Top*Height
		fmt.Fprintf(&part, "%.1f,%.1f %.1f,%.1f ", c.x(p.From), y, c.x(p.To), y)
	}
	end()
	return parts
}

// x returns the place of a moment.
func (c *Chart) x(at time.Time) float64 {
	return max(0, float64(at.Sub(c.From))/float64(Window)*Width)
}

// above returns a round number that is not below another one: 1, 2 or 5 of its size; 1 for 0.
func above(most float64) float64 {
	if most <= 0 {
		return 1
	}
	size := math.Pow(10, math.Floor(math.Log10(most)))
	for _, of := range []float64{1, 2, 5} {
		if top := of * size; top >= most {
			return top
		}
	}
	return 10 * size
}
