package config

import "strings"

// unknownKey says what to do about a broker key that is not in the table.
func unknownKey(key string) string {
	if why, ok := retired[key]; ok {
		return "no config of Kafka 4.4: " + why
	}
	if row := topicTable.byName[key]; row != nil {
		if len(row.Synonyms) > 0 && row.Synonyms[0].Name != key {
			return "a config of topics; the broker's default for it is " + row.Synonyms[0].Name
		}
		return "a config of topics, not of brokers"
	}
	if name := nearest(key); name != "" {
		return "not a config that Kafka knows; did you mean " + name + "?"
	}
	return "not a config that Kafka knows"
}

// retired are keys of Kafka before 4.0 that files still carry.
var retired = map[string]string{
	"zookeeper.connect":                          "there is no ZooKeeper any more; metadata is kept by the controllers",
	"zookeeper.connection.timeout.ms":            "there is no ZooKeeper any more; metadata is kept by the controllers",
	"zookeeper.session.timeout.ms":               "there is no ZooKeeper any more; metadata is kept by the controllers",
	"zookeeper.set.acl":                          "there is no ZooKeeper any more; metadata is kept by the controllers",
	"zookeeper.max.in.flight.requests":           "there is no ZooKeeper any more; metadata is kept by the controllers",
	"zookeeper.metadata.migration.enable":        "there is no ZooKeeper any more; metadata is kept by the controllers",
	"broker.id.generation.enable":                "node ids are given by node.id",
	"reserved.broker.max.id":                     "node ids are given by node.id",
	"inter.broker.protocol.version":              "the protocol level is the feature metadata.version",
	"log.message.format.version":                 "records have one format only, version 2",
	"log.message.downconversion.enable":          "records have one format only, version 2",
	"log.message.timestamp.difference.max.ms":    "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms",
	"control.plane.listener.name":                "controllers are reached by controller.listener.names",
	"controlled.shutdown.max.retries":            "a controlled shutdown is not repeated",
	"controlled.shutdown.retry.backoff.ms":       "a controlled shutdown is not repeated",
	"leader.imbalance.per.broker.percentage":     "leaders are balanced one by one",
	"group.coordinator.new.enable":               "there is one group coordinator",
	"offsets.commit.required.acks":               "offsets are always committed with acks=all",
	"password.encoder.secret":                    "stored passwords are not encoded",
	"metadata.log.min.cleanable.dirty.ratio":     "the metadata log is not compacted",
	"advertised.host.name":                       "use advertised.listeners",
	"advertised.port":                            "use advertised.listeners",
	"host.name":                                  "use listeners",
	"port":                                       "use listeners",
	"quota.producer.default":                     "use client quotas",
	"quota.consumer.default":                     "use client quotas",
	"replication.factor":                         "use default.replication.factor",
	"replica.fetch.max.wait.ms":                  "use replica.fetch.wait.max.ms",
	"replica.high.watermark.checkpoint.interval": "use replica.high.watermark.checkpoint.interval.ms",
}

// nearest is the broker key that a misspelt one most probably means, empty when none is close.
func nearest(key string) string {
	key = strings.ToLower(strings.NewReplacer("_", ".", "-", ".").Replace(key))
	best, bestDistance := "", max(len(key)/4, 2)+1
	for _, row := range brokerTable.rows {
		if d := distance(key, row.Name, bestDistance); d < bestDistance {
			best, bestDistance = row.Name, d
		}
	}
	return best
}

// distance is the number of letters to change, add, remove or swap with their neighbour to get from a to b; limit when it is not below.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	previous2 := make([]int, len(b)+1)
	previous := make([]int, len(b)+1)
	current := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(previous[j]+1, current[j-1]+1, previous[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, previous2[j-2]+1)
			}
			current[j] = d
		}
		previous2, previous, current = previous, current, previous2
	}
	return previous[len(b)]
}
