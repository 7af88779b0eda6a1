package metadata

import "sluice/protocol/uuid"

// security is kept from the log as it is; what enforces it reads it from the image.
type security struct{}

// uuidKey orders ids as trees need it.
type uuidKey string

func keyOf(id uuid.UUID) uuidKey { return uuidKey(id[:]) }
