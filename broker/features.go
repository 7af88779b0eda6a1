package broker

import "sluice/replication/metadata"

// features is the table of feature levels that this program serves, which Apache Kafka 4.4 would know too. A feature that promises what is
// not served is not in it.
var features = []metadata.Feature{
	{Name: metadata.FeatureMetadataVersion, Min: metadata.MinMetadataVersion, Max: metadata.LatestMetadataVersion, Bootstrap: metadata.LatestMetadataVersion},
	{Name: metadata.FeatureKRaftVersion, Min: 0, Max: 0},
	{Name: metadata.FeatureELR, Min: 0, Max: 1, Bootstrap: 1},
}
