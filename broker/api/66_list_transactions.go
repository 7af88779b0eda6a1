// ListTransactions, versions 0 to 2 (KIP-664).
//
//	1: only transactions that have been open for some time (KIP-994). 2: only transactional ids that match a pattern (KIP-1152).
//
// It lists the transactional ids of which this node is the coordinator: clients ask all brokers.
//
// Differences from Apache Kafka: none.
package api

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
)

func (h *Handlers) listTransactions(c *Context, request *kmsg.ListTransactionsRequest) Reply {
	response := request.ResponseKind().(*kmsg.ListTransactionsResponse)
	filter, unknown, err := txn.NewFilter(request)
	if err != nil {
		response.ErrorCode = c.code(err)
		return Respond(response)
	}
	response.UnknownStateFilters = unknown
	reply, complete := c.Pending()
	partitions := h.Transactions.Partitions()
	listed := make([][]kmsg.ListTransactionsResponseTransactionState, len(partitions))
	failed := make([]error, len(partitions))
	all := newCountdown(len(partitions), func() {
		if i := slices.IndexFunc(failed, func(err error) bool { return err != nil }); i >= 0 {
			response.ErrorCode = c.code(failed[i])
		} else {
			response.TransactionStates = slices.Concat(listed...)
		}
		complete(response)
	})
	for i, index := range partitions {
		h.Transactions.Submit(index, func(m *txn.Machine, nowMs int64) (machine.Effects, error) {
			listed[i] = m.List(nowMs, filter)
			return machine.Effects{}, nil
		}, func(err error) {
			if err = txn.OperationError(err); errors.Is(err, kerr.NotCoordinator) {
				listed[i] = nil // it has moved; its new coordinator lists it
			} else {
				failed[i] = err
			}
			all.done()
		})
	}
	return reply
}
