package api

import "fmt"

// Limits bound what one caller may ask for. The zero value of each selects its default.
type Limits struct {
	PerSecond float64 // requests of a principal, on average. Default 2,000
	Burst     int     // at once. Default 4,000
	InFlight  int     // requests of a principal under way, waiting ones among them. Default 2,000
}

func (l Limits) complete() (Limits, error) {
	if l.PerSecond < 0 || l.Burst < 0 || l.InFlight < 0 {
		return l, fmt.Errorf("limits: %+v: below 0", l)
	}
	if l.PerSecond == 0 {
		l.PerSecond = 2000
	}
	if l.Burst == 0 {
		l.Burst = 4000
	}
	if l.InFlight == 0 {
		l.InFlight = 2000
	}
	return l, nil
}
