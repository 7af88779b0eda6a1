package logrecord

// QuotaEntity is one part of what a quota applies to, such as a user.
type QuotaEntity struct {
	EntityType  string  // user, client-id or ip
	EntityName  *string // nil = the default of its type
	UnknownTags Tags
}

// quotaEntityMinBytes is the size of a quota entity with an empty type and no name.
const quotaEntityMinBytes = 3

func (c *coder) quotaEntity(e *QuotaEntity) {
	c.string(&e.EntityType)
	c.nullableString(&e.EntityName)
	c.tags(0, &e.UnknownTags)
}

// NewProducerIDsRecord returns a record with the schema's defaults.
func NewProducerIDsRecord() *ProducerIDsRecord { return &ProducerIDsRecord{BrokerEpoch: -1} }

// ConfigRecord sets or deletes one dynamic config of a resource.
type ConfigRecord struct {
	ResourceType int8   // 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
	ResourceName string // of brokers the id, "" for the default of all brokers
	Name         string
	Value        *string // nil = delete
	UnknownTags  Tags
}

// Key implements ClusterRecord.
func (*ConfigRecord) Key() int16 { return KeyConfig }

// MaxVersion implements ClusterRecord.
func (*ConfigRecord) MaxVersion() int16 { return 0 }

func (r *ConfigRecord) code(c *coder, version int16) {
	c.int8(&r.ResourceType)
	c.string(&r.ResourceName)
	c.string(&r.Name)
	c.nullableString(&r.Value)
	c.tags(version, &r.UnknownTags)
}

// ClientQuotaRecord sets or removes one quota of an entity.
type ClientQuotaRecord struct {
	Entity      []QuotaEntity
	QuotaKey    string  // for example producer_byte_rate
	Value       float64 // ignored with Remove
	Remove      bool
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*ClientQuotaRecord) Key() int16 { return KeyClientQuota }

// MaxVersion implements ClusterRecord.
func (*ClientQuotaRecord) MaxVersion() int16 { return 0 }

func (r *ClientQuotaRecord) code(c *coder, version int16) {
	codeList(c, &r.Entity, false, quotaEntityMinBytes, c.quotaEntity)
	c.string(&r.QuotaKey)
	c.float64(&r.Value)
	c.bool(&r.Remove)
	c.tags(version, &r.UnknownTags)
}

// FeatureLevelRecord finalizes the level of a feature; level 0 removes it. The first record of every log is the one of metadata.version.
type FeatureLevelRecord struct {
	Name         string
	FeatureLevel int16
	UnknownTags  Tags
}

// Key implements ClusterRecord.
func (*FeatureLevelRecord) Key() int16 { return KeyFeatureLevel }

// MaxVersion implements ClusterRecord.
func (*FeatureLevelRecord) MaxVersion() int16 { return 0 }

func (r *FeatureLevelRecord) code(c *coder, version int16) {
	c.string(&r.Name)
	c.int16(&r.FeatureLevel)
	c.tags(version, &r.UnknownTags)
}

// ProducerIDsRecord hands a block of producer ids to a broker. NewProducerIDsRecord has its defaults.
type ProducerIDsRecord struct {
	BrokerID       int32
	BrokerEpoch    int64
	NextProducerID int64 // first id of the next block
	UnknownTags    Tags
}

// Key implements ClusterRecord.
func (*ProducerIDsRecord) Key() int16 { return KeyProducerIDs }

// MaxVersion implements ClusterRecord.
func (*ProducerIDsRecord) MaxVersion() int16 { return 0 }

func (r *ProducerIDsRecord) code(c *coder, version int16) {
	c.int32(&r.BrokerID)
	c.int64(&r.BrokerEpoch)
	c.int64(&r.NextProducerID)
	c.tags(version, &r.UnknownTags)
}

// BeginTransactionRecord begins a transaction of metadata records (KIP-868): what follows takes effect at its end.
type BeginTransactionRecord struct {
	Name        *string // what it is for; nil = not said
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*BeginTransactionRecord) Key() int16 { return KeyBeginTransaction }

// MaxVersion implements ClusterRecord.
func (*BeginTransactionRecord) MaxVersion() int16 { return 0 }

func (r *BeginTransactionRecord) code(c *coder, version int16) {
	c.tags(version, &r.UnknownTags,
		tagged{tag: 0, set: r.Name != nil, name: "Name", code: func(c *coder) { c.nullableString(&r.Name) }},
	)
}

// EndTransactionRecord commits the metadata records since BeginTransactionRecord.
type EndTransactionRecord struct {
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*EndTransactionRecord) Key() int16 { return KeyEndTransaction }

// MaxVersion implements ClusterRecord.
func (*EndTransactionRecord) MaxVersion() int16 { return 0 }

func (r *EndTransactionRecord) code(c *coder, version int16) {
	c.tags(version, &r.UnknownTags)
}

// AbortTransactionRecord drops the metadata records since BeginTransactionRecord.
type AbortTransactionRecord struct {
	Reason      *string // nil = not said
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*AbortTransactionRecord) Key() int16 { return KeyAbortTransaction }

// MaxVersion implements ClusterRecord.
func (*AbortTransactionRecord) MaxVersion() int16 { return 0 }

func (r *AbortTransactionRecord) code(c *coder, version int16) {
	c.tags(version, &r.UnknownTags,
		tagged{tag: 0, set: r.Reason != nil, name: "Reason", code: func(c *coder) { c.nullableString(&r.Reason) }},
	)
}

// NoOpRecord advances the log, and nothing else.
type NoOpRecord struct {
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*NoOpRecord) Key() int16 { return KeyNoOp }

// MaxVersion implements ClusterRecord.
func (*NoOpRecord) MaxVersion() int16 { return 0 }

func (r *NoOpRecord) code(c *coder, version int16) {
	c.tags(version, &r.UnknownTags)
}

// ZkMigrationStateRecord was a step of a migration from ZooKeeper; logs from before Kafka 4.0 may have it.
type ZkMigrationStateRecord struct {
	ZkMigrationState int8 // 0 none, 1 migration, 2 before the migration, 3 after it
	UnknownTags      Tags
}

// Key implements ClusterRecord.
func (*ZkMigrationStateRecord) Key() int16 { return KeyZkMigrationState }

// MaxVersion implements ClusterRecord.
func (*ZkMigrationStateRecord) MaxVersion() int16 { return 0 }

func (r *ZkMigrationStateRecord) code(c *coder, version int16) {
	c.int8(&r.ZkMigrationState)
	c.tags(version, &r.UnknownTags)
}
