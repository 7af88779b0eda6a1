// DescribeTransactions, version 0 (KIP-664).
//
// Differences from Apache Kafka: none.
package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
)

func (h *Handlers) describeTransactions(c *Context, request *kmsg.DescribeTransactionsRequest) Reply {
	response := request.ResponseKind().(*kmsg.DescribeTransactionsResponse)
	response.TransactionStates = make([]kmsg.DescribeTransactionsResponseTransactionState, len(request.TransactionalIDs))
	reply, complete := c.Pending()
	all := newCountdown(len(request.TransactionalIDs), func() { complete(response) })
	for i, id := range request.TransactionalIDs {
		described := &response.TransactionStates[i]
		fail := func(err error) {
			*described = kmsg.NewDescribeTransactionsResponseTransactionState()
			described.TransactionalID, described.ErrorCode = id, c.code(err)
			all.done()
		}
		if id == "" {
			fail(kerr.InvalidRequest)
			continue
		}
		h.submitTransaction(id, func(m *txn.Machine, _ int64) (machine.Effects, error) {
			*described = m.Describe(id)
			return machine.Effects{}, nil
		}, func(err error) {
			if err != nil {
				fail(err)
				return
			}
			all.done()
		})
	}
	return reply
}
