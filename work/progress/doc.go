// Package progress tells how far a work has come: what its record says, and what follows from that, such as percents,
// throughput and the time that is left. It is pure.
//
// Buckets are the unit of what is certain. A bucket that is done stays done, and the items that it counted stay
// counted; one that is open may be given back, and begins anew then. So percents, items and rates count done buckets
// alone, and never go back while a run lasts.
package progress
