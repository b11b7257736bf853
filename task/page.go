package task

// Page is a part of a list.
type Page struct {
	Tasks   []Task    // newest first
	Missing []Missing // shards whose tasks are not in it
	Cursor  string    // asks for the next page; "" = there is none
	Through bool      // what is missing aside, there is none
	Nexts   []uint64  // by shard, the number of its next entry when it was first asked for this page; 0 = not heard
	Cluster string    // its id; "" = nobody has told it
}
