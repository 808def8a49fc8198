package bridge

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// manyElements is from how many list items and map entries on a request is told the first of its faults alone: to describe
// each of millions would take minutes and gigabytes.
const manyElements = 100_000

// elements counts the list items and map entries of a message, at every depth, until there are more than the most that any
// request may have.
func elements(m protoreflect.Message) (n int) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			n += v.Map().Len()
			if fd.MapValue().Kind() == protoreflect.MessageKind {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					n += elements(v.Message())
					return n <= jsoncodec.MaxElements
				})
			}
		case fd.IsList():
			n += v.List().Len()
			if fd.Kind() == protoreflect.MessageKind {
				for i := 0; i < v.List().Len() && n <= jsoncodec.MaxElements; i++ {
					n += elements(v.List().Get(i).Message())
				}
			}
		case fd.Kind() == protoreflect.MessageKind:
			n += elements(v.Message())
		}
		return n <= jsoncodec.MaxElements
	})
	return n
}
