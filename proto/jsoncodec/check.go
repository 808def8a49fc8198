package jsoncodec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Check says which Json of a message hold no JSON: over gRPC they are text that nobody has read yet. Errors are *Error.
func Check(m proto.Message) error {
	var c checker
	c.message(m.ProtoReflect())
	// Maps are walked in no order.
	slices.SortStableFunc(c.faults.Violations, func(a, b violation) int { return strings.Compare(a.GetField(), b.GetField()) })
	return c.faults.orNil()
}

type checker struct {
	path   []byte
	faults Error
}

func (c *checker) message(m protoreflect.Message) {
	md := m.Descriptor()
	if md.FullName() == jsonFullName {
		c.json(m.Interface().(*dagbridgev1.Json).GetText())
		return
	}
	if !holdsJSON(md) {
		return
	}
	parent := len(c.path)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		c.path = AppendName(c.path, fd.JSONName())
		c.field(fd, v)
		c.path = c.path[:parent]
		return true
	})
}

func (c *checker) field(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	name := len(c.path)
	switch {
	case fd.IsMap() && fd.MapValue().Kind() == protoreflect.MessageKind:
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			c.path = AppendName(c.path, k.String())
			c.message(v.Message())
			c.path = c.path[:name]
			return true
		})
	case fd.IsList() && fd.Kind() == protoreflect.MessageKind:
		for i := range v.List().Len() {
			c.path = AppendIndex(c.path, i)
			c.message(v.List().Get(i).Message())
			c.path = c.path[:name]
		}
	case !fd.IsMap() && fd.Kind() == protoreflect.MessageKind:
		c.message(v.Message())
	}
}

func (c *checker) json(text string) {
	switch {
	case !json.Valid([]byte(text)):
		c.faults.add(string(c.path), fmt.Sprintf("is not JSON: %.100q", text))
	case tooDeep([]byte(text)):
		c.faults.add(string(c.path), fmt.Sprintf("is nested more than %d deep", maxDepth))
	}
}

// reachable caches, for each message type, whether a Json can be in it.
var reachable sync.Map

func holdsJSON(md protoreflect.MessageDescriptor) bool {
	if known, ok := reachable.Load(md.FullName()); ok {
		return known.(bool)
	}
	found := find(md, make(map[protoreflect.FullName]bool))
	reachable.Store(md.FullName(), found)
	return found
}

func find(md protoreflect.MessageDescriptor, visited map[protoreflect.FullName]bool) bool {
	if md.FullName() == jsonFullName {
		return true
	}
	if visited[md.FullName()] {
		return false
	}
	visited[md.FullName()] = true
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if fd.IsMap() {
			fd = fd.MapValue()
		}
		if fd.Kind() == protoreflect.MessageKind && find(fd.Message(), visited) {
			return true
		}
	}
	return false
}
