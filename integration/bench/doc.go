// Package bench measures the whole: tasks, lists, stores, schedules, works, the HTTP API and the dashboard, on nodes
// with etcd and NATS that sync what they acknowledge. The servers of package testcluster do not, and are for tests.
//
//	go test ./integration/bench -run '^$' -bench Utilization -count 6
//
// A measurement is one iteration. Each compares what it measures with a baseline, in windows of one run that take
// turns: compare ratios, since the speed of a shared machine changes from minute to minute. benchstat reads their names
// and units.
//
// Without more said a measurement is short, and small. With PROOF=1 in the environment it is as long and as large as
// its bounds want it, and fails where a figure breaks one; -lasts gives all of them another length.
package bench
