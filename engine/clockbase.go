package engine

import "time"

// clockBase anchors the monotonic clock of fences.
var clockBase = time.Now()
