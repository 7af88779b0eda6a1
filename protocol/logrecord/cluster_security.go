package logrecord

import "sluice/protocol/uuid"

// UserScramCredentialRecord sets a user's SCRAM credential for one mechanism.
type UserScramCredentialRecord struct {
	Name        string
	Mechanism   int8 // 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
	Salt        []byte
	StoredKey   []byte
	ServerKey   []byte
	Iterations  int32
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*UserScramCredentialRecord) Key() int16 { return KeyUserScramCredential }

// MaxVersion implements ClusterRecord.
func (*UserScramCredentialRecord) MaxVersion() int16 { return 0 }

func (r *UserScramCredentialRecord) code(c *coder, version int16) {
	c.string(&r.Name)
	c.int8(&r.Mechanism)
	c.bytes(&r.Salt)
	c.bytes(&r.StoredKey)
	c.bytes(&r.ServerKey)
	c.int32(&r.Iterations)
	c.tags(version, &r.UnknownTags)
}

// RemoveUserScramCredentialRecord deletes a user's SCRAM credential for one mechanism.
type RemoveUserScramCredentialRecord struct {
	Name        string
	Mechanism   int8 // 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*RemoveUserScramCredentialRecord) Key() int16 { return KeyRemoveUserScramCredential }

// MaxVersion implements ClusterRecord.
func (*RemoveUserScramCredentialRecord) MaxVersion() int16 { return 0 }

func (r *RemoveUserScramCredentialRecord) code(c *coder, version int16) {
	c.string(&r.Name)
	c.int8(&r.Mechanism)
	c.tags(version, &r.UnknownTags)
}

// DelegationTokenRecord creates or renews a delegation token.
type DelegationTokenRecord struct {
	Owner               string
	Requester           string
	Renewers            []string
	IssueTimestamp      int64 // ms since 1970
	MaxTimestamp        int64 // ms since 1970; it cannot be renewed beyond
	ExpirationTimestamp int64 // ms since 1970; it must be renewed before
	TokenID             string
	UnknownTags         Tags
}

// Key implements ClusterRecord.
func (*DelegationTokenRecord) Key() int16 { return KeyDelegationToken }

// MaxVersion implements ClusterRecord.
func (*DelegationTokenRecord) MaxVersion() int16 { return 0 }

func (r *DelegationTokenRecord) code(c *coder, version int16) {
	c.string(&r.Owner)
	c.string(&r.Requester)
	c.strings(&r.Renewers)
	c.int64(&r.IssueTimestamp)
	c.int64(&r.MaxTimestamp)
	c.int64(&r.ExpirationTimestamp)
	c.string(&r.TokenID)
	c.tags(version, &r.UnknownTags)
}

// RemoveDelegationTokenRecord deletes a delegation token.
type RemoveDelegationTokenRecord struct {
	TokenID     string
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*RemoveDelegationTokenRecord) Key() int16 { return KeyRemoveDelegationToken }

// MaxVersion implements ClusterRecord.
func (*RemoveDelegationTokenRecord) MaxVersion() int16 { return 0 }

func (r *RemoveDelegationTokenRecord) code(c *coder, version int16) {
	c.string(&r.TokenID)
	c.tags(version, &r.UnknownTags)
}

// AccessControlEntryRecord adds an access control entry.
type AccessControlEntryRecord struct {
	ID             uuid.UUID
	ResourceType   int8
	ResourceName   string
	PatternType    int8
	Principal      string
	Host           string
	Operation      int8
	PermissionType int8
	UnknownTags    Tags
}

// Key implements ClusterRecord.
func (*AccessControlEntryRecord) Key() int16 { return KeyAccessControlEntry }

// MaxVersion implements ClusterRecord.
func (*AccessControlEntryRecord) MaxVersion() int16 { return 0 }

func (r *AccessControlEntryRecord) code(c *coder, version int16) {
	c.uuid(&r.ID)
	c.int8(&r.ResourceType)
	c.string(&r.ResourceName)
	c.int8(&r.PatternType)
	c.string(&r.Principal)
	c.string(&r.Host)
	c.int8(&r.Operation)
	c.int8(&r.PermissionType)
	c.tags(version, &r.UnknownTags)
}

// RemoveAccessControlEntryRecord removes an access control entry.
type RemoveAccessControlEntryRecord struct {
	ID          uuid.UUID
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*RemoveAccessControlEntryRecord) Key() int16 { return KeyRemoveAccessControlEntry }

// MaxVersion implements ClusterRecord.
func (*RemoveAccessControlEntryRecord) MaxVersion() int16 { return 0 }

func (r *RemoveAccessControlEntryRecord) code(c *coder, version int16) {
	c.uuid(&r.ID)
	c.tags(version, &r.UnknownTags)
}
