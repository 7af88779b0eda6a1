package record

// Verification is what is known, beside a partition's log, about the transaction of a batch that may begin one in the log. A marker that
// came late, or a producer that never told its coordinator, must not leave a transaction there that nobody will ever end (KIP-890). The zero
// value asks nothing, as for followers.
type Verification struct {
	Required bool  // without a transaction open in the log, the batch is refused unless the coordinator knows that it belongs to one
	AsOf     int64 // the log end offset from before the coordinator was asked and said so; NoOffset when it was not
	V2       bool  // the client gives each transaction an epoch of its own: no marker can have come in between
}
