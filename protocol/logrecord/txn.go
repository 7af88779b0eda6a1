package logrecord

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// KeyTransaction is the one type of record in __transaction_state: the version at the start of a key.
const KeyTransaction int16 = 0

// maxTransactionValue is the newest version of the value. 1 is flexible, and the first that can say of version 2 of transactions what there
// is to say (KIP-890).
const maxTransactionValue int16 = 1

// TransactionKey is the key of a record in __transaction_state.
type TransactionKey struct {
	Type            int16  // KeyTransaction, or one that this package does not know: then nothing else is set
	TransactionalID string // whose transactions the record is about
}

// Known says whether this package can parse the value that belongs to the key.
func (k TransactionKey) Known() bool { return k.Type == KeyTransaction }

// ParseTransactionKey reads the key of a record in __transaction_state. A type from the future is no error; see TransactionKey.Known.
// The result shares no memory with key. A null value beside it is a tombstone: it deletes what the key names.
func ParseTransactionKey(key []byte) (TransactionKey, error) {
	if len(key) < 2 {
		return TransactionKey{}, fmt.Errorf("transaction record key of %d bytes", len(key))
	}
	k := TransactionKey{Type: int16(binary.BigEndian.Uint16(key))}
	if !k.Known() {
		return k, nil
	}
	var v kmsg.TxnMetadataKey
	if err := v.ReadFrom(key); err != nil {
		return TransactionKey{}, fmt.Errorf("transaction record key: %w", err)
	}
	k.TransactionalID = v.TransactionalID
	return k, nil
}

// AppendTransactionKey appends the key of a transactional id's state.
func AppendTransactionKey(dst []byte, transactionalID string) []byte {
	k := kmsg.TxnMetadataKey{Version: KeyTransaction, TransactionalID: transactionalID}
	return k.AppendTo(dst)
}

// ParseTransactionValue reads the state of a transactional id, in any version. Fields that the version lacks have Kafka's defaults: -1 for
// the previous and the next producer id, and version 0 of transactions. The result shares no memory with value.
func ParseTransactionValue(value []byte) (kmsg.TxnMetadataValue, error) {
	v := kmsg.NewTxnMetadataValue()
	if err := checkValueVersion(value, maxTransactionValue); err != nil {
		return v, fmt.Errorf("transaction value: %w", err)
	}
	if err := v.ReadFrom(value); err != nil {
		return v, fmt.Errorf("transaction value of version %d: %w", v.Version, err)
	}
	return v, nil
}

// AppendTransactionValue appends the state of a transactional id, in the version that v says.
func AppendTransactionValue(dst []byte, v kmsg.TxnMetadataValue) []byte { return v.AppendTo(dst) }
