package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// maxScriptBytes is what Slurm takes as a job script, less what the wrapper around the user's script may need.
const maxScriptBytes = 4<<20 - 64<<10

func (c *checker) checkProgram(at string, t *dagbridgev1.Task) {
	if t.GetEmpty() {
		if t.GetCommand() != nil || t.GetScript() != nil || t.GetContainer() != nil || t.GetArray() != nil {
			c.add(at+".empty", "says that there is nothing to run: leave command, script, container and array out, or empty")
		}
		return
	}
	switch {
	case t.GetCommand() != nil && t.GetScript() != nil:
		c.add(at+".script", "command and script exclude each other: set one of them")
	case t.GetCommand() == nil && t.GetScript() == nil && t.GetContainer() == nil:
		c.add(at, "has no program: set command or script, or a container whose image has one")
	}
	if inside := t.GetContainer(); (t.GetCommand() != nil || t.GetScript() != nil) && len(inside.GetCommand())+len(inside.GetArgs()) > 0 {
		c.add(at+".container", "command and args say what the image runs by itself, and the task has a program: set one of them")
	}
	if argv := t.GetCommand().GetArgv(); len(argv) > 0 && argv[0] == "" {
		c.add(at+".command.argv[0]", "is empty: it is the program's name")
	}
	if size := len(t.GetScript().GetText()); size > maxScriptBytes {
		c.add(at+".script.text", "has %d bytes, at most %d are allowed: put what is large into a file", size, maxScriptBytes)
	}
}

func (c *checker) checkEnv(at string, t *dagbridgev1.Task) {
	c.checkEnvNames(at+".env", t.GetEnv())
	for i, item := range t.GetArray().GetItems() {
		if len(item.GetEnv()) > 0 {
			c.checkEnvNames(fmt.Sprintf("%s.array.items[%d].env", at, i), item.GetEnv())
		}
	}
}

func (c *checker) checkEnvNames(at string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		for _, prefix := range []string{"DAGBRIDGE_", "SLURM_"} {
			if strings.HasPrefix(name, prefix) {
				c.add(fmt.Sprintf("%s[%s]", at, quote(name)), "names beginning with %s are set for the program, not by its author: "+
					"choose another name", prefix)
			}
		}
	}
}

func (c *checker) checkResources(at string, t *dagbridgev1.Task) {
	r := t.GetResources()
	if _, err := CPU(r.GetCpu()); err != nil {
		c.add(at+".resources.cpu", "%s %v", quote(r.GetCpu()), err)
	}
	if _, err := Memory(r.GetMemory()); err != nil {
		c.add(at+".resources.memory", "%s %v", quote(r.GetMemory()), err)
	}
}

func (c *checker) checkArray(at string, t *dagbridgev1.Task) {
	array := t.GetArray()
	if array == nil {
		return
	}
	switch {
	case len(array.GetItems()) > 0 && array.GetFrom() != nil:
		c.add(at+".array", "items and from exclude each other: set one of them")
	case len(array.GetItems()) == 0 && array.GetFrom() == nil:
		c.add(at+".array.items", "is empty: an array needs at least one item")
	}
	c.checkFrom(at+".array.from", t)
	if len(t.GetKey().GetMapIndex()) > 0 {
		c.add(at+".array", "task %s has a mapIndex, so it is an instance already and cannot be an array", quote(label(t.GetKey())))
	}
	if t.GetScript() != nil {
		for i, item := range array.GetItems() {
			if len(item.GetArgv()) > 0 {
				c.add(fmt.Sprintf("%s.array.items[%d].argv", at, i), "is appended to a command, and the task has a script: use env")
			}
		}
	}
}

// checkFrom wants the output that holds an array's items to be that of one task, which the array waits for.
func (c *checker) checkFrom(at string, t *dagbridgev1.Task) {
	from := t.GetArray().GetFrom()
	if from == nil {
		return
	}
	waits := slices.ContainsFunc(t.GetUpstream(), func(e *dagbridgev1.Edge) bool {
		return e.GetTask() == from.GetTask() && e.GetCondition() != dagbridgev1.Edge_STARTED
	})
	if !waits {
		c.add(at+".task", "task %s is not in upstream: the array has to wait for what says how many instances it has", quote(from.GetTask()))
	}
	if i := c.find(Upstream(t, &dagbridgev1.Edge{Task: from.GetTask()})); i >= 0 && c.tasks[i].GetArray() != nil {
		c.add(at+".task", "task %s is an array itself, whose instances have outputs of their own: take the output of one task", quote(from.GetTask()))
	}
}

// checkTeardown wants set-ups among the task's upstreams; Normalize has added those of the same workflow.
func (c *checker) checkTeardown(i int, at string, t *dagbridgev1.Task) {
	if t.GetTeardown() != nil && t.GetSetup() {
		c.add(at+".teardown", "a task is a set-up or a tear-down, not both")
	}
	for k, name := range t.GetTeardown().GetOf() {
		field := fmt.Sprintf("%s.teardown.of[%d]", at, k)
		switch j := c.find(Upstream(t, &dagbridgev1.Edge{Task: name})); {
		case j == i:
			c.add(field, "task %s cannot be the tear-down of itself", quote(name))
		case j >= 0 && !c.tasks[j].GetSetup():
			c.add(field, "task %s is no set-up: mark it with setup: true", quote(name))
		case j < 0 && !hasUpstream(t, name):
			c.add(field, "there is no task %s%s", quote(name), c.nearest.hint(name, c.names))
		}
	}
}

// checkBranch wants an upstream whose output decides to be one that is waited for.
func (c *checker) checkBranch(at string, t *dagbridgev1.Task) {
	for _, use := range []struct{ field, task string }{
		{".skipUnless.task", t.GetSkipUnless().GetTask()},
		{".array.from.task", t.GetArray().GetFrom().GetTask()},
	} {
		if use.task != "" && !hasUpstream(t, use.task) {
			c.add(at+use.field, "%s is not among the task's upstreams: add it there, so that its output is waited for", quote(use.task))
		}
	}
}
