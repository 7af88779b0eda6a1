package metadata

import (
	"strconv"

	"sluice/protocol/logrecord"
)

// OpenTransaction is the offset at which a transaction begins that the log does not end, -1 when there is none.
func (m *Machine) OpenTransaction() int64 {
	if m.transaction == nil {
		return -1
	}
	return m.transaction.startOffset
}

// ActivationRecords is what a new active controller writes first: the bootstrap records if the log has none yet, and the end of a
// transaction that its predecessor left open. It has no response.
func ActivationRecords(bootstrap []logrecord.ClusterRecord) Op {
	return func(m *Machine, _ int64) (Result, error) {
		var records []logrecord.ClusterRecord
		if m.transaction != nil {
			reason := "Controller failover"
			records = append(records, &logrecord.AbortTransactionRecord{Reason: &reason})
		}
		if m.published.FeatureLevel(FeatureMetadataVersion) > 0 {
			return Result{Records: records}, nil
		}
		levels := map[string]int16{}
		for _, r := range bootstrap {
			if f, ok := r.(*logrecord.FeatureLevelRecord); ok {
				levels[f.Name] = f.FeatureLevel
			}
		}
		// One atomic batch, for readers that know no transactions, or else a transaction, as Kafka has it.
		transactional := levels[FeatureMetadataVersion] >= levelTransactions
		if transactional {
			name := "Bootstrap records"
			records = append(records, &logrecord.BeginTransactionRecord{Name: &name})
		}
		records = append(records, bootstrap...)
		if levels[FeatureELR] > 0 {
			value := strconv.Itoa(int(m.settings.MinInSyncReplicas))
			records = append(records, &logrecord.ConfigRecord{ResourceType: int8(BrokerResource), Name: configMinInSyncReplicas, Value: &value})
		}
		if transactional {
			records = append(records, &logrecord.EndTransactionRecord{})
		}
		return Result{Records: records}, nil
	}
}
