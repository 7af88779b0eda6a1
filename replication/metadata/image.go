package metadata

import (
	"iter"

	"sluice/protocol/record"
	"sluice/protocol/uuid"
)

// BrokerID is a node's id (node.id). NoBroker stands for "none".
type BrokerID int32

// NoBroker is the leader of a partition that has none.
const NoBroker BrokerID = -1

// BrokerEpoch identifies one registration of a broker: the offset of its RegisterBrokerRecord in the metadata log.
type BrokerEpoch int64

// NoBrokerEpoch is what a broker that was never registered calls its previous epoch.
const NoBrokerEpoch BrokerEpoch = -1

// PartitionEpoch rises by one with each change of a partition's registration.
type PartitionEpoch int32

// An Image is the state of the cluster after one committed offset of the metadata log. It never changes once published: any number of
// readers share it without a lock, and what they get from it must not be modified.
type Image struct {
	state
	offset       int64
	controllerID BrokerID
}

// state is what records build. A published image holds one; the machine holds the next one.
type state struct {
	clusterID   string
	topics      tree[string, *Topic]
	topicIDs    tree[uuidKey, *Topic]
	collisions  tree[string, string] // topic names that can collide, by collision key and name
	brokers     tree[BrokerID, *Broker]
	controllers tree[BrokerID, *Controller]
	configs     tree[configKey, map[string]string]
	features    tree[string, int16]
	security    security
	// nextProducerID is the first id of the block that is handed out next, -1 when none has been yet.
	nextProducerID int64
}

// ClusterID is the id of meta.properties.
func (i *Image) ClusterID() string { return i.clusterID }

// Offset is the offset of the last metadata record that the image contains, -1 when it contains none.
func (i *Image) Offset() int64 { return i.offset }

// ControllerID is the active controller, NoBroker when none is known.
func (i *Image) ControllerID() BrokerID { return i.controllerID }

// Topic returns the topic of that name.
func (i *Image) Topic(name string) (*Topic, bool) { return i.topics.get(name) }

// TopicByID returns the topic with that id.
func (i *Image) TopicByID(id uuid.UUID) (*Topic, bool) { return i.topicIDs.get(keyOf(id)) }

// Topics yields all topics by name, ascending.
func (i *Image) Topics() iter.Seq[*Topic] { return valuesOf(&i.topics) }

// TopicsFrom yields the topics whose names are not below start, ascending.
func (i *Image) TopicsFrom(start string) iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, t := range i.topics.from(start) {
			if !yield(t) {
				return
			}
		}
	}
}

// TopicCount is the number of topics.
func (i *Image) TopicCount() int { return i.topics.len() }

// Broker returns the registration of a broker, fenced or not.
func (i *Image) Broker(id BrokerID) (*Broker, bool) { return i.brokers.get(id) }

// Controllers yields all registered controllers by id, ascending.
func (i *Image) Controllers() iter.Seq[*Controller] { return valuesOf(&i.controllers) }

// Brokers yields all registered brokers by id, ascending.
func (i *Image) Brokers() iter.Seq[*Broker] { return valuesOf(&i.brokers) }

// Configs returns the values set for a resource itself, nil when there are none. The map must not be modified.
func (i *Image) Configs(r ConfigResource) map[string]string {
	c, _ := i.configs.get(r.key())
	return c
}

// ConfigResources yields every resource that has a value of its own, by type and name, ascending.
func (i *Image) ConfigResources() iter.Seq2[ConfigResource, map[string]string] {
	return func(yield func(ConfigResource, map[string]string) bool) {
		for k, c := range i.configs.all() {
			if !yield(k.resource(), c) {
				return
			}
		}
	}
}

// FinalizedFeatures returns a copy of the finalized levels above zero and their epoch, the offset of the last record that the answer reflects.
func (i *Image) FinalizedFeatures() (levels map[string]int16, epoch int64) {
	levels = make(map[string]int16, i.features.len())
	for name, level := range i.features.all() {
		levels[name] = level
	}
	return levels, i.offset
}

// FeatureLevel is the finalized level of a feature, 0 when it is not finalized.
func (i *Image) FeatureLevel(name string) int16 {
	level, _ := i.features.get(name)
	return level
}

// A Topic and all of its partitions; Partitions[n] is partition n.
type Topic struct {
	Name       string
	ID         uuid.UUID
	Partitions []Partition
}

// A Partition is one partition's registration.
type Partition struct {
	Replicas       []BrokerID // preferred leader first
	ISR            []BrokerID
	Adding         []BrokerID // of a reassignment under way
	Removing       []BrokerID // of a reassignment under way
	ELR            []BrokerID // eligible leaders outside the ISR (KIP-966)
	LastKnownELR   []BrokerID
	Directories    []uuid.UUID // log directory of each of Replicas
	Leader         BrokerID    // NoBroker when none
	LeaderEpoch    record.LeaderEpoch
	PartitionEpoch PartitionEpoch
	Recovering     bool // the leader was elected uncleanly and has not recovered yet
}

// A Broker is a broker's registration.
type Broker struct {
	ID                   BrokerID
	Epoch                BrokerEpoch
	RegistrationOffset   int64 // offset of the record that this registration comes from
	IncarnationID        uuid.UUID
	Endpoints            map[string]Endpoint // by listener name
	Features             map[string]FeatureRange
	Rack                 string // empty when none
	Directories          []uuid.UUID
	CordonedDirectories  []uuid.UUID // nil when the broker has not said yet
	Fenced               bool
	InControlledShutdown bool
}

// An Endpoint is where a listener of a node can be reached.
type Endpoint struct {
	Host             string
	Port             uint16
	SecurityProtocol int16 // 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
}

// A FeatureRange is the span of levels of one feature that a node supports, both ends included.
type FeatureRange struct{ Min, Max int16 }

// A Controller is a controller's registration.
type Controller struct {
	ID            BrokerID
	IncarnationID uuid.UUID
	Endpoints     map[string]Endpoint // by listener name
	Features      map[string]FeatureRange
}
