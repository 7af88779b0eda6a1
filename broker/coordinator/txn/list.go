package txn

import (
	"regexp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Describe returns what is known of a transactional id.
func (m *Machine) Describe(transactionalID string) kmsg.DescribeTransactionsResponseTransactionState {
	d := kmsg.NewDescribeTransactionsResponseTransactionState()
	d.TransactionalID = transactionalID
	t := m.transactions[transactionalID]
	if t == nil {
		d.ErrorCode = kerr.TransactionalIDNotFound.Code
		return d
	}
	d.State = t.status.String()
	d.TimeoutMillis = t.timeoutMs
	d.StartTimestamp = t.startMs
	d.ProducerID, d.ProducerEpoch = t.producerID, t.epoch
	partitions := t.partitions
	if t.completion != nil {
		partitions = t.completion.unmarked
	}
	for _, p := range partitions {
		d.Topics = append(d.Topics, kmsg.DescribeTransactionsResponseTransactionStateTopic{Topic: p.Topic, Partitions: slices.Clone(p.Partitions)})
	}
	return d
}

// A Filter says which transactional ids are to be listed. The zero value lists none; see NewFilter.
type Filter struct {
	producerIDs []int64
	statuses    map[string]bool // nil: all
	longerMs    int64           // below 0: all
	pattern     *regexp.Regexp  // of the whole id; nil: all
}

// NewFilter reads the filters of a request. unknownStates are those that do not exist. An error says that the pattern is none.
func NewFilter(req *kmsg.ListTransactionsRequest) (f *Filter, unknownStates []string, err error) {
	f = &Filter{producerIDs: req.ProducerIDFilters, longerMs: req.DurationFilterMillis}
	if len(req.StateFilters) > 0 {
		f.statuses = map[string]bool{}
	}
	for _, name := range req.StateFilters {
		if slices.Contains(statusNames[:], name) || slices.Contains(transientStatusNames[:], name) {
			f.statuses[name] = true
		} else if !slices.Contains(unknownStates, name) {
			unknownStates = append(unknownStates, name)
		}
	}
	if p := req.TransactionalIDPattern; p != nil && *p != "" {
		if _, err = regexp.Compile(*p); err == nil {
			f.pattern, err = regexp.Compile(`\A(?:` + *p + `)\z`)
		}
		if err != nil {
			return nil, nil, kerr.InvalidRegularExpression
		}
	}
	return f, unknownStates, nil
}

// List returns the transactional ids that the filter lets through, by id.
func (m *Machine) List(nowMs int64, f *Filter) []kmsg.ListTransactionsResponseTransactionState {
	var listed []kmsg.ListTransactionsResponseTransactionState
	for _, id := range sortedKeys(m.transactions) {
		t := m.transactions[id]
		switch {
		case len(f.producerIDs) > 0 && !slices.Contains(f.producerIDs, t.producerID):
		case f.statuses != nil && !f.statuses[t.status.String()]:
		case f.longerMs >= 0 && nowMs-t.startMs <= f.longerMs:
		case f.pattern != nil && !f.pattern.MatchString(id):
		default:
			l := kmsg.NewListTransactionsResponseTransactionState()
			l.TransactionalID, l.ProducerID, l.TransactionState = id, t.producerID, t.status.String()
			listed = append(listed, l)
		}
	}
	return listed
}
