package api

import "fmt"

// Limits bounds the requests of one principal. The zero value of a field selects its default.
type Limits struct {
	PerSecond float64 // requests of a principal in a second, on average; 0 = 2,000
	Burst     int     // requests of a principal at one moment; 0 = 4,000
	InFlight  int     // requests of a principal that are under way or wait; 0 = 2,000
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
