package record

// EndTxnBatch makes the batch that ends a producer's transaction in one partition.
func EndTxnBatch(id ProducerID, epoch ProducerEpoch, m EndTxnMarker, timestampMs int64) (Batch, error) {
	o := BuilderOptions{
		ProducerID: id, ProducerEpoch: epoch, BaseSequence: NoSequence, Transactional: true, Control: true, LeaderEpoch: NoLeaderEpoch,
	}
	return NewBuilder(o).Add(ControlRecord(m, timestampMs)).Build()
}
