package group

import (
	"cmp"
	"maps"
	"slices"
)

// expireOffsets forgets offsets that have been kept long enough, and groups of which nothing is left.
func (o *op) expireOffsets() {
	o.effects.Splittable = true
	for _, id := range sortedKeys(o.groups) {
		g := o.groups[id]
		if o.expireOffsetsOf(g) && g.state == stateEmpty {
			o.effects.Records = append(o.effects.Records, &groupMetadataRecord{group: id})
		}
	}
}

// expireOffsetsOf forgets expired offsets of one group, and reports whether none is left.
func (o *op) expireOffsetsOf(g *classicGroup) (none bool) {
	none = len(o.offsets.open[g.id]) == 0
	topics := o.offsets.byGroup[g.id]
	if len(topics) == 0 {
		return none
	}
	since, expires := g.expiry()
	if !expires {
		return false
	}
	for _, topic := range sortedKeys(topics) {
		if g.isSubscribedTo(topic) {
			none = false
			continue
		}
		for _, partition := range slices.Sorted(maps.Keys(topics[topic])) {
			c := topics[topic][partition]
			expired := o.nowMs-since(c) >= o.cfg.OffsetsRetentionMs
			if c.expiresAtMs != neverExpires {
				expired = o.nowMs >= c.expiresAtMs
			}
			if expired && !o.offsets.isOpen(g.id, topic, partition) {
				o.forgetOffset(g.id, topic, partition)
			} else {
				none = false
			}
		}
	}
	return none
}

// expiry says from when on a group's offsets are kept for the retention time; false while they do not expire.
func (g *classicGroup) expiry() (sinceMs func(*committedOffset) int64, expires bool) {
	committedAt := func(c *committedOffset) int64 { return c.committedAtMs }
	switch {
	case g.protocolType == "":
		return committedAt, true // never joined: each offset has its own time
	case g.state == stateEmpty:
		if g.stateSinceMs == noStateTimestamp {
			return committedAt, true
		}
		return func(*committedOffset) int64 { return g.stateSinceMs }, true // from when the last member left
	case g.usesConsumerProtocol() && g.subscribed != nil && g.state == stateStable:
		return committedAt, true // of topics that are not read any more
	}
	return nil, false
}

func comparePartitions(a, b partitionKey) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}
