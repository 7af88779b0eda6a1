package broker

import (
	"sluice/broker/api"
	"sluice/replication/replica"
)

// replicaTable is the set of replicas as the handlers know it.
type replicaTable struct{ *replica.Set }

var _ api.Replicas = replicaTable{}

// Get returns the replica of a partition.
func (t replicaTable) Get(topic string, index int32) (api.Replica, error) {
	r, err := t.Set.Get(topic, index)
	if err != nil {
		return nil, err
	}
	return r, nil
}
