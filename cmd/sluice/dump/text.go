package dump

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"sluice/storage/checkpoint"
)

// epochEntry says at which offset a leader epoch began.
type epochEntry struct{ epoch, start int64 }

func (p *printer) epochEntries(one func(epochEntry)) error {
	content, err := p.content()
	if err != nil {
		return err
	}
	last := epochEntry{-1, -1}
	return checkpoint.ParseEntries(p.path, content, func(line string) error {
		fields, err := checkpoint.Fields(line, 2)
		if err != nil {
			return err
		}
		epoch, err := checkpoint.Int("epoch", fields[0], 32)
		if err != nil {
			return err
		}
		offset, err := checkpoint.Int("offset", fields[1], 64)
		if err != nil {
			return err
		}
		one(epochEntry{epoch, offset})
		if epoch <= last.epoch || offset < last.start {
			return fmt.Errorf("epochs must grow and start offsets must not fall")
		}
		last = epochEntry{epoch, offset}
		return nil
	})
}

// leaderEpochs prints the offsets at which leader epochs began.
func (p *printer) leaderEpochs() error {
	return p.epochEntries(func(e epochEntry) { p.printf("epoch leaderEpoch=%d startOffset=%d", e.epoch, e.start) })
}

// offsets prints an offset checkpoint.
func (p *printer) offsets() error {
	content, err := p.content()
	if err != nil {
		return err
	}
	offsets, err := checkpoint.ParseOffsets(p.path, content)
	for _, tp := range slices.SortedFunc(maps.Keys(offsets), checkpoint.TopicPartition.Compare) {
		p.printf("partition topic=%s partition=%d offset=%d", tp.Topic, tp.Partition, offsets[tp])
	}
	return err
}

func (p *printer) partitionMetadata() error {
	content, err := p.content()
	if err != nil {
		return err
	}
	id, err := checkpoint.ParsePartitionMetadata(p.path, content)
	if err == nil {
		p.printf("topic topicId=%s", id)
	}
	return err
}

func (p *printer) metaProperties() error {
	content, err := p.content()
	if err != nil {
		return err
	}
	m, err := checkpoint.ParseMetaProperties(p.path, content)
	if err == nil {
		p.printf("directory version=%d clusterId=%s nodeId=%d directoryId=%s", m.Version, m.ClusterID, m.NodeID, m.DirectoryID)
	}
	return err
}

func (p *printer) cleanShutdown() error {
	content, err := p.content()
	if err != nil {
		return err
	}
	epoch, err := checkpoint.ParseCleanShutdown(p.path, content)
	if err == nil {
		p.printf("shutdown brokerEpoch=%d", epoch)
	}
	return err
}

// quorumState prints what a member of the metadata quorum remembers of the last election.
func (p *printer) quorumState() error {
	content, err := p.content()
	if err != nil {
		return err
	}
	var state struct {
		Version          *int16 `json:"data_version"`
		LeaderID         int32  `json:"leaderId"`
		LeaderEpoch      *int32 `json:"leaderEpoch"`
		VotedID          int32  `json:"votedId"`
		VotedDirectoryID string `json:"votedDirectoryId"`
		CurrentVoters    []struct {
			VoterID int32 `json:"voterId"`
		} `json:"currentVoters"`
	}
	corrupt := func(format string, args ...any) error {
		return &checkpoint.Corrupt{Path: p.path, Reason: fmt.Sprintf(format, args...)}
	}
	if err := json.Unmarshal(content, &state); err != nil {
		return corrupt("%v", err)
	}
	if state.Version == nil || state.LeaderEpoch == nil {
		return corrupt("data_version or leaderEpoch is missing")
	}
	text := fmt.Sprintf("quorum version=%d leaderId=%d leaderEpoch=%d votedId=%d", *state.Version, state.LeaderID, *state.LeaderEpoch, state.VotedID)
	switch *state.Version {
	case 0:
		text += " currentVoters="
		for i, v := range state.CurrentVoters {
			if i > 0 {
				text += ","
			}
			text += strconv.Itoa(int(v.VoterID))
		}
	case 1:
		text += " votedDirectoryId=" + state.VotedDirectoryID
	default:
		return corrupt("data_version %d is unknown", *state.Version)
	}
	p.printf("%s", text)
	return nil
}
