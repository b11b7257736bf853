package archtest_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"taskledger/internal/archtest"
)

const root = "../.."

// policy is the import graph: cmd/node -> embedded -> cluster -> engine -> projection -> events, with behaviors above
// the engine, and etcdstore and natsbus beside it: all three know the ports in store, and these not the engine. What is
// not allowed here is a decision to take, not a line to add. What nobody imports is not allowed either.
const policy = `
# package            | may import                                        | why
internal/wire        |                                                   | a leaf: it stands between hostile bytes and everything else
internal/message     | internal/wire github.com/vmihailenco/msgpack      | messages without code of their own, bounded before a library decodes them
internal/ring        |                                                   | a leaf: placement is arithmetic
internal/connection  | store etcdstore natsbus tasklog | store, bus and archive under one name: it knows no engine
internal/advertised  |                                                   | a leaf: the form of cluster.json
internal/version     |                                                   | a leaf: what the program was built of
internal/release     | internal/version                                  | builds the binaries of a release
internal/coded       |                                                   | a leaf: the code of an error
internal/archtest    |                                                   | a leaf: it reads source, nothing may lean on it
events               | internal/wire github.com/cespare/xxhash           | vocabulary and stored form only: pure, and read by everyone
item                 | events internal/wire                               | what a task store is asked and answers with: types and rules
cron                 |                                                   | a leaf: when something is to happen, pure
work/segmentation    |                                                   | a leaf: how a set is cut into buckets, pure
work                 | behaviors engine events internal/coded store task work/feed work/internal/prefix work/internal/threads work/progress work/segmentation work/workledger | defines works, submits them, and makes attempts of them, over a port
work/workledger      | task work/segmentation                            | the port by which attempts of works reach their records: a leaf
work/feed            |                                                   | the port of sources that push changes: a leaf
work/feed/inorder    |                                                   | a leaf: what was delivered at least once, in its order, pure
work/feed/memfeed    | work/feed work/feed/inorder                       | a source in memory, for tests
work/progress        | events task                                       | how far a work has come, and what follows from that: pure
work/internal/prefix |                                                   | a leaf: how far a stream of changes has been processed, pure
work/internal/order  |                                                   | a leaf: which item may be processed next, pure
work/internal/threads | work/internal/order                              | processes the items of an iterator side by side: it knows no engine
projection/name      |                                                 | a leaf: texts that many tasks share
projection/steady    | events internal/wire                              | time by the entries of a journal: pure
projection/extension | projection/steady events internal/wire          | what a front keeps in a shard, as the fold knows it, pure
projection/items     | projection/extension projection/record projection/steady internal/wire events item github.com/tidwall/btree | a record: the fold and the decisions of items, pure
internal/runid       | events github.com/google/uuid                     | stored names of runs: pure, and made in one place
projection/schedules | projection/extension events internal/runid internal/wire github.com/cespare/xxhash github.com/tidwall/btree | a record: the fold of schedules and their runs, and the decisions of ticks, pure
projection/works     | projection/extension events internal/wire github.com/tidwall/btree | the fold of the buckets of tasks, pure
projection/record    | events internal/wire                              | what records that are no tasks share: pure
projection/settings  | projection/extension projection/record task events internal/wire            | a record: its fold, its decisions and its stored form, pure
projection/journal   | projection/extension projection/record events internal/wire            | a record: its fold and its stored form, pure
projection           | projection/extension projection/name projection/steady projection/items projection/requests projection/settings projection/journal projection/schedules projection/works task events internal/wire | folds are pure: state must follow from the journal alone
projection/requests  | events internal/wire                              | what a task remembers of its requests: pure
projection/listing   | projection task events internal/wire                   | what a list of tasks is: pure, below those who ask and who answer
projection/taskview  | events projection store task                        | a task as callers get it: pure, beside the fold
store                | events                                            | the ports: what the engine needs of etcd and NATS, and nothing of either
ledger               | ledger/exportform ledger/internal/earlier ledger/internal/merged ledger/pagecursor task store events projection projection/journal projection/taskview  | the read side: it decides nothing and writes nothing
ledger/exportform    | events                                                | the form of exports, between hostile bytes and the read side
ledger/internal/earlier | events                                         | what earlier events of a task say: it reads nothing
ledger/internal/merged |                                                 | a leaf: several sequences as one
ledger/pagecursor    | store events internal/wire                        | the form of cursors, between hostile bytes and the read side
ledger/repair        | ledger store events                               | alone removes what is no entry
meter                |                                                   | a leaf: names of figures, and the port that takes them
meter/prommeter      | meter github.com/prometheus/client_golang         | what a node measures, for Prometheus
schedule             | cron events store task                            | what a schedule is: its definition, its ticks, and what is told of it
tasklog              | events internal/wire store                        | logs of tasks: a port, who writes one and who reads it; it knows no server
tasklog/memlog       | events tasklog                                    | logs for tests and simulations: it knows no server
tasklog/tasklogtest  | events store tasklog                              | holds any store of logs to the port, so it knows none
collections          | cron events schedule store task go.yaml.in/yaml | what is kept up to date, how and when: between hostile bytes and those who apply it
collections/apply    | collections events item schedule store task       | makes a cluster what a file says: it asks by interfaces of its own
collections/drivers  | behaviors behaviors/builtin collections           | runs collections: it links os/exec and net/http
collections/taskjson | events store task github.com/google/uuid          | a form of JSON and its ids: pure
task                 | events                                            | what the implementer of a behavior sees, and nothing that runs it
engine/internal/command | task store events projection projection/listing projection/requests projection/settings meter internal/message internal/wire | what is asked of a shard, and what it decides: pure
engine/internal/stores | engine/internal/command engine/internal/shard item meter task store events projection projection/items projection/steady internal/message internal/wire | the front of task stores: it asks by functions that it is given, and knows nothing of the engine
engine/internal/deadlines | engine/internal/command engine/internal/shard events projection | ends runs whose deadline has passed
engine/internal/pauses | engine/internal/command engine/internal/shard events projection projection/settings | what the owner of the settings does for them
engine/internal/schedules | engine/internal/command engine/internal/explanation engine/internal/shard engine/internal/tally schedule meter task store events projection projection/schedules internal/message internal/wire | the front of schedules: it asks by functions that it is given, and knows nothing of the engine
engine/internal/works | engine/internal/command engine/internal/explanation engine/internal/shard engine/internal/tally meter task store events projection projection/works work/progress work/segmentation work/workledger internal/message internal/wire | the front of works: it asks by functions that it is given, and knows nothing of the engine
engine/internal/commands | engine/internal/command engine/internal/schedules engine/internal/stores engine/internal/works | the table of all commands
engine/internal/paging | engine/internal/command events projection projection/listing projection/taskview store task | asks all shards, by a function that it is given
engine/internal/outcome | engine/internal/command events projection task internal/wire | how runs end, and the messages that tell it: pure
engine/internal/explanation | engine/internal/command events internal/message projection store task | why a task does not run: pure
engine/internal/futures | engine/internal/command engine/internal/notice engine/internal/outcome engine/internal/signal events projection store task | outcomes: it asks by a port of its own
engine/internal/sender | engine/internal/command engine/internal/liveness engine/internal/notice events internal/message store task golang.org/x/sync | commands to owners, and their answers: it knows no owner
engine/internal/liveness | store task                               | looks at the membership alone
engine/internal/shard | engine/internal/command engine/internal/explanation engine/internal/notice engine/internal/outcome engine/internal/sender engine/internal/signal engine/internal/slots engine/internal/tally events internal/message internal/wire ledger meter projection projection/listing store task | the owner of a shard: it knows its node by interfaces of its own
engine/internal/worker | engine/internal/command engine/internal/logwriters engine/internal/sender engine/internal/signal engine/internal/slots events store task tasklog | attempts and offers: it knows its node by interfaces of its own
engine/internal/logwriters | engine/internal/notice meter store tasklog golang.org/x/time | writes the logs of attempts: it knows nothing of the engine
engine/internal/logsweep | engine/internal/notice engine/internal/outcome engine/internal/shard events projection tasklog | removes the logs of tasks that are gone
engine/internal/signal |                                             | a leaf: it wakes a goroutine
engine/internal/command/commandtest | engine/internal/command engine/internal/commands engine/internal/schedules engine/internal/stores engine/internal/works internal/wire work/workledger item events task | every command in its largest form, for tests
engine/internal/notice | store events projection golang.org/x/time        | log lines: it knows nothing of the engine
engine/internal/tally | engine/internal/command events projection meter | what an owner has committed, counted: it does no I/O
engine/internal/taskids | events                                       | random ids: it knows nothing of the engine
engine/internal/slots | engine/internal/command events                 | counts: it starts nothing
engine               | work/progress work/workledger bulk item schedule engine/internal/schedules engine/internal/command engine/internal/explanation engine/internal/futures engine/internal/commands engine/internal/deadlines engine/internal/logsweep engine/internal/logwriters engine/internal/liveness engine/internal/notice engine/internal/outcome engine/internal/paging engine/internal/pauses engine/internal/sender engine/internal/shard engine/internal/signal engine/internal/slots engine/internal/stores engine/internal/taskids engine/internal/worker engine/internal/works task tasklog meter ledger ledger/repair store events projection projection/settings projection/taskview internal/message internal/wire internal/ring internal/version golang.org/x/sync | knows ports, never their implementations: a caller links no etcd, no NATS
bulk                 | events projection/listing store task internal/message internal/wire | asks a client that it is given, one task after the other: it sends nothing itself
store/storetest      | internal/testkit store events                             | holds any store to the ports, so it knows none
store/archivetest    | internal/testkit store events                             | holds any archive to the ports, so it knows none
store/memarchive     | store events                                      | an archive for tests and simulations: it knows no server
store/transfer       | ledger store events                               | copies one store into another: it knows none
store/membus         | store                                             | a bus of one process: it knows no server
filestore/journal    |                                                   | a leaf: the port of a store of one process
filestore/memjournal | filestore/journal                                 | a journal in memory
filestore/journaltest | filestore/journal                                | holds any journaler to the port, so it knows none
filestore/internal/disk |                                                | a leaf: files of one directory
filestore/internal/faultdisk | filestore/internal/disk                   | a disk that loses power, for tests
filestore/internal/frame |                                               | a leaf: between damaged bytes and everything else
filestore/filejournal | events filestore/journal filestore/internal/disk filestore/internal/frame | a journal in files: it knows no store
filestore/filearchive | events store filestore/internal/disk filestore/internal/frame | an archive in files
filestore/filelogs   | events store tasklog filestore/internal/disk filestore/internal/frame | logs of tasks in files
filestore            | events store filestore/journal filestore/filejournal | a store of one process: it knows no server and no client of one
behaviors            | schedule engine store task events internal/coded         | shared by callers and workers: light
behaviors/builtin    | behaviors task store events golang.org/x/sys              | what many programs do: it links os/exec and net/http
etcdstore            | store events internal/wire go.etcd.io/etcd/client go.etcd.io/etcd/api go.uber.org/zap google.golang.org/grpc | alone knows keys; zap and grpc come with the client
natsbus              | store tasklog events work/feed work/feed/inorder internal/wire github.com/nats-io/nats.go github.com/klauspost/compress | alone knows subjects; compresses what is archived
cluster              | internal/advertised internal/connection store tasklog engine etcdstore natsbus | one config for store, bus and archive: light enough for a caller
engine/embedded      | internal/advertised internal/connection engine task etcdstore natsbus cluster go.etcd.io/etcd go.uber.org/zap google.golang.org/grpc github.com/nats-io | alone runs servers in the process of a node
internal/measure     | internal/connection behaviors/builtin cluster engine engine/embedded etcdstore natsbus task go.etcd.io/etcd/client | nodes under a load, beside the raw client
engine/enginetest    | api/view engine/local events ledger task | a node for the tests of users: it links no server
engine/local         | engine store store/memarchive store/membus filestore filestore/filejournal filestore/filearchive filestore/filelogs filestore/journal filestore/memjournal task | a node without servers, in one process
api/doors            |                                                  | bounds connections of several listeners together
api/fieldtext        |                                                  | a leaf: the sentences by which the OpenAPI document describes fields
api                  | api/doors api/fieldtext api/measured api/operations api/problem api/shape api/token api/view bulk engine ledger ledger/exportform meter schedule store events task github.com/danielgtaylor/huma github.com/go-json-experiment/json golang.org/x/sync golang.org/x/time | the table of routes: alone serves requests that change something
api/apitest          | api/token                                            | the fixture of tests of fronts: a front under test is a handler
api/measured         | api/problem                                       | what an API tells of its requests: a port
api/figures          | api/doors api/measured github.com/prometheus/client_golang | tells Prometheus of requests: the API itself knows no Prometheus
api/operations       | work/progress schedule bulk engine events item ledger ledger/repair store task tasklog | what can be asked of a cluster: interfaces
api/remote           | api api/operations api/problem api/view bulk engine events ledger ledger/repair meter projection schedule store task tasklog taskstore/client work/progress | asks the HTTP API: what operations asks of a store
api/problem          | events schedule store task                                 | errors as HTTP tells them, both ways
api/shape            | api/problem store github.com/go-json-experiment/json | between hostile bytes and the routes: strict JSON
api/logs             | api api/operations api/problem api/token api/view events tasklog | the HTTP API of what tasks write: routes for the table of package api
api/works            | api api/operations api/problem api/token store task work/progress | the HTTP API of works: routes for the table of package api
api/schedules        | api api/operations api/problem api/token events schedule store | the HTTP API of schedules: routes for the table of package api
api/sync             | api api/operations api/problem api/token collections collections/taskjson events schedule store task tasklog | the HTTP API of collections: routes for the table of package api
api/stores           | api api/operations api/problem api/stores/form api/token item store task | the HTTP API of task stores: routes for the table of package api
api/ui               | api api/operations api/problem api/stores/form api/token api/view api/ui/jobs api/ui/sessions api/ui/timeline api/ui/trend engine events meter schedule task work/progress | the dashboard: pages that ask the API as a client of it does
api/ui/jobs          | api                                               | changes that outlive their pages: it knows no page
api/ui/trend         | api/operations engine meter                       | what a cluster has done lately: it knows no page
api/ui/sessions      | api/token                                         | who has logged in: it knows no page
api/ui/timeline      |                                                   | a leaf: lays out the life of a task
api/stores/form      | item store                                        | JSON forms of task stores: between hostile bytes and those who change items
taskstore            | item store task golang.org/x/sync                  | asks a backend that it is given: it sends nothing itself
taskstore/client     | api/problem api/stores/form events item store task taskstore | asks the HTTP API: it knows its forms, and nothing of the engine
api/token            | events                                            | a leaf: who may ask
api/view             | schedule task tasklog events ledger store | what is shown as JSON, wherever it is shown
cmd/node/...         | internal/connection internal/measure api/operations api/problem api/remote api/shape api/stores/form api/view cmd/node/... internal/version item meter ledger ledger/repair behaviors/builtin collections collections/apply collections/drivers bulk cluster engine schedule task store engine/embedded events etcdstore natsbus filestore filestore/filearchive filestore/filejournal filestore/filelogs store/transfer golang.org/x/sync github.com/spf13/cobra github.com/spf13/pflag github.com/spf13/viper go.yaml.in/yaml | wires everything; alone has a command line
cmd/node/internal/connect | api/remote cmd/node/internal/infiles filestore internal/advertised internal/connection store cluster engine/embedded etcdstore natsbus go.etcd.io/etcd/client | reaches a cluster as the flags say, and asks what may be done there
cmd/node/internal/infiles | internal/advertised engine events ledger store filestore filestore/filearchive filestore/filejournal filestore/filelogs store/membus | opens what a node stands on whose store is in files
cmd/node/internal/guard | golang.org/x/sys                        | ends the programs of a node that was killed: it knows nothing of tasks
cmd/node/internal/firstprocess | golang.org/x/sys                 | reaps what programs leave behind in a container: it knows nothing of tasks
cmd/node/internal/health | cluster internal/advertised store    | asks a node whether it is ready
cmd/node/internal/openfiles |                                           | shares out the files that the process may open
cmd/node/internal/httpd | internal/advertised api api/doors api/figures api/logs api/operations api/schedules api/stores api/sync api/token api/ui api/ui/trend api/works cmd/node/internal/flags cmd/node/internal/openfiles engine internal/version item github.com/spf13/pflag github.com/prometheus/client_golang | gives a node the HTTP API: alone listens for it
cmd/node/internal/team | cmd/node/internal/connect engine engine/embedded task | runs the nodes of a command that brings its behavior along
cmd/node/internal/mirror | cluster cmd/node/internal/connect cmd/node/internal/mirror/trees cmd/node/internal/output cmd/node/internal/team behaviors engine engine/embedded events store task work work/progress golang.org/x/sync | the processes of a mirror, and what they tell
cmd/node/internal/mirror/trees | behaviors store task work work/segmentation golang.org/x/sync | makes a directory equal to another one by a work: it knows no node
cmd/node/internal/tokencli | api/token cmd/node/internal/exitcode cmd/node/internal/flags cmd/node/internal/httpd cmd/node/internal/output events github.com/spf13/cobra | changes the file of tokens
cmd/node/internal/uicli | api/remote api/ui cluster cmd/node/internal/flags cmd/node/internal/output events internal/advertised store github.com/spf13/cobra | lets the user of a machine into the dashboard there
cmd/node/internal/suggest | api/operations cmd/node/internal/flags schedule task github.com/spf13/cobra github.com/spf13/pflag | names what may have been meant by a wrong word
cmd/node/internal/logcli | api/operations api/view cmd/node/internal/exitcode cmd/node/internal/flags cmd/node/internal/output events tasklog github.com/spf13/cobra | the command line of logs: it asks by functions that it is given
cmd/node/internal/workcli | api/operations cmd/node/internal/exitcode cmd/node/internal/flags cmd/node/internal/output events work/progress github.com/spf13/cobra | the command line of works: it asks by functions that it is given
cmd/node/internal/schedulecli | api/operations api/shape cmd/node/internal/exitcode cmd/node/internal/flags cmd/node/internal/input cmd/node/internal/output cron events schedule task github.com/spf13/cobra github.com/spf13/pflag | the command line of schedules: it asks by functions that it is given
cmd/node/internal/synccli | api/operations cmd/node/internal/exitcode cmd/node/internal/flags cmd/node/internal/input cmd/node/internal/logcli cmd/node/internal/output collections collections/apply collections/taskjson events schedule task tasklog golang.org/x/sync github.com/spf13/cobra | the command line of collections: it asks by functions that it is given
cmd/node/internal/syncfile | cmd/node/internal/exitcode cmd/node/internal/input collections collections/apply | keeps a cluster as the file of a node says: it asks by what it is given
cmd/node/internal/signing | golang.org/x/mod                      | signs checkpoints of the ledger; alone knows the form of notes
cmd/node/internal/certificates |                                      | how long certificates hold
cmd/node/internal/monitor | api/doors cmd/node/internal/certificates cmd/node/internal/openfiles meter meter/prommeter github.com/prometheus/client_golang | serves what a node measures; alone listens for metrics
examples/...         | behaviors engine/embedded engine/local | what a user would import
examples/service/... | behaviors cluster engine events task examples/service/... | a user's own API and worker
examples/updates     | behaviors engine engine/embedded natsbus task work work/feed github.com/nats-io/nats.go | a user's own source of changes
examples/completed   | github.com/nats-io/nats.go                        | a subscriber knows nothing of taskledger

# used by tests alone
internal/testkit     | events task internal/wire                        | what tests of many packages need: it starts nothing
taskstore/taskstoretest | internal/testkit item store task taskstore                    | holds any task store to its promises, so it knows none
taskstore/taskstoretest/model | events item task                       | a task store in memory, for tests: it knows no other
internal/testcluster | google.golang.org/grpc ledger store store/membus filestore filestore/filejournal task item engine events etcdstore natsbus internal/wire github.com/klauspost/compress go.etcd.io/etcd go.uber.org/zap github.com/nats-io | real servers
internal/modeletcd   | go.etcd.io/etcd/client go.etcd.io/etcd/api google.golang.org/grpc google.golang.org/protobuf | stands in for etcd, at the level of its messages
integration          | github.com/anishathalye/porcupine github.com/nats-io | black-box tests on real servers
integration/bench    | github.com/prometheus/client_golang golang.org/x/sync golang.org/x/sys | benchmarks on real servers
integration/browser  | api/token api/ui                                  | opens the dashboard in a browser, which a module of its own drives
integration/processes |                                               | tests of nodes that are processes
integration/collections |                                             | tests of collections over the API of several nodes
integration/works      |                                             | tests of works on several nodes
integration/streams    | github.com/nats-io/nats.go                  | tests of streams on several nodes
integration/robustness/history | events item internal/wire golang.org/x/sys | a record of a run, and its time: anything may write one
integration/robustness/check/fold*.go | events | folds of records for the checkers: they share nothing with those of the product
integration/robustness/check   | events item integration/robustness/history github.com/anishathalye/porcupine | judges a record by folds of its own: it knows neither projection nor engine
integration/robustness/traffic | behaviors engine schedule store events item task taskstore work work/segmentation integration/robustness/history | what clients ask and functions do, and what came of it
integration/robustness/cluster | internal/testcluster internal/version store engine task item events etcdstore natsbus integration/robustness/check integration/robustness/history integration/robustness/traffic go.etcd.io/etcd go.uber.org/zap go.uber.org/goleak github.com/nats-io github.com/google/nftables golang.org/x/sys | the processes of a run, and the links between them
integration/robustness/fault   | internal/advertised internal/testcluster cluster engine events integration/robustness/check integration/robustness/cluster integration/robustness/history integration/robustness/traffic go.etcd.io/etcd/client go.etcd.io/etcd/api github.com/nats-io/nats.go | what can be done to the processes of a run
integration/robustness         | ledger store task events integration/robustness/check integration/robustness/cluster integration/robustness/fault integration/robustness/history integration/robustness/traffic go.etcd.io/etcd/client go.uber.org/goleak | makes histories of real processes under faults, and judges them
integration/simulation         | integration/simulation/build integration/simulation/world integration/robustness/history integration/robustness/check | makes simulated histories and judges them
integration/simulation/build   | integration/robustness/history       | compiles the simulated world with a patched runtime, and runs it
integration/simulation/world   | schedule ledger internal/version store store/memarchive engine task behaviors work work/feed work/feed/memfeed work/segmentation etcdstore events internal/modeletcd integration/robustness/history integration/robustness/traffic go.etcd.io/etcd/client go.etcd.io/etcd/api google.golang.org/grpc google.golang.org/protobuf | a cluster and its surroundings
integration/documents | github.com/nats-io/nats.go                     | does what documents say, also as another user: knows nothing of what is inside
integration/upgrade  | behaviors/builtin engine task etcdstore natsbus | a node, built from sources of different releases
integration/fronts   | api api/token internal/testkit events item projection/extension projection/items projection/journal projection/schedules projection/settings projection/works projection/steady schedule | says where the parts of a front stand, and lays a toy over the tree
integration/mutation | internal/testkit integration/robustness/check integration/simulation/build | breaks the code, runs tests, and looks for planted bugs with both harnesses
integration/proof     |                                                  | notes what the long proof of a tree came to
tests                | go.uber.org/goleak pgregory.net/rapid github.com/vmihailenco/msgpack go.etcd.io/etcd/client go.etcd.io/etcd/api | checkers, and the raw client that damages what is stored; none of it reaches a user's binary
`

func load(t *testing.T) *archtest.Source {
	t.Helper()
	s, err := archtest.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func report(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

func TestProject_ImportsPointOneWay(t *testing.T) {
	p, err := archtest.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	report(t, load(t).Imports(p))
}

func TestProject_ImportPolicyAllowsNothingThatNobodyImports(t *testing.T) {
	p, err := archtest.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	report(t, load(t).Unused(p))
}

func TestProject_DecisionsAndFoldsArePure(t *testing.T) {
	report(t, load(t).Pure("collections/taskjson/*.go", "cron/*.go", "events/*.go", "internal/runid/*.go", "projection/*.go", "projection/*/*.go", "engine/internal/command/*.go", "engine/internal/schedules/commands.go", "engine/internal/schedules/decide.go", "engine/internal/schedules/answer.go", "engine/internal/works/commands.go", "engine/internal/works/decide.go", "engine/internal/works/follow.go", "engine/internal/works/show.go", "engine/internal/works/wants.go", "engine/internal/stores/answers.go", "engine/internal/stores/claim.go", "engine/internal/stores/decide.go", "engine/internal/stores/limits.go", "engine/internal/stores/question.go", "engine/internal/stores/read.go", "engine/internal/stores/update.go",
		"engine/internal/shard/clock.go", "tasklog/kept.go", "tasklog/queue.go", "tasklog/splitter.go", "tasklog/tasklog.go", "work/feed/inorder/*.go", "work/internal/order/*.go", "work/internal/prefix/*.go", "work/progress/*.go", "work/segmentation/*.go"))
}

// A handler beside the table of routes would have no role, no limits and no row in the matrix. Metrics for the users of
// the machine have a listener of their own, which is off by default. An example is an API of a user.
func TestProject_RequestsAreAnsweredByTheTableOfRoutes(t *testing.T) {
	report(t, load(t).Handlers("api", "cmd/node/internal/monitor", "meter/prommeter", "examples/service/api"))
}

func TestProject_InterfacesAreSmall(t *testing.T) {
	report(t, load(t).Interfaces(5))
}

func TestProject_NoMachinePathsInText(t *testing.T) {
	violations, err := archtest.MachinePaths(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	report(t, violations)
}

func TestProject_CommentsNameWhatPackagesExport(t *testing.T) {
	report(t, load(t).Mentions())
}

func TestProject_CommentsSayWhatThingsDo(t *testing.T) {
	report(t, load(t).Comments(clauseComments))
}

func TestProject_DocumentsAreShortEnoughToBeRead(t *testing.T) {
	violations, err := archtest.LongDocuments(os.DirFS(root), map[string]int{"README.md": 200, "ARCHITECTURE.md": 250})
	if err != nil {
		t.Fatal(err)
	}
	report(t, violations)
}

func TestProject_DocumentsNameWhatThereIs(t *testing.T) {
	violations, err := archtest.Documents(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	report(t, violations)
}

// A caller that only submits links no server: neither etcd's nor NATS', nor what they store with.
func TestProject_CallersLinkNoServer(t *testing.T) {
	servers := []string{"go.etcd.io/etcd/server/", "go.etcd.io/raft/", "go.etcd.io/bbolt", "github.com/nats-io/nats-server/"}
	for _, pkg := range []string{"./engine", "./behaviors", "./etcdstore", "./natsbus", "./cluster"} {
		for _, dep := range linked(t, pkg) {
			for _, server := range servers {
				if strings.HasPrefix(dep, server) {
					t.Errorf("%s links %s", pkg, dep)
				}
			}
		}
	}
}

// A program that defines a behavior runs no other program and speaks no HTTP, unless it does so itself.
func TestProject_BehaviorsLinkNeitherProgramsNorHTTP(t *testing.T) {
	for _, dep := range linked(t, "./behaviors") {
		if dep == "os/exec" || dep == "net/http" {
			t.Errorf("behaviors links %s", dep)
		}
	}
}

// linked returns the packages that a program links which imports pkg. Each pkg leads to the ports of the engine.
func linked(t *testing.T, pkg string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", pkg)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "taskledger/store") {
		t.Fatalf("%s does not lead to the ports: the list is of something else", pkg)
	}
	return deps
}
