// Package metadata is the cluster's controller as a pure machine. Operations read its state and return the records that would change it and
// the response to give once these are committed; only Replay changes state. The same records build the immutable Image that the rest of
// the node reads. Records, their order and the error messages are Apache Kafka 4.4's.
package metadata

import (
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
)

// Settings are what the machine needs to know of the node that it runs on.
type Settings struct {
	ClusterID                string
	NodeID                   BrokerID
	DefaultReplicationFactor int16 // default.replication.factor
	DefaultPartitions        int32 // num.partitions
	MinInSyncReplicas        int32 // min.insync.replicas, as configured on the node
	UncleanLeaderElection    bool  // unclean.leader.election.enable, as configured on the node
	SessionTimeoutMs         int64 // broker.session.timeout.ms
	Features                 []Feature
	Configs                  ConfigValidator
	Random                   io.Reader // topic ids and where placement starts
}

// A Feature is one row of the table of features: the levels that this program serves, and the level that a new cluster starts with.
type Feature struct {
	Name      string
	Min, Max  int16
	Bootstrap int16 // 0: not finalized at format
}

// A Result is what an operation wants. Nothing has happened yet.
type Result struct {
	Records  []logrecord.ClusterRecord
	Response kmsg.Response
}

// An Op is one controller operation. It reads the machine and must not change it. An error rejects the request as a whole, and is an *Error
// when it is the requester's fault; errors of single items are in the response.
type Op func(m *Machine, nowMs int64) (Result, error)

// An Error is a rejection with Kafka's error code and message.
type Error struct {
	Code    int16
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (error code %d)", e.Message, e.Code) }

// A Machine is the controller's state and the rules by which it changes.
type Machine struct {
	settings Settings
}

// NewMachine returns a machine that has seen no record.
func NewMachine(s Settings) *Machine { panic("not written yet") }

// Replay applies one record of the metadata log. A record that does not fit the state is an error: the log is not one of this cluster, or damaged.
func (m *Machine) Replay(offset int64, r logrecord.ClusterRecord) error { panic("not written yet") }

// Publish freezes the state after all records replayed so far and returns what changed since the last call.
func (m *Machine) Publish() *Delta { panic("not written yet") }
