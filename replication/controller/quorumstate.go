package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"sluice/protocol/record"
	"sluice/replication/metadata"
	"sluice/replication/quorum"
	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
)

// quorumStateFile keeps epoch, leader and vote over a restart, in Kafka's format.
const quorumStateFile = "quorum-state"

// quorumStateV0 is the file's one line for a quorum with static voters, its fields in Kafka's order.
type quorumStateV0 struct {
	ClusterID     string        `json:"clusterId"` // always empty
	LeaderID      int32         `json:"leaderId"`
	LeaderEpoch   int32         `json:"leaderEpoch"`
	VotedID       int32         `json:"votedId"`
	AppliedOffset int64         `json:"appliedOffset"` // always 0
	CurrentVoters []quorumVoter `json:"currentVoters"`
	DataVersion   *int16        `json:"data_version"`
}

type quorumVoter struct {
	VoterID int32 `json:"voterId"`
}

func writeQuorumState(fsys vfs.FS, dir string, s quorum.HardState, voters []metadata.BrokerID) error {
	content := quorumStateV0{LeaderID: int32(s.LeaderID), LeaderEpoch: int32(s.Epoch), VotedID: int32(s.VotedID), CurrentVoters: []quorumVoter{}, DataVersion: new(int16)}
	for _, id := range voters {
		content.CurrentVoters = append(content.CurrentVoters, quorumVoter{int32(id)})
	}
	line, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return checkpoint.WriteFile(fsys, dir+"/"+quorumStateFile, line)
}

// readQuorumState reads the file; a missing one is the state of a node that has never voted.
func readQuorumState(fsys vfs.FS, dir string, voters []metadata.BrokerID) (quorum.HardState, error) {
	none := quorum.HardState{LeaderID: quorum.NoNode, VotedID: quorum.NoNode}
	path := dir + "/" + quorumStateFile
	content, err := checkpoint.ReadFile(fsys, path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	return parseQuorumState(path, content, voters)
}

func parseQuorumState(path string, content []byte, voters []metadata.BrokerID) (quorum.HardState, error) {
	none := quorum.HardState{LeaderID: quorum.NoNode, VotedID: quorum.NoNode}
	corrupt := func(format string, args ...any) (quorum.HardState, error) {
		return none, &checkpoint.Corrupt{Path: path, Reason: fmt.Sprintf(format, args...)}
	}
	line, _, _ := bytes.Cut(content, []byte("\n"))
	var s quorumStateV0
	if err := json.Unmarshal(line, &s); err != nil {
		return corrupt("%v", err)
	}
	switch {
	case s.DataVersion == nil:
		return corrupt("data_version is missing")
	case *s.DataVersion == 1:
		return none, fmt.Errorf("%s is of a quorum whose voters can change (kraft.version 1); only static voters are supported", path)
	case *s.DataVersion != 0:
		return corrupt("data_version %d is unknown", *s.DataVersion)
	case s.LeaderEpoch < 0 || s.LeaderID < -1 || s.VotedID < -1:
		return corrupt("leaderEpoch %d, leaderId %d, votedId %d", s.LeaderEpoch, s.LeaderID, s.VotedID)
	}
	for _, v := range s.CurrentVoters {
		if len(s.CurrentVoters) != len(voters) || v.VoterID != int32(voters[0]) {
			return none, fmt.Errorf("%s is of the voters %v, configured are %v", path, s.CurrentVoters, voters)
		}
	}
	return quorum.HardState{Epoch: record.LeaderEpoch(s.LeaderEpoch), LeaderID: quorum.NodeID(s.LeaderID), VotedID: quorum.NodeID(s.VotedID)}, nil
}
