package metadata

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
)

// DeleteTopics deletes topics by name or id. The response is a *kmsg.DeleteTopicsResponse with one answer a topic, in the order of the request.
func DeleteTopics(req *kmsg.DeleteTopicsRequest) Op {
	return func(m *Machine, _ int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
		wanted := deletions(req)
		names, idents := map[string]int{}, map[uuid.UUID]int{}
		for _, w := range wanted {
			if w.rejected == nil && w.name != nil {
				names[*w.name]++
			} else if w.rejected == nil {
				idents[w.id]++
			}
		}
		var records []logrecord.ClusterRecord
		answered := map[string]bool{} // by name, or by the id's bytes: a double is answered at its first place
		for _, w := range wanted {
			out := kmsg.NewDeleteTopicsResponseTopic()
			out.Topic, out.TopicID = w.name, w.id
			rejected := w.rejected
			switch {
			case rejected != nil:
			case w.name != nil:
				if answered["name "+*w.name] {
					continue
				}
				answered["name "+*w.name] = true
				rejected = m.deleteByName(*w.name, names, idents, &out, &records)
			default:
				t, known := m.next.topicIDs.get(keyOf(w.id))
				if answered["id "+string(w.id[:])] || known && idents[w.id] == 1 && names[t.Name] == 1 {
					continue // named both ways: the answer to the name says so
				}
				answered["id "+string(w.id[:])] = true
				rejected = m.deleteByID(w.id, idents, &out, &records)
			}
			if rejected != nil {
				out.ErrorCode, out.ErrorMessage = rejected.Code, rejected.message()
			}
			resp.Topics = append(resp.Topics, out)
		}
		if len(records) > maxRecordsPerOp {
			return Result{}, errTooLarge
		}
		return Result{Records: records, Response: resp}, nil
	}
}

// A deletion is one topic that a request wants to be gone.
type deletion struct {
	name     *string
	id       uuid.UUID
	rejected *Error
}

// deletions reads both ways in which versions of the request name topics.
func deletions(req *kmsg.DeleteTopicsRequest) []deletion {
	wanted := make([]deletion, 0, len(req.TopicNames)+len(req.Topics))
	for i := range req.TopicNames {
		wanted = append(wanted, deletion{name: &req.TopicNames[i]})
	}
	for i := range req.Topics {
		d := deletion{name: req.Topics[i].Topic, id: req.Topics[i].TopicID}
		switch {
		case d.name == nil && d.id.IsZero():
			d.rejected = reject(kerr.InvalidRequest, "Neither topic name nor id were specified.")
		case d.name != nil && !d.id.IsZero():
			d.rejected = reject(kerr.InvalidRequest, "You may not specify both topic name and topic id.")
		}
		wanted = append(wanted, d)
	}
	return wanted
}

func (m *Machine) deleteByName(name string, names map[string]int, idents map[uuid.UUID]int, out *kmsg.DeleteTopicsResponseTopic, records *[]logrecord.ClusterRecord) *Error {
	if names[name] > 1 {
		return reject(kerr.InvalidRequest, "Duplicate topic name.")
	}
	t, found := m.next.topics.get(name)
	if !found {
		return described(kerr.UnknownTopicOrPartition)
	}
	out.TopicID = t.ID
	if idents[t.ID] != 0 {
		return reject(kerr.InvalidRequest, "The provided topic name maps to an ID that was already supplied.")
	}
	*records = append(*records, &logrecord.RemoveTopicRecord{TopicID: t.ID})
	return nil
}

func (m *Machine) deleteByID(id uuid.UUID, idents map[uuid.UUID]int, out *kmsg.DeleteTopicsResponseTopic, records *[]logrecord.ClusterRecord) *Error {
	if idents[id] > 1 {
		return reject(kerr.InvalidRequest, "Duplicate topic id.")
	}
	t, found := m.next.topicIDs.get(keyOf(id))
	if !found {
		return described(kerr.UnknownTopicID)
	}
	out.Topic = &t.Name
	*records = append(*records, &logrecord.RemoveTopicRecord{TopicID: id})
	return nil
}
