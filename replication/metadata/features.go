package metadata

import (
	"fmt"
	"slices"

	"sluice/protocol/logrecord"
)

// Names of the features that change what the machine does.
const (
	FeatureMetadataVersion = "metadata.version"
	FeatureELR             = "eligible.leader.replicas.version"
	FeatureKRaftVersion    = "kraft.version"
)

// A Feature is one row of the table of features: the levels that this program serves, and the level that a new cluster starts with.
type Feature struct {
	Name      string
	Min, Max  int16 // both included
	Bootstrap int16 // finalized level of a newly formatted cluster; 0: not finalized
	// Unserved marks a feature whose levels may stand in the metadata log, where they are kept as they are, but which this program does not
	// serve: brokers do not register it and clients are not told that it is finalized. Its levels must change nothing in how the records
	// are read that this program does serve.
	Unserved bool
}

// Served are the rows of a table of features that brokers register and clients are told of.
func Served(table []Feature) []Feature {
	return slices.DeleteFunc(slices.Clone(table), func(f Feature) bool { return f.Unserved })
}

// Levels of metadata.version at which records got new versions or fields.
const (
	MinMetadataVersion    = 7  // 3.3-IV3, the oldest that Kafka 4 reads
	levelMigration        = 8  // 3.4-IV0: RegisterBrokerRecord 2
	levelTransactions     = 13 // 3.6-IV1: metadata transactions
	levelDirectories      = 17 // 3.7-IV2: log directory ids
	levelELR              = 23 // 4.0-IV1: eligible leader replicas
	levelCordoned         = 30 // 4.3-IV0: cordoned log directories
	LatestMetadataVersion = 33 // 4.4-IV2
)

func (s *state) level(feature string) int16 {
	level, _ := s.features.get(feature)
	return level
}

func (s *state) metadataVersion() int16 { return s.level(FeatureMetadataVersion) }
func (s *state) elrEnabled() bool       { return s.level(FeatureELR) >= 1 }

// RecordVersion is the version in which a record is written under a finalized level of metadata.version.
func RecordVersion(metadataVersion int16, record logrecord.ClusterRecord) int16 {
	switch r := record.(type) {
	case *logrecord.RegisterBrokerRecord:
		switch {
		case metadataVersion >= levelCordoned:
			return 4
		case metadataVersion >= levelDirectories:
			return 3
		case metadataVersion >= levelMigration:
			return 2
		}
		return 1
	case *logrecord.PartitionRecord, *logrecord.PartitionChangeRecord:
		switch {
		case metadataVersion >= levelELR:
			return 2
		case metadataVersion >= levelDirectories:
			return 1
		}
		return 0
	case *logrecord.BrokerRegistrationChangeRecord:
		// The lowest version that can carry the change, which no older member of the cluster then fails to read.
		switch {
		case r.CordonedLogDirs != nil:
			return 3
		case len(r.LogDirs) > 0:
			return 2
		case r.InControlledShutdown != 0:
			return 1
		}
		return 0
	}
	return record.MaxVersion()
}

// feature returns the row of the table of features.
func (m *Machine) feature(name string) (Feature, bool) {
	for _, f := range m.settings.Features {
		if f.Name == name {
			return f, true
		}
	}
	return Feature{}, false
}

// replayFeature refuses a level that the table of features does not have: this program would act on records that it does not understand.
func (m *Machine) replayFeature(r *logrecord.FeatureLevelRecord) error {
	f, known := m.feature(r.Name)
	switch {
	case r.FeatureLevel == 0:
	case !known:
		return fmt.Errorf("the cluster has finalized level %d of feature %q, which this version does not know", r.FeatureLevel, r.Name)
	case r.FeatureLevel < f.Min || r.FeatureLevel > f.Max:
		return fmt.Errorf("the cluster has finalized level %d of feature %q; this version supports %d to %d", r.FeatureLevel, r.Name, f.Min, f.Max)
	}
	if r.FeatureLevel == 0 {
		m.next.features.remove(m.edit, r.Name)
	} else {
		m.next.features.put(m.edit, r.Name, r.FeatureLevel)
	}
	m.touched.features[r.Name] = struct{}{}
	return nil
}

// BootstrapRecords are what the log of a new cluster begins with: metadata.version, then the other features by name, as Kafka's storage tool
// writes them.
func BootstrapRecords(features []Feature) []logrecord.ClusterRecord {
	var records []logrecord.ClusterRecord
	levels := tree[string, int16]{}
	for _, f := range features {
		if f.Bootstrap > 0 && f.Name != FeatureKRaftVersion {
			levels.put(nil, f.Name, f.Bootstrap)
		}
	}
	if level, found := levels.get(FeatureMetadataVersion); found {
		records = append(records, &logrecord.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: level})
		levels.remove(nil, FeatureMetadataVersion)
	}
	for name, level := range levels.all() {
		records = append(records, &logrecord.FeatureLevelRecord{Name: name, FeatureLevel: level})
	}
	return records
}

// MetadataVersion is the finalized level of metadata.version; records are written in the versions that it allows.
func (m *Machine) MetadataVersion() int16 { return m.next.metadataVersion() }
