// Package proto holds the description of the REST API. The protocol itself is in the .proto files and the code generated
// from them.
package proto

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
)

var (
	//go:embed gen/openapi/dagbridge.swagger.json
	generated []byte
	// overlay is what the generator cannot know: the streaming routes, and that Json is any value.
	//
	//go:embed openapi.overlay.json
	overlay []byte
)

// OpenAPI is the description of the REST API: OpenAPI 2, in JSON.
var OpenAPI = sync.OnceValues(func() ([]byte, error) {
	api, ours := make(map[string]any), make(map[string]map[string]any)
	if err := json.Unmarshal(generated, &api); err != nil {
		return nil, fmt.Errorf("reading the generated description: %w", err)
	}
	if err := json.Unmarshal(overlay, &ours); err != nil {
		return nil, fmt.Errorf("reading openapi.overlay.json: %w", err)
	}
	for section, entries := range ours {
		into, ok := api[section].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("the generated description has no %s", section)
		}
		maps.Copy(into, entries)
	}
	return json.Marshal(api)
})
