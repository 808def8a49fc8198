// Package proto holds the description of the REST API. The protocol itself is in the .proto files and the code generated
// from them.
package proto

import _ "embed"

// OpenAPI is the description of the REST API: OpenAPI 2, in JSON, as it is generated.
//
//go:embed gen/openapi/dagbridge.swagger.json
var OpenAPI []byte
