// Package builtin has behaviors that many programs need. A node runs them beside its own ones:
//
//	engine.NodeConfig{Behaviors: append(builtin.Behaviors(builtin.Options{}), resize.Bind(resizeImage))}
//
// Every process of a cluster can submit them, with Go types or as JSON:
//
//   - [Noop], "noop": does nothing. It has no parameters; an object is recorded and ignored.
//   - [Sleep], "sleep": holds a slot for a time, as {"duration":"2s"} says.
//   - [HTTP], "http": makes a request, such as {"url":"https://example.com/hook","method":"POST","headers":{"X-A":"b"},
//     "body":"hello","expect_status":[200,202],"timeout":"10s"}. All but url may be left out.
//   - [Exec], "exec": runs a program that the operator of the node allows, such as
//     {"program":"report","args":["2026-11"],"env":{"LANG":"C"},"dir":"/tmp","timeout":"5s"}. All but program may be
//     left out.
//   - [Checksum], "checksum": reads a file below a directory of the node and returns its SHA-256, as
//     {"path":"data/report.csv"} says.
//
// A duration is a text such as "1m30s". Except for noop, a submit with fields other than these is refused.
//
// The options of a node hold for that node alone, and a task runs on any node that has its behavior: give all of them
// the same options, since a refusal is final.
package builtin
