package broker

import "sluice/replication/metadata"

// featureTransactionVersion is the feature of transactions: 1 writes their state in a flexible format, with 2 each has a producer epoch of its
// own (KIP-890).
const featureTransactionVersion = "transaction.version"

// features is the table of feature levels, those of Apache Kafka 4.4. What promises more than is served is marked as unserved: a directory in
// which Kafka has finalized it is taken over and handed back with that level, but no client is told of it (docs/decisions/0003).
var features = []metadata.Feature{
	{Name: metadata.FeatureMetadataVersion, Min: metadata.MinMetadataVersion, Max: metadata.LatestMetadataVersion, Bootstrap: metadata.LatestMetadataVersion},
	{Name: metadata.FeatureKRaftVersion, Min: 0, Max: 0},
	{Name: metadata.FeatureELR, Min: 0, Max: 1, Bootstrap: 1},
	{Name: "group.version", Min: 0, Max: 1, Unserved: true},
	{Name: "share.version", Min: 0, Max: 2, Unserved: true},
	{Name: "streams.version", Min: 0, Max: 1, Unserved: true},
	{Name: featureTransactionVersion, Min: 0, Max: 2, Bootstrap: 2},
}
