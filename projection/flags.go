package projection

// Flags holds what is true or false of a task, as snapshots store it in a set of bits.
type Flags struct {
	Suspended bool
	Cancelled bool // RUNNING, and nothing shall start after this attempt
	Rerun     bool // parameters were merged while an attempt ran: a further run, with them, follows this one
	RunEnded  bool // Failures and Lost belong to a run that is over

	ParamsElided bool // the task has finished once since it got them: Params is only in the journal, at ParamsAt
	ResultElided bool // Result exceeds MaxKeptResult: it is only in the journal, at Outcome
	ErrorElided  bool // Error exceeds MaxKeptError: the whole of it is only in the journal, at Outcome
}

// stored returns the flags in stored order: the first is the lowest bit.
func (f *Flags) stored() [7]*bool {
	return [...]*bool{
		&f.Suspended,
		&f.Cancelled,
		&f.Rerun,
		&f.RunEnded,
		&f.ParamsElided,
		&f.ResultElided,
		&f.ErrorElided,
	}
}
