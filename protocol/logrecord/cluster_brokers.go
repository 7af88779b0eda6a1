package logrecord

import "sluice/protocol/uuid"

// Endpoint is where a broker or controller listens.
type Endpoint struct {
	Name             string // of the listener
	Host             string
	Port             uint16
	SecurityProtocol int16 // 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
	UnknownTags      Tags
}

// endpointMinBytes is the size of an endpoint with empty strings.
const endpointMinBytes = 7

func (c *coder) endpoint(e *Endpoint) {
	c.string(&e.Name)
	c.string(&e.Host)
	c.uint16(&e.Port)
	c.int16(&e.SecurityProtocol)
	c.tags(0, &e.UnknownTags)
}

// FeatureRange is which levels of a feature a node supports, both ends inclusive.
type FeatureRange struct {
	Name                string
	MinSupportedVersion int16
	MaxSupportedVersion int16
	UnknownTags         Tags
}

// featureRangeMinBytes is the size of a feature range with an empty name.
const featureRangeMinBytes = 6

func (c *coder) featureRange(f *FeatureRange) {
	c.string(&f.Name)
	c.int16(&f.MinSupportedVersion)
	c.int16(&f.MaxSupportedVersion)
	c.tags(0, &f.UnknownTags)
}

// NewRegisterBrokerRecord returns a record with the schema's defaults: a broker begins fenced.
func NewRegisterBrokerRecord() *RegisterBrokerRecord { return &RegisterBrokerRecord{Fenced: true} }

// RegisterBrokerRecord announces a broker, with the epoch that this registration has. NewRegisterBrokerRecord has its defaults.
type RegisterBrokerRecord struct {
	BrokerID             int32
	IsMigratingZkBroker  bool // v2+: false since Kafka 4.0
	IncarnationID        uuid.UUID
	BrokerEpoch          int64 // the offset of this record in the log
	EndPoints            []Endpoint
	Features             []FeatureRange
	Rack                 *string // nil = none
	Fenced               bool
	InControlledShutdown bool        // v1+
	LogDirs              []uuid.UUID // v3+: that are online
	CordonedLogDirs      []uuid.UUID // v4+: nil = not reported
	UnknownTags          Tags
}

// Key implements ClusterRecord.
func (*RegisterBrokerRecord) Key() int16 { return KeyRegisterBroker }

// MaxVersion implements ClusterRecord.
func (*RegisterBrokerRecord) MaxVersion() int16 { return 4 }

func (r *RegisterBrokerRecord) code(c *coder, version int16) {
	c.int32(&r.BrokerID)
	if version >= 2 {
		c.bool(&r.IsMigratingZkBroker)
	} else {
		c.absent(r.IsMigratingZkBroker, "IsMigratingZkBroker")
	}
	c.uuid(&r.IncarnationID)
	c.int64(&r.BrokerEpoch)
	codeList(c, &r.EndPoints, false, endpointMinBytes, c.endpoint)
	codeList(c, &r.Features, false, featureRangeMinBytes, c.featureRange)
	c.nullableString(&r.Rack)
	c.bool(&r.Fenced)
	if version >= 1 {
		c.bool(&r.InControlledShutdown)
	} else {
		c.absent(r.InControlledShutdown, "InControlledShutdown")
	}
	c.tags(version, &r.UnknownTags,
		tagged{tag: 0, since: 3, set: len(r.LogDirs) > 0, name: "LogDirs", code: func(c *coder) { c.uuids(&r.LogDirs) }},
		tagged{tag: 1, since: 4, set: r.CordonedLogDirs != nil, name: "CordonedLogDirs", code: func(c *coder) { c.nullableUUIDs(&r.CordonedLogDirs) }},
	)
}

// UnregisterBrokerRecord removes a broker for good.
type UnregisterBrokerRecord struct {
	BrokerID    int32
	BrokerEpoch int64
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*UnregisterBrokerRecord) Key() int16 { return KeyUnregisterBroker }

// MaxVersion implements ClusterRecord.
func (*UnregisterBrokerRecord) MaxVersion() int16 { return 0 }

func (r *UnregisterBrokerRecord) code(c *coder, version int16) {
	c.int32(&r.BrokerID)
	c.int64(&r.BrokerEpoch)
	c.tags(version, &r.UnknownTags)
}

// FenceBrokerRecord fences a broker. Current metadata versions write BrokerRegistrationChangeRecord instead.
type FenceBrokerRecord struct {
	ID          int32
	Epoch       int64
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*FenceBrokerRecord) Key() int16 { return KeyFenceBroker }

// MaxVersion implements ClusterRecord.
func (*FenceBrokerRecord) MaxVersion() int16 { return 0 }

func (r *FenceBrokerRecord) code(c *coder, version int16) {
	c.int32(&r.ID)
	c.int64(&r.Epoch)
	c.tags(version, &r.UnknownTags)
}

// UnfenceBrokerRecord unfences a broker. Current metadata versions write BrokerRegistrationChangeRecord instead.
type UnfenceBrokerRecord struct {
	ID          int32
	Epoch       int64
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*UnfenceBrokerRecord) Key() int16 { return KeyUnfenceBroker }

// MaxVersion implements ClusterRecord.
func (*UnfenceBrokerRecord) MaxVersion() int16 { return 0 }

func (r *UnfenceBrokerRecord) code(c *coder, version int16) {
	c.int32(&r.ID)
	c.int64(&r.Epoch)
	c.tags(version, &r.UnknownTags)
}

// BrokerRegistrationChangeRecord changes a broker's registration: what is absent stays.
type BrokerRegistrationChangeRecord struct {
	BrokerID             int32
	BrokerEpoch          int64       // of the registration that is changed
	Fenced               int8        // -1 unfence, 0 no change, 1 fence
	InControlledShutdown int8        // v1+: 0 no change, 1 it is shutting down
	LogDirs              []uuid.UUID // v2+: empty = no change
	CordonedLogDirs      []uuid.UUID // v3+: nil = no change
	UnknownTags          Tags
}

// Key implements ClusterRecord.
func (*BrokerRegistrationChangeRecord) Key() int16 { return KeyBrokerRegistrationChange }

// MaxVersion implements ClusterRecord.
func (*BrokerRegistrationChangeRecord) MaxVersion() int16 { return 3 }

func (r *BrokerRegistrationChangeRecord) code(c *coder, version int16) {
	c.int32(&r.BrokerID)
	c.int64(&r.BrokerEpoch)
	c.tags(version, &r.UnknownTags,
		tagged{tag: 0, set: r.Fenced != 0, name: "Fenced", code: func(c *coder) { c.int8(&r.Fenced) }},
		tagged{tag: 1, since: 1, set: r.InControlledShutdown != 0, name: "InControlledShutdown", code: func(c *coder) { c.int8(&r.InControlledShutdown) }},
		tagged{tag: 2, since: 2, set: len(r.LogDirs) > 0, name: "LogDirs", code: func(c *coder) { c.uuids(&r.LogDirs) }},
		tagged{tag: 3, since: 3, set: r.CordonedLogDirs != nil, name: "CordonedLogDirs", code: func(c *coder) { c.nullableUUIDs(&r.CordonedLogDirs) }},
	)
}

// RegisterControllerRecord announces a controller.
type RegisterControllerRecord struct {
	ControllerID     int32
	IncarnationID    uuid.UUID
	ZkMigrationReady bool // false since Kafka 4.0
	EndPoints        []Endpoint
	Features         []FeatureRange
	UnknownTags      Tags
}

// Key implements ClusterRecord.
func (*RegisterControllerRecord) Key() int16 { return KeyRegisterController }

// MaxVersion implements ClusterRecord.
func (*RegisterControllerRecord) MaxVersion() int16 { return 0 }

func (r *RegisterControllerRecord) code(c *coder, version int16) {
	c.int32(&r.ControllerID)
	c.uuid(&r.IncarnationID)
	c.bool(&r.ZkMigrationReady)
	codeList(c, &r.EndPoints, false, endpointMinBytes, c.endpoint)
	codeList(c, &r.Features, false, featureRangeMinBytes, c.featureRange)
	c.tags(version, &r.UnknownTags)
}

// UnregisterControllerRecord removes a controller for good.
type UnregisterControllerRecord struct {
	ControllerID int32
	UnknownTags  Tags
}

// Key implements ClusterRecord.
func (*UnregisterControllerRecord) Key() int16 { return KeyUnregisterController }

// MaxVersion implements ClusterRecord.
func (*UnregisterControllerRecord) MaxVersion() int16 { return 0 }

func (r *UnregisterControllerRecord) code(c *coder, version int16) {
	c.int32(&r.ControllerID)
	c.tags(version, &r.UnknownTags)
}
