// Package logrecord holds what is inside the records of Kafka's internal topics, byte for byte as Apache Kafka 4.4 writes
// it: cluster metadata (__cluster_metadata, KIP-631) and consumer groups (__consumer_offsets).
//
// Structures and fields have the names of Kafka's published schemas, in Go's spelling.
package logrecord

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"

	"sluice/internal/assert"
)

// The types of records in the cluster metadata log.
const (
	KeyRegisterBroker            int16 = 0
	KeyUnregisterBroker          int16 = 1
	KeyTopic                     int16 = 2
	KeyPartition                 int16 = 3
	KeyConfig                    int16 = 4
	KeyPartitionChange           int16 = 5
	KeyFenceBroker               int16 = 7
	KeyUnfenceBroker             int16 = 8
	KeyRemoveTopic               int16 = 9
	KeyDelegationToken           int16 = 10
	KeyUserScramCredential       int16 = 11
	KeyFeatureLevel              int16 = 12
	KeyClientQuota               int16 = 14
	KeyProducerIDs               int16 = 15
	KeyBrokerRegistrationChange  int16 = 17
	KeyAccessControlEntry        int16 = 18
	KeyRemoveAccessControlEntry  int16 = 19
	KeyNoOp                      int16 = 20
	KeyZkMigrationState          int16 = 21
	KeyRemoveUserScramCredential int16 = 22
	KeyBeginTransaction          int16 = 23
	KeyEndTransaction            int16 = 24
	KeyAbortTransaction          int16 = 25
	KeyRemoveDelegationToken     int16 = 26
	KeyRegisterController        int16 = 27
	KeyClearELR                  int16 = 28
	KeyUnregisterController      int16 = 29
)

// frameVersion is the version of the envelope around each record: frame version, type and version as unsigned varints.
const frameVersion = 1

// ClusterRecord is one record of the cluster metadata log. The implementations are the …Record structures of this package.
type ClusterRecord interface {
	// Key is the type, one of the Key… constants.
	Key() int16
	// MaxVersion is the newest version of this type in Kafka 4.4; the oldest is 0.
	MaxVersion() int16

	code(c *coder, version int16)
}

// NewClusterRecord returns an empty record of the type, all fields at their defaults, or nil if there is no such type.
func NewClusterRecord(key int16) ClusterRecord {
	switch key {
	case KeyRegisterBroker:
		return NewRegisterBrokerRecord()
	case KeyUnregisterBroker:
		return new(UnregisterBrokerRecord)
	case KeyTopic:
		return new(TopicRecord)
	case KeyPartition:
		return NewPartitionRecord()
	case KeyConfig:
		return new(ConfigRecord)
	case KeyPartitionChange:
		return NewPartitionChangeRecord()
	case KeyFenceBroker:
		return new(FenceBrokerRecord)
	case KeyUnfenceBroker:
		return new(UnfenceBrokerRecord)
	case KeyRemoveTopic:
		return new(RemoveTopicRecord)
	case KeyDelegationToken:
		return new(DelegationTokenRecord)
	case KeyUserScramCredential:
		return new(UserScramCredentialRecord)
	case KeyFeatureLevel:
		return new(FeatureLevelRecord)
	case KeyClientQuota:
		return new(ClientQuotaRecord)
	case KeyProducerIDs:
		return NewProducerIDsRecord()
	case KeyBrokerRegistrationChange:
		return new(BrokerRegistrationChangeRecord)
	case KeyAccessControlEntry:
		return new(AccessControlEntryRecord)
	case KeyRemoveAccessControlEntry:
		return new(RemoveAccessControlEntryRecord)
	case KeyNoOp:
		return new(NoOpRecord)
	case KeyZkMigrationState:
		return new(ZkMigrationStateRecord)
	case KeyRemoveUserScramCredential:
		return new(RemoveUserScramCredentialRecord)
	case KeyBeginTransaction:
		return new(BeginTransactionRecord)
	case KeyEndTransaction:
		return new(EndTransactionRecord)
	case KeyAbortTransaction:
		return new(AbortTransactionRecord)
	case KeyRemoveDelegationToken:
		return new(RemoveDelegationTokenRecord)
	case KeyRegisterController:
		return new(RegisterControllerRecord)
	case KeyClearELR:
		return new(ClearELRRecord)
	case KeyUnregisterController:
		return new(UnregisterControllerRecord)
	}
	return nil
}

// ParseCluster reads the value of a record of the cluster metadata log. The result shares no memory with value. A type
// or version that Kafka 4.4 does not have is an error: a controller that skipped it would disagree with the others.
func ParseCluster(value []byte) (ClusterRecord, error) {
	r, _, err := ParseClusterVersion(value)
	return r, err
}

// ParseClusterVersion is ParseCluster for those who also want the version that the record was written in.
func ParseClusterVersion(value []byte) (ClusterRecord, int16, error) {
	c := coder{r: kbin.Reader{Src: value}}
	frame, key, version := c.r.Uvarint(), c.r.Uvarint(), c.r.Uvarint()
	if !c.r.Ok() {
		return nil, 0, fmt.Errorf("cluster record: %w", kbin.ErrNotEnoughData)
	}
	if frame != frameVersion {
		return nil, 0, fmt.Errorf("cluster record: frame version %d, want %d", frame, frameVersion)
	}
	var r ClusterRecord
	if key <= uint32(KeyUnregisterController) {
		r = NewClusterRecord(int16(key))
	}
	if r == nil {
		return nil, 0, fmt.Errorf("cluster record: unknown type %d", key)
	}
	if version > uint32(r.MaxVersion()) {
		return nil, 0, fmt.Errorf("cluster record: type %d has no version %d", key, version)
	}
	r.code(&c, int16(version))
	if err := c.complete(); err != nil {
		return nil, 0, fmt.Errorf("cluster record: type %d version %d: %w", key, version, err)
	}
	return r, int16(version), nil
}

// AppendCluster appends the value of a record of the cluster metadata log to dst. It panics if the type has no such
// version, or if a field is set that the version lacks and that would be lost.
func AppendCluster(dst []byte, r ClusterRecord, version int16) []byte {
	assert.That(version >= 0 && version <= r.MaxVersion(), "cluster record type %d has no version %d", r.Key(), version)
	dst = kbin.AppendUvarint(dst, frameVersion)
	dst = kbin.AppendUvarint(dst, uint32(r.Key()))
	dst = kbin.AppendUvarint(dst, uint32(version))
	c := coder{writing: true, dst: dst}
	r.code(&c, version)
	return c.dst
}
