package broker

import "sluice/replication/metadata"

// features is the table of feature levels, those of Apache Kafka 4.4. What promises more than is served is marked as unserved: a directory in
// which Kafka has finalized it is taken over and handed back with that level, but no client is told of it (docs/decisions/0003).
var features = []metadata.Feature{
	{Name: metadata.FeatureMetadataVersion, Min: metadata.MinMetadataVersion, Max: metadata.LatestMetadataVersion, Bootstrap: metadata.LatestMetadataVersion},
	{Name: metadata.FeatureKRaftVersion, Min: 0, Max: 0},
	{Name: metadata.FeatureELR, Min: 0, Max: 1, Bootstrap: 1},
	{Name: "group.version", Min: 0, Max: 1, Unserved: true},
	{Name: "share.version", Min: 0, Max: 2, Unserved: true},
	{Name: "streams.version", Min: 0, Max: 1, Unserved: true},
	{Name: "transaction.version", Min: 0, Max: 2, Unserved: true},
}
