package metadata

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
)

// security holds access control entries, SCRAM credentials, client quotas and delegation tokens as the log has them, so that a log with
// them replays and none is lost. What enforces them reads them from the image.
type security struct {
	acls   tree[uuidKey, *logrecord.AccessControlEntryRecord]
	scram  tree[string, *logrecord.UserScramCredentialRecord]
	quotas tree[string, *ClientQuota]
	tokens tree[string, *logrecord.DelegationTokenRecord]
}

// A ClientQuota is all quotas of one entity.
type ClientQuota struct {
	Entity []logrecord.QuotaEntity // sorted by type
	Values map[string]float64
}

// AccessControlEntries yields all entries by id, ascending. They must not be modified.
func (i *Image) AccessControlEntries() iter.Seq[*logrecord.AccessControlEntryRecord] {
	return valuesOf(&i.security.acls)
}

// ScramCredentials yields all SCRAM credentials by user and mechanism, ascending. They must not be modified.
func (i *Image) ScramCredentials() iter.Seq[*logrecord.UserScramCredentialRecord] {
	return valuesOf(&i.security.scram)
}

// ClientQuotas yields the quotas of all entities. They must not be modified.
func (i *Image) ClientQuotas() iter.Seq[*ClientQuota] { return valuesOf(&i.security.quotas) }

// DelegationTokens yields all tokens by id, ascending. They must not be modified.
func (i *Image) DelegationTokens() iter.Seq[*logrecord.DelegationTokenRecord] {
	return valuesOf(&i.security.tokens)
}

// uuidKey orders ids as trees need it.
type uuidKey string

func keyOf(id uuid.UUID) uuidKey { return uuidKey(id[:]) }

func (k uuidKey) id() (id uuid.UUID) {
	copy(id[:], k)
	return id
}

func scramKey(user string, mechanism int8) string { return user + "\x00" + string(rune('0'+mechanism)) }

// quotaKey identifies an entity whatever the order of its parts.
func quotaKey(entity []logrecord.QuotaEntity) string {
	var b strings.Builder
	for _, e := range entity {
		name := "default"
		if e.EntityName != nil {
			name = fmt.Sprintf("%q", *e.EntityName)
		}
		fmt.Fprintf(&b, "%q=%s;", e.EntityType, name)
	}
	return b.String()
}

func (m *Machine) replayACL(r *logrecord.AccessControlEntryRecord) error {
	if _, found := m.next.security.acls.get(keyOf(r.ID)); found {
		return fmt.Errorf("an access control entry with id %s exists already", r.ID)
	}
	m.next.security.acls.put(m.edit, keyOf(r.ID), r)
	m.touched.acls[r.ID] = struct{}{}
	return nil
}

func (m *Machine) replayRemoveACL(r *logrecord.RemoveAccessControlEntryRecord) error {
	if !m.next.security.acls.remove(m.edit, keyOf(r.ID)) {
		return fmt.Errorf("no access control entry has id %s", r.ID)
	}
	m.touched.acls[r.ID] = struct{}{}
	return nil
}

func (m *Machine) replayScram(r *logrecord.UserScramCredentialRecord) error {
	m.next.security.scram.put(m.edit, scramKey(r.Name, r.Mechanism), r)
	m.touched.security = true
	return nil
}

func (m *Machine) replayRemoveScram(r *logrecord.RemoveUserScramCredentialRecord) error {
	if !m.next.security.scram.remove(m.edit, scramKey(r.Name, r.Mechanism)) {
		return fmt.Errorf("user %q has no SCRAM credential of mechanism %d", r.Name, r.Mechanism)
	}
	m.touched.security = true
	return nil
}

func (m *Machine) replayToken(r *logrecord.DelegationTokenRecord) error {
	m.next.security.tokens.put(m.edit, r.TokenID, r)
	m.touched.security = true
	return nil
}

func (m *Machine) replayRemoveToken(r *logrecord.RemoveDelegationTokenRecord) error {
	m.next.security.tokens.remove(m.edit, r.TokenID)
	m.touched.security = true
	return nil
}

func (m *Machine) replayQuota(r *logrecord.ClientQuotaRecord) error {
	entity := slices.Clone(r.Entity)
	slices.SortFunc(entity, func(a, b logrecord.QuotaEntity) int { return cmp.Compare(a.EntityType, b.EntityType) })
	key := quotaKey(entity)
	next := &ClientQuota{Entity: entity, Values: map[string]float64{}}
	if before, found := m.next.security.quotas.get(key); found {
		for name, value := range before.Values {
			next.Values[name] = value
		}
	}
	if r.Remove {
		delete(next.Values, r.QuotaKey)
	} else {
		next.Values[r.QuotaKey] = r.Value
	}
	if len(next.Values) == 0 {
		m.next.security.quotas.remove(m.edit, key)
	} else {
		m.next.security.quotas.put(m.edit, key, next)
	}
	m.touched.security = true
	return nil
}
