// Package lint holds the rules about this repository that a reviewer would otherwise have to remember. They run with the other tests.
package lint

// edges says which packages of this module each package may import, test files left out. A package that is missing here may import none,
// so that a new package or a new edge is a line in this table, to be read in review. docs/ARCHITECTURE.md draws the layers.
var edges = map[string][]string{
	// L0
	"internal/assert": {},
	"internal/lint":   {},

	// L1: bytes and schemas, no I/O
	"protocol/uuid":      {},
	"protocol/frame":     {"internal/assert"},
	"protocol/compress":  {"internal/assert"},
	"protocol/record":    {"internal/assert", "protocol/compress", "protocol/uuid"},
	"protocol/logrecord": {"internal/assert", "protocol/record", "protocol/uuid"},

	// L2: three islands; none imports another
	"storage/vfs":         {"internal/assert"},
	"storage/vfs/errorfs": {"storage/vfs"},
	"storage/checkpoint":  {"internal/assert", "protocol/uuid", "storage/vfs"},
	"storage/epoch":       {"internal/assert", "protocol/record", "storage/checkpoint", "storage/vfs"},
	"storage/producer":    {"internal/assert", "protocol/record", "storage/vfs"},
	"storage/segment":     {"internal/assert", "protocol/compress", "protocol/record", "storage/vfs"},
	"storage/partlog":     {"internal/assert", "protocol/record", "storage/checkpoint", "storage/epoch", "storage/producer", "storage/segment", "storage/vfs"},
	"storage/compact":     {"protocol/record", "storage/partlog", "storage/producer", "storage/segment", "storage/vfs"},
	"storage/logdir":      {"internal/assert", "protocol/uuid", "storage/checkpoint", "storage/vfs"},

	"replication/quorum":    {"internal/assert", "protocol/record", "protocol/uuid"},
	"replication/metadata":  {"internal/assert", "protocol/logrecord", "protocol/record", "protocol/uuid"},
	"replication/partition": {"internal/assert", "protocol/record", "protocol/uuid"},

	"broker/coordinator/machine": {"protocol/record"}, // record: what a log is told about a transaction
	"broker/coordinator/group":   {"internal/assert", "broker/coordinator/machine", "protocol/logrecord", "protocol/record", "protocol/uuid"},
	"broker/coordinator/txn":     {"internal/assert", "broker/coordinator/machine", "protocol/logrecord", "protocol/record"},

	// L3: drivers
	"replication/controller": {"internal/assert", "protocol/...", "replication/metadata", "replication/quorum", "storage/..."},
	"replication/replica":    {"internal/assert", "protocol/...", "replication/metadata", "replication/partition", "storage/..."},

	// L4: the broker's rooms. Of L2 they see plain data only: the metadata image, and the results and errors of a partition.
	"broker/server":       {"internal/assert", "protocol/frame"},
	"broker/config":       {"internal/assert", "protocol/compress", "protocol/record", "replication/metadata"}, // metadata: the ConfigValidator interface and its plain structs
	"broker/delayed":      {"internal/assert"},
	"broker/fetchsession": {"internal/assert", "protocol/uuid"},
	"broker/metrics":      {"broker/server"}, // it implements server.Observer
	"broker/admin":        {},
	"broker/coordinator":  {"internal/assert", "broker/coordinator/machine", "protocol/compress", "protocol/logrecord", "protocol/record"},
	"broker/api": {
		"internal/assert", "protocol/...", "replication/metadata", "replication/partition", "storage/partlog", "storage/producer",
		"broker/config", "broker/coordinator", "broker/coordinator/group", "broker/coordinator/machine", "broker/coordinator/txn", "broker/delayed", "broker/fetchsession", "broker/metrics", "broker/server",
	},

	// L5: the composition root, the only place where concrete types meet
	"broker": {"..."},

	// L6: the command line
	"cmd/sluice":      {"..."},
	"cmd/sluice/dump": {"protocol/...", "storage/..."},
	// The commands that talk to any cluster know of this broker only how it reads properties files.
	"cmd/sluice/cli/exit":    {},
	"cmd/sluice/cli/output":  {"cmd/sluice/cli/exit"},
	"cmd/sluice/cli/connect": {"cmd/sluice/cli/exit", "cmd/sluice/cli/output", "broker/config"},
	"cmd/sluice/cli/admin":   {"cmd/sluice/cli/exit", "cmd/sluice/cli/output", "cmd/sluice/cli/connect"},
	"cmd/sluice/cli/record":  {"cmd/sluice/cli/exit", "cmd/sluice/cli/output", "cmd/sluice/cli/connect", "cmd/sluice/cli/admin"}, // admin: completes names of topics
	"cmd/sluice/cli/wait":    {"cmd/sluice/cli/exit", "cmd/sluice/cli/connect"},
	"cmd/sluice/cli/doctor":  {"cmd/sluice/cli/exit", "cmd/sluice/cli/output", "cmd/sluice/cli/connect"},
}

// modules says which modules outside the standard library a package may import, test files left out. Packages that are missing may import none.
var modules = map[string][]string{
	"protocol/compress":        {"github.com/klauspost/compress", "github.com/pierrec/lz4/v4"},
	"protocol/frame":           {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kbin"},
	"protocol/record":          {"github.com/twmb/franz-go/pkg/kbin"},
	"protocol/logrecord":       {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kbin"},
	"storage/vfs":              {"golang.org/x/sys"},
	"replication/metadata":     {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kerr"},
	"broker/coordinator/group": {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kerr"},
	"broker/coordinator/txn":   {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kerr"},
	"replication/controller":   {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kerr", "go.uber.org/zap"},
	"replication/replica":      {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kerr", "go.uber.org/zap"},
	"broker/server":            {"github.com/twmb/franz-go/pkg/kmsg", "go.uber.org/zap", "golang.org/x/sys"},
	"broker/config":            {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kerr"},
	"broker/coordinator":       {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kerr", "go.uber.org/zap"},
	"broker/metrics":           {"github.com/prometheus/client_golang", "github.com/prometheus/client_model", "github.com/twmb/franz-go/pkg/kerr", "github.com/twmb/franz-go/pkg/kmsg"},
	"broker/admin":             {"github.com/prometheus/client_golang", "go.uber.org/zap"},
	"broker/api":               {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kbin", "github.com/twmb/franz-go/pkg/kerr", "go.uber.org/zap"},
	"broker":                   {"github.com/twmb/franz-go/pkg/kmsg", "github.com/twmb/franz-go/pkg/kerr", "github.com/prometheus/client_golang", "go.uber.org/zap", "golang.org/x/sync"},
	"cmd/sluice/dump":          {"github.com/twmb/franz-go/pkg/kmsg"},
	"cmd/sluice":               {"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/twmb/franz-go", "go.uber.org/zap", "github.com/twmb/franz-go/pkg/kmsg"},
	"cmd/sluice/cli/exit":      {"github.com/spf13/cobra"},
	"cmd/sluice/cli/output":    {"github.com/spf13/cobra"},
	"cmd/sluice/cli/connect":   {"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/twmb/franz-go", "github.com/twmb/franz-go/pkg/kadm"},
	"cmd/sluice/cli/admin":     {"github.com/spf13/cobra", "github.com/twmb/franz-go", "github.com/twmb/franz-go/pkg/kadm", "github.com/twmb/franz-go/pkg/kmsg"},
	"cmd/sluice/cli/record":    {"github.com/spf13/cobra", "github.com/twmb/franz-go"},
	"cmd/sluice/cli/wait":      {"github.com/spf13/cobra", "github.com/twmb/franz-go"},
	"cmd/sluice/cli/doctor":    {"github.com/spf13/cobra", "github.com/twmb/franz-go", "github.com/twmb/franz-go/pkg/kmsg"},
}

// pure lists the packages that decide and never act: no I/O, goroutine, clock, lock or randomness of their own.
var pure = []string{
	"protocol/uuid", "protocol/frame", "protocol/record", "protocol/logrecord",
	"replication/quorum", "replication/metadata", "replication/partition",
	"broker/coordinator/group", "broker/coordinator/machine", "broker/coordinator/txn",
}

// wallClock lists the packages that may read the time. Everyone else is handed it, in milliseconds.
var wallClock = []string{"cmd/sluice", "cmd/sluice/cli/admin", "cmd/sluice/cli/record", "cmd/sluice/cli/wait", "cmd/sluice/cli/doctor", "broker", "broker/server", "broker/admin", "replication/controller", "replication/replica", "broker/coordinator"}
