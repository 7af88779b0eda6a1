package diff

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// fault is a mistake that a broker could make in one answer.
type fault struct {
	name string
	only []string // names of scenarios that show it
	make func(a *answer) bool
	// always makes it in every answer that has a place for it, not in the first only.
	always bool
}

// in makes a fault in every response of a type.
func in[R kmsg.Response](change func(r R) bool) func(a *answer) bool {
	return func(a *answer) bool {
		r, ok := a.response.(R)
		return ok && change(r)
	}
}

var (
	fetching  = []string{"fetch/where and how much v12", "fetch/session v12"}
	producing = []string{"produce/idempotence v9", "produce/several partitions v10"}
	grouping  = []string{"groups/two members, join v7", "groups/static members, join v9", "groups/offsets, commit v8"}
	managing  = []string{"topics/create", "topics/partitions", "topics/delete", "configs/topic configs"}
)

// faults are seeded one at a time; the comparison must find each. They are of every kind: codes, offsets, ids, lists, nulls, texts, times, records,
// and answers that do not come.
var faults = []fault{
	{name: "no answer at all", only: fetching, make: func(a *answer) bool { *a = answer{outcome: closed}; return true }},
	{name: "bytes that are no answer", only: fetching, make: func(a *answer) bool { *a = answer{outcome: garbled, detail: "seeded"}; return true }},
	{name: "an error code instead of none", only: producing, make: in(func(r *kmsg.ProduceResponse) bool {
		return eachPart(r, func(p *kmsg.ProduceResponseTopicPartition) bool { was := p.ErrorCode; p.ErrorCode = 1; return was == 0 })
	})},
	{name: "none instead of an error code", only: producing, make: in(func(r *kmsg.ProduceResponse) bool {
		return eachPart(r, func(p *kmsg.ProduceResponseTopicPartition) bool { was := p.ErrorCode; p.ErrorCode = 0; return was != 0 })
	})},
	{name: "a base offset one too high", only: producing, make: in(func(r *kmsg.ProduceResponse) bool {
		return eachPart(r, func(p *kmsg.ProduceResponseTopicPartition) bool { p.BaseOffset++; return true })
	})},
	{name: "a log append time where there is none", only: producing, make: in(func(r *kmsg.ProduceResponse) bool {
		return eachPart(r, func(p *kmsg.ProduceResponseTopicPartition) bool { p.LogAppendTime = 5; return true })
	})},
	{name: "one producer id for two producers", only: producing, make: in(func(r *kmsg.InitProducerIDResponse) bool { r.ProducerID = 7; return true }), always: true},
	{name: "a producer epoch of 1", only: producing, make: in(func(r *kmsg.InitProducerIDResponse) bool { r.ProducerEpoch = 1; return true })},
	{name: "throttled", only: fetching, make: in(func(r *kmsg.FetchResponse) bool { r.ThrottleMillis = 1; return true })},
	{name: "a high watermark of 0", only: fetching, make: in(func(r *kmsg.FetchResponse) bool {
		return eachFetched(r, func(p *kmsg.FetchResponseTopicPartition) bool {
			was := p.HighWatermark
			p.HighWatermark = 0
			return was > 0
		})
	})},
	{name: "a flipped bit in a record", only: fetching, make: in(func(r *kmsg.FetchResponse) bool {
		return eachFetched(r, func(p *kmsg.FetchResponseTopicPartition) bool {
			b := p.RecordBatches
			if len(b) < 70 {
				return false
			}
			b[len(b)-2] ^= 1
			return true
		})
	})},
	{name: "a wrong checksum", only: fetching, make: in(func(r *kmsg.FetchResponse) bool {
		return eachFetched(r, func(p *kmsg.FetchResponseTopicPartition) bool {
			if len(p.RecordBatches) < 61 {
				return false
			}
			p.RecordBatches[17] ^= 1
			return true
		})
	})},
	{name: "a partition that is not answered", only: fetching, make: in(func(r *kmsg.FetchResponse) bool {
		for i := range r.Topics {
			if n := len(r.Topics[i].Partitions); n > 0 {
				r.Topics[i].Partitions = r.Topics[i].Partitions[:n-1]
				return true
			}
		}
		return false
	})},
	{name: "aborted transactions null instead of empty", only: fetching, make: in(func(r *kmsg.FetchResponse) bool {
		return eachFetched(r, func(p *kmsg.FetchResponseTopicPartition) bool {
			was := p.AbortedTransactions
			p.AbortedTransactions = nil
			return was != nil
		})
	})},
	{name: "another session in the middle", only: fetching, make: func() func(a *answer) bool {
		n := int32(0)
		return in(func(r *kmsg.FetchResponse) bool { n++; was := r.SessionID; r.SessionID += n; return was != 0 })
	}()},
	{name: "no session", only: fetching, make: in(func(r *kmsg.FetchResponse) bool { was := r.SessionID; r.SessionID = 0; return was != 0 })},
	{name: "another generation", only: grouping, make: in(func(r *kmsg.JoinGroupResponse) bool { r.Generation++; return true })},
	{name: "the wrong leader", only: grouping, make: in(func(r *kmsg.JoinGroupResponse) bool {
		was := r.LeaderID
		r.LeaderID = r.MemberID + "x"
		return was != ""
	})},
	{name: "a member id of another shape", only: grouping, make: in(func(r *kmsg.DescribeGroupsResponse) bool {
		if len(r.Groups[0].Members) == 0 {
			return false
		}
		r.Groups[0].Members[0].MemberID += "1"
		return true
	})},
	{name: "members told to a follower", only: grouping, make: in(func(r *kmsg.JoinGroupResponse) bool {
		was := len(r.Members)
		r.Members = append(r.Members, kmsg.NewJoinGroupResponseMember())
		return was == 0
	})},
	{name: "an assignment that is lost", only: grouping, make: in(func(r *kmsg.SyncGroupResponse) bool {
		was := r.MemberAssignment
		r.MemberAssignment = []byte{}
		return len(was) > 0
	})},
	{name: "a heartbeat that hides a rebalance", only: grouping, make: in(func(r *kmsg.HeartbeatResponse) bool { was := r.ErrorCode; r.ErrorCode = 0; return was != 0 })},
	{name: "a group state", only: grouping, make: in(func(r *kmsg.DescribeGroupsResponse) bool { r.Groups[0].State = "stable"; return true })},
	{name: "a committed offset", only: grouping, make: in(func(r *kmsg.OffsetFetchResponse) bool {
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				r.Topics[i].Partitions[j].Offset++
				return true
			}
		}
		return false
	})},
	{name: "offset metadata null instead of empty", only: grouping, make: in(func(r *kmsg.OffsetFetchResponse) bool {
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				r.Topics[i].Partitions[j].Metadata = nil
				return true
			}
		}
		return false
	})},
	{name: "a topic id of none", only: managing, make: in(func(r *kmsg.CreateTopicsResponse) bool {
		for i := range r.Topics {
			if r.Topics[i].TopicID != ([16]byte{}) {
				r.Topics[i].TopicID = [16]byte{}
				return true
			}
		}
		return false
	})},
	{name: "an error message", only: managing, make: in(func(r *kmsg.CreateTopicsResponse) bool {
		for i := range r.Topics {
			if m := r.Topics[i].ErrorMessage; m != nil {
				r.Topics[i].ErrorMessage = pointer(*m + ".")
				return true
			}
		}
		return false
	})},
	{name: "configs that are missing", only: managing, make: in(func(r *kmsg.CreateTopicsResponse) bool {
		for i := range r.Topics {
			if n := len(r.Topics[i].Configs); n > 0 {
				r.Topics[i].Configs = r.Topics[i].Configs[:n-1]
				return true
			}
		}
		return false
	})},
	{name: "the source of a config", only: managing, make: in(func(r *kmsg.DescribeConfigsResponse) bool {
		for i := range r.Resources {
			for j := range r.Resources[i].Configs {
				r.Resources[i].Configs[j].Source ^= 1
				return true
			}
		}
		return false
	})},
	{name: "a partition too many", only: managing, make: in(func(r *kmsg.MetadataResponse) bool {
		for i := range r.Topics {
			if ps := r.Topics[i].Partitions; len(ps) > 0 {
				r.Topics[i].Partitions = append(ps, ps[0])
				return true
			}
		}
		return false
	}), always: true},
	{name: "an unknown tagged field", only: managing, make: in(func(r *kmsg.CreateTopicsResponse) bool {
		r.UnknownTags.Set(77, []byte{1})
		return true
	})},
}

func eachPart(r *kmsg.ProduceResponse, change func(p *kmsg.ProduceResponseTopicPartition) bool) bool {
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			if change(&r.Topics[i].Partitions[j]) {
				return true
			}
		}
	}
	return false
}

func eachFetched(r *kmsg.FetchResponse, change func(p *kmsg.FetchResponseTopicPartition) bool) bool {
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			if change(&r.Topics[i].Partitions[j]) {
				return true
			}
		}
	}
	return false
}

// TestFaultsAreFound compares Sluice with itself, two processes: without a fault nothing differs, and with one in a single answer that is found, wherever it is. A
// fault that no answer offers a place for fails too.
func TestFaultsAreFound(t *testing.T) {
	var addresses [2]string
	for i := range addresses {
		p := sluicetest.StartShared(t)
		t.Cleanup(p.Kill)
		addresses[i] = p.Address
	}
	prepare(t, addresses)
	byName := map[string]Scenario{}
	for _, s := range scenarios() {
		byName[s.Name] = s
	}
	var n atomic.Int32
	run := func(t *testing.T, name string, tamper func(a *answer)) *report {
		t.Helper()
		s, ok := byName[name]
		if !ok {
			t.Fatalf("no scenario %q", name)
		}
		report := newReport()
		r := newRun(t, s.Name, fmt.Sprintf("dffffff-%03d-", n.Add(1)), addresses, report)
		r.tamper = tamper
		defer r.close()
		s.Steps(r)
		return report
	}
	var all []string
	for _, f := range faults {
		all = append(all, f.only...)
	}
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		for _, f := range run(t, name, nil).found {
			t.Errorf("%s: %s differs from itself at %s: %s, %s", f.scenario, f.step, f.at, f.values[0], f.values[1])
		}
	}
	if len(faults) < 20 {
		t.Errorf("only %d faults", len(faults))
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range f.only {
				var once sync.Mutex
				made := 0
				report := run(t, name, func(a *answer) {
					once.Lock()
					defer once.Unlock()
					if (made == 0 || f.always) && a.outcome == replied {
						changed := *a
						if a.response != nil {
							changed.response = cloneResponse(a.response)
						}
						if f.make(&changed) {
							made++
							*a = changed
						}
					}
				})
				if made > 0 {
					if len(report.found) == 0 {
						t.Errorf("not found in %s", name)
					}
					return
				}
			}
			t.Error("no answer has a place for it")
		})
	}
}

// cloneResponse copies a response, so that a change that is not kept leaves no trace.
func cloneResponse(r kmsg.Response) kmsg.Response {
	v := reflect.New(reflect.TypeOf(r).Elem())
	copyInto(v.Elem(), reflect.ValueOf(r).Elem())
	return v.Interface().(kmsg.Response)
}
