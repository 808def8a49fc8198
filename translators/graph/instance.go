package graph

import (
	"maps"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// MapIndex is that of the instance of an array at a position of its items.
func MapIndex(position int) []int32 { return []int32{int32(position)} }

// InstanceTask is the task of one instance of an array: the item's env merged over the task's, its argv appended to the
// command, or to the arguments of a container that runs alone, its position as map index, and no array. Position must be one of the items'. The parts that instances have in
// common are shared with the array's task, not copied: both are to be left as they are.
func InstanceTask(t *dagbridgev1.Task, position int) *dagbridgev1.Task {
	item := t.GetArray().GetItems()[position]
	instance := Shallow(t)
	instance.Array = nil
	instance.Key = unmapped(t.GetKey())
	instance.Key.MapIndex = MapIndex(position)
	if len(item.GetEnv()) > 0 {
		env := make(map[string]string, len(t.GetEnv())+len(item.GetEnv()))
		maps.Copy(env, t.GetEnv())
		maps.Copy(env, item.GetEnv())
		instance.Env = env
	}
	switch {
	case len(item.GetArgv()) == 0:
	case t.GetCommand() == nil && t.GetContainer() != nil:
		instance.Container = proto.CloneOf(t.GetContainer())
		instance.Container.Args = append(instance.Container.Args, item.GetArgv()...)
	default:
		argv := make([]string, 0, len(t.GetCommand().GetArgv())+len(item.GetArgv()))
		argv = append(append(argv, t.GetCommand().GetArgv()...), item.GetArgv()...)
		instance.Command = &dagbridgev1.Command{Argv: argv}
	}
	return instance
}

// Shallow is a copy of a message that shares all of its parts: both are to be left as they are.
func Shallow[M proto.Message](m M) M {
	copied := m.ProtoReflect().New()
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		copied.Set(field, value)
		return true
	})
	return copied.Interface().(M)
}
