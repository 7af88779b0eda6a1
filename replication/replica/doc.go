// Package replica drives the partitions that this broker holds: each Replica owns one log and the state of that partition's leader, and
// is the log's only writer. The Set of them follows the cluster's metadata, and does in the background what Kafka does to logs: flush,
// retain, write checkpoints, forget idle producers.
package replica
