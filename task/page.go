package task

// Page is a part of a list.
type Page struct {
	Tasks   []Task    // newest first
	Missing []Missing // shards whose tasks are not in it
	Cursor  string    // asks for the next page; "" = there is none
	Through bool      // only shards in Missing may have more tasks: the next page is worth asking for once they answer
	Nexts   []uint64  // by shard, the number of the entry that it was to write next when it was first asked; 0 = no answer
	Cluster string    // id of the cluster; "" = not known
}
