package dump

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/storage/logdir"
)

// decoder prints the key, value and headers of a record. With an error it gives the bytes as they are.
type decoder func(p *printer, r record.Record) (string, error)

// decoderFor chooses how the records of a topic are read.
func decoderFor(topic string) decoder {
	switch topic {
	case logdir.MetadataTopic:
		return clusterRecord
	case "__consumer_offsets":
		return groupRecord
	case "__transaction_state":
		return txnRecord
	}
	return plainRecord
}

func plainRecord(p *printer, r record.Record) (string, error) {
	text := "key=" + p.shown(r.Key) + " value=" + p.shown(r.Value)
	if len(r.Headers) == 0 {
		return text, nil
	}
	headers := make([]string, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = p.shown([]byte(h.Key)) + "=" + p.shown(h.Value)
	}
	return text + " headers=[" + strings.Join(headers, " ") + "]", nil
}

// orPlain gives the bytes of a record that cannot be decoded.
func orPlain(p *printer, r record.Record, text string, err error) (string, error) {
	if err == nil {
		return text, nil
	}
	text, _ = plainRecord(p, r)
	return text, err
}

func controlRecord(p *printer, r record.Record) (string, error) {
	c, err := record.ParseControl(r)
	if err != nil {
		return orPlain(p, r, "", err)
	}
	if _, unknown := c.(record.UnknownControl); unknown {
		text, _ := plainRecord(p, r)
		return fmt.Sprintf("control type=%d %s", c.ControlType(), text), nil
	}
	return "control " + structure(c), nil
}

func clusterRecord(p *printer, r record.Record) (string, error) {
	c, version, err := logrecord.ParseClusterVersion(r.Value)
	if err != nil {
		return orPlain(p, r, "", err)
	}
	return fmt.Sprintf("version=%d %s", version, structure(c)), nil
}

// groupRecord decodes what the classic group protocol writes; records of the newer protocols are given as bytes with their type.
func groupRecord(p *printer, r record.Record) (string, error) {
	key, err := logrecord.ParseGroupKey(r.Key)
	if err != nil {
		return orPlain(p, r, "", err)
	}
	if !key.Known() {
		text, _ := plainRecord(p, r)
		return fmt.Sprintf("type=%d %s", key.Type, text), nil
	}
	if key.IsOffsetCommit() {
		text := fmt.Sprintf("OffsetCommit group=%q topic=%q partition=%d ", key.Group, key.Topic, key.Partition)
		if r.Value == nil {
			return text + "deleted", nil
		}
		v, err := logrecord.ParseOffsetCommitValue(r.Value)
		return orPlain(p, r, text+fields(reflect.ValueOf(v)), err)
	}
	text := fmt.Sprintf("GroupMetadata group=%q ", key.Group)
	if r.Value == nil {
		return text + "deleted", nil
	}
	v, err := logrecord.ParseGroupMetadataValue(r.Value)
	return orPlain(p, r, text+fields(reflect.ValueOf(v)), err)
}

func txnRecord(p *printer, r record.Record) (string, error) {
	if len(r.Key) < 2 || binary.BigEndian.Uint16(r.Key) > 0 {
		text, _ := plainRecord(p, r)
		return text, nil
	}
	var key kmsg.TxnMetadataKey
	if err := key.ReadFrom(r.Key); err != nil {
		return orPlain(p, r, "", fmt.Errorf("transaction key: %w", err))
	}
	text := fmt.Sprintf("TxnMetadata transactionalId=%q ", key.TransactionalID)
	if r.Value == nil {
		return text + "deleted", nil
	}
	var value kmsg.TxnMetadataValue
	if err := value.ReadFrom(r.Value); err != nil {
		return orPlain(p, r, "", fmt.Errorf("transaction value: %w", err))
	}
	return text + fields(reflect.ValueOf(value)), nil
}
