// AddPartitionsToTxn, versions 0 to 5.
//
//	2: PRODUCER_FENCED. 3: flexible. 4: several transactions, and whether to add the partitions or only to ask for them: sent by brokers.
//	5: TRANSACTION_ABORTABLE (KIP-890).
//
// Clients of version 1 of transactions name the partitions that they are about to write to. When one of them does not exist, none is added:
// the others are OPERATION_NOT_ATTEMPTED.
//
// Differences from Apache Kafka: requests that follow each other before the first is committed are not refused with CONCURRENT_TRANSACTIONS.
package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
)

const (
	firstAddManyTransactions = 4 // the version of AddPartitionsToTxn that brokers send
	firstAddFenced           = 2 // the version with PRODUCER_FENCED, of AddOffsetsToTxn as well
)

func (h *Handlers) addPartitionsToTxn(c *Context, request *kmsg.AddPartitionsToTxnRequest) Reply {
	response := request.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	many := c.Version >= firstAddManyTransactions
	transactions := request.Transactions
	if !many {
		one := kmsg.NewAddPartitionsToTxnRequestTransaction()
		one.TransactionalID, one.ProducerID, one.ProducerEpoch = request.TransactionalID, request.ProducerID, request.ProducerEpoch
		for _, t := range request.Topics {
			one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.Topic, Partitions: t.Partitions})
		}
		transactions = []kmsg.AddPartitionsToTxnRequestTransaction{one}
	}
	results := make([]kmsg.AddPartitionsToTxnResponseTransaction, len(transactions))
	reply, complete := c.Pending()
	all := newCountdown(len(transactions), func() {
		if many {
			response.Transactions = results
			complete(response)
			return
		}
		for _, t := range results[0].Topics {
			topic := kmsg.AddPartitionsToTxnResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: p.Partition, ErrorCode: p.ErrorCode})
			}
			response.Topics = append(response.Topics, topic)
		}
		complete(response)
	})
	for i := range transactions {
		h.addOrVerify(c, &transactions[i], &results[i], all.done)
	}
	return reply
}

// mayJoin says whether partitions of a topic can be part of a transaction: clients add those of groups with AddOffsetsToTxn, and nobody the
// logs of other coordinators.
func mayJoin(topic string, version int16) bool {
	return !isInternalTopic(topic) || topic == group.Topic && version >= firstAddManyTransactions
}

// addOrVerify serves one transaction of the request.
func (h *Handlers) addOrVerify(c *Context, asked *kmsg.AddPartitionsToTxnRequestTransaction, result *kmsg.AddPartitionsToTxnResponseTransaction, done func()) {
	result.TransactionalID = asked.TransactionalID
	result.Topics = make([]kmsg.AddPartitionsToTxnResponseTransactionTopic, len(asked.Topics))
	partitions := make([]txn.TopicPartitions, 0, len(asked.Topics))
	image := h.Controller.Image()
	missing := false // or forbidden
	for i, t := range asked.Topics {
		if len(t.Partitions) > 0 {
			partitions = append(partitions, txn.TopicPartitions{Topic: t.Topic, Partitions: t.Partitions})
		}
		result.Topics[i].Topic = t.Topic
		result.Topics[i].Partitions = make([]kmsg.AddPartitionsToTxnResponseTransactionTopicPartition, len(t.Partitions))
		topic, exists := image.Topic(t.Topic)
		for j, p := range t.Partitions {
			r := &result.Topics[i].Partitions[j]
			r.Partition = p
			switch {
			case !mayJoin(t.Topic, c.Version):
				r.ErrorCode = kerr.TopicAuthorizationFailed.Code
			case !exists || p < 0 || int(p) >= len(topic.Partitions):
				r.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
			missing = missing || r.ErrorCode != 0
		}
	}
	// setAll gives all partitions the code that it is told for each.
	setAll := func(code func(topic string, p *kmsg.AddPartitionsToTxnResponseTransactionTopicPartition) int16) {
		for i := range result.Topics {
			for j := range result.Topics[i].Partitions {
				p := &result.Topics[i].Partitions[j]
				p.ErrorCode = code(result.Topics[i].Topic, p)
			}
		}
	}
	switch producer := (machine.Producer{ID: asked.ProducerID, Epoch: asked.ProducerEpoch}); {
	case missing:
		setAll(func(_ string, p *kmsg.AddPartitionsToTxnResponseTransactionTopicPartition) int16 {
			if p.ErrorCode == 0 {
				return kerr.OperationNotAttempted.Code
			}
			return p.ErrorCode
		})
		done()
	case asked.TransactionalID == "":
		setAll(func(string, *kmsg.AddPartitionsToTxnResponseTransactionTopicPartition) int16 {
			return kerr.InvalidRequest.Code
		})
		done()
	case asked.VerifyOnly:
		h.submitTransaction(asked.TransactionalID, func(m *txn.Machine, _ int64) (machine.Effects, error) {
			setAll(func(topic string, p *kmsg.AddPartitionsToTxnResponseTransactionTopicPartition) int16 {
				return code(m.VerifyPartition(asked.TransactionalID, producer, topic, p.Partition))
			})
			return machine.Effects{}, nil
		}, func(err error) {
			if err != nil {
				failed := c.code(err)
				setAll(func(string, *kmsg.AddPartitionsToTxnResponseTransactionTopicPartition) int16 { return failed })
			}
			done()
		})
	default:
		add := txn.AddRequest{TransactionalID: asked.TransactionalID, Producer: producer, Partitions: partitions}
		if c.Version >= firstAddManyTransactions {
			add.Version = txn.TransactionsV2
		}
		h.submitTransaction(asked.TransactionalID, func(m *txn.Machine, nowMs int64) (machine.Effects, error) {
			return m.AddPartitions(nowMs, add)
		}, func(err error) {
			added := c.code(unfenced(err, c.Version >= firstAddFenced))
			setAll(func(string, *kmsg.AddPartitionsToTxnResponseTransactionTopicPartition) int16 { return added })
			done()
		})
	}
}
