package cluster

// Need names a condition that a whole history must meet for a fault to be possible.
type Need int

const (
	NeedMembers   Need = 1 << iota // of etcd: three
	NeedQuota                      // members with a small quota
	NeedWrites                     // nodes whose writes can be made to fail
	NeedTight                      // a NATS that drops slow clients soon
	NeedAbsent                     // a NATS that never starts
	NeedNATS                       // one that does
	NeedProc                       // a /proc that tells the state of processes
	NeedNamespace                  // nodes in network namespaces of their own
	NeedLimits                     // nodes that make few attempts of a behavior at once
	NeedSmall                      // journals that do not grow, since nothing is archived for minutes
)

// Has reports whether some of what is asked for is needed.
func (n Need) Has(some Need) bool { return n&some != 0 }

// nats says what NATS a run has.
func (n Need) nats() NATSMode {
	switch {
	case n.Has(NeedAbsent):
		return NATSAbsent
	case n.Has(NeedTight):
		return NATSTight
	}
	return NATSOn
}
