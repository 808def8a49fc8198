package slurm

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"google.golang.org/protobuf/types/known/durationpb"
)

// maxItems is how many instances an array may have.
const maxItems = 100_000

// ParseScript reads a script that was written for sbatch: its #SBATCH lines become fields of the task, the script itself
// the task's. As with sbatch, lines after the first command are not read. Whatever the lines say that a task cannot say is a
// fault, by its line.
//
// The lines that were read are commented out in the task's script, so that it does not look as if they still meant something.
func ParseScript(text string) (task *dagbridgev1.Task, notices []string, faults translators.Faults) {
	p := &parser{given: map[string]directive{}, task: &dagbridgev1.Task{
		Key: &dagbridgev1.TaskKey{}, Resources: &dagbridgev1.Resources{},
		Slurm: &dagbridgev1.SlurmOptions{Options: map[string]string{}}, Env: map[string]string{},
	}}
	if strings.Contains(text, "\r\n") {
		p.faults.Add("line 1", "the script has DOS line ends (CRLF): save it with LF alone")
	} else if _, err := translators.NormalizeScript(text); err != nil {
		p.faults.Add("line 1", "%v", err)
	}
	p.task.Script = &dagbridgev1.Script{Text: p.read(text)}
	for _, name := range slices.Sorted(maps.Keys(p.given)) {
		d := p.given[name]
		if err := p.take(d); err != nil {
			p.faults.Add(fmt.Sprintf("line %d", d.line), "--%s: %v", d.name, err)
		}
	}
	p.tasks()
	if len(p.faults) > 0 {
		slices.SortStableFunc(p.faults, func(a, b translators.Fault) int { return lineOf(a) - lineOf(b) })
		return nil, nil, p.faults
	}
	return p.task, p.notices, nil
}

// parser is a ParseScript in progress.
type parser struct {
	task *dagbridgev1.Task
	// given holds the last directive of each name, which is the one that counts.
	given   map[string]directive
	notices []string
	faults  translators.Faults
}

func (p *parser) notice(line int, format string, args ...any) {
	p.notices = append(p.notices, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
}

func lineOf(f translators.Fault) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(f.Field, "line "))
	return n
}

// read collects the directives and returns the script without them.
func (p *parser) read(text string) string {
	var rest strings.Builder
	number, commands := 0, false
	for line := range strings.Lines(text) {
		number++
		commands = commands || isCommand(line)
		directives, isDirective := strings.CutPrefix(line, directivePrefix)
		switch {
		case isDirective && commands:
			p.notice(number, "not read, as sbatch does not: it is after the first command")
		case isDirective:
			rest.WriteString("#")
			p.line(number, directives)
		case !commands && (strings.HasPrefix(line, "#PBS") || strings.HasPrefix(line, "#BSUB")):
			p.notice(number, "not read: only #SBATCH lines are")
		}
		rest.WriteString(line)
	}
	return rest.String()
}

func (p *parser) line(number int, text string) {
	words, err := splitDirective(text)
	found, errs := parseDirective(number, words)
	if err != nil {
		errs = append(errs, err)
	}
	for _, err := range errs {
		p.faults.Add(fmt.Sprintf("line %d", number), "%v", err)
	}
	for _, d := range found {
		// The last of the two decides, as with sbatch.
		switch d.name {
		case "requeue":
			delete(p.given, "no-requeue")
		case "no-requeue":
			delete(p.given, "requeue")
		}
		p.given[d.name] = d
	}
}

// take puts a directive where the task says it. Its error is a sentence without a beginning.
func (p *parser) take(d directive) error {
	task, r := p.task, p.task.Resources
	switch d.name {
	case "job-name":
		task.Key.Task = d.value
	case "partition":
		task.Slurm.Partition = d.value
	case "account":
		task.Slurm.Account = d.value
	case "qos":
		task.Slurm.Qos = d.value
	case "chdir":
		if !path.IsAbs(d.value) {
			return fmt.Errorf("%q is not absolute: the job's own folder is not the one it is submitted from", d.value)
		}
		task.WorkingDirectory = d.value
	case "nodes":
		low, high, _ := strings.Cut(d.value, "-")
		if high != "" && high != low {
			return fmt.Errorf("%q is a range; say one number of nodes", d.value)
		}
		return count(low, &r.Nodes)
	case "ntasks-per-node":
		return count(d.value, &r.TasksPerNode)
	case "cpus-per-task":
		var n int32
		err := count(d.value, &n)
		r.Cpu = strconv.Itoa(int(n))
		return err
	case "mem":
		return memory(d.value, &r.Memory)
	case "time":
		return timeLimit(d.value, r)
	case "gres":
		return p.gres(d.value)
	case "gpus-per-node":
		for term := range strings.SplitSeq(d.value, ",") {
			if err := p.gpu(term); err != nil {
				return err
			}
		}
	case "array":
		return p.array(d.value)
	case "export":
		p.export(d)
	case "output", "error":
		p.notice(d.line, "--%s: dagbridge keeps the job's output itself; see dagbridge logs", d.name)
	case "dependency":
		return p.dependency(d.value)
	case "container":
		p.container(oci, d.value)
	case "container-image":
		p.container(pyxis, d.value)
	case "ntasks":
		// With the others: tasks.
	default:
		if why := refuseOption(d.name, d.value); why != "" {
			return errors.New(why)
		}
		task.Slurm.Options[d.name] = d.value
	}
	return nil
}

// tasks works out the number of tasks a node from what was said on both.
func (p *parser) tasks() {
	d, ok := p.given["ntasks"]
	if !ok {
		return
	}
	var total int32
	field, r := fmt.Sprintf("line %d", d.line), p.task.Resources
	switch err := count(d.value, &total); {
	case err != nil:
		p.faults.Add(field, "--ntasks: %v", err)
	case r.TasksPerNode == 0 && r.Nodes == 0:
		if total > 1 {
			p.task.Slurm.Options["ntasks"] = d.value
		}
	case r.TasksPerNode == 0 && total%r.Nodes == 0:
		r.TasksPerNode = total / r.Nodes
	case r.Nodes == 0 && total%r.TasksPerNode == 0:
		r.Nodes = total / r.TasksPerNode
	case r.Nodes*r.TasksPerNode != total || r.TasksPerNode == 0:
		p.faults.Add(field, "--ntasks: %d tasks do not spread evenly over the nodes asked for; say --nodes and --ntasks-per-node", total)
	}
}

// count reads a number of things, at least one.
func count(s string, n *int32) error {
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil || v < 1 || v > maxItems {
		return fmt.Errorf("%q is not a whole number from 1 to %d", s, maxItems)
	}
	*n = int32(v)
	return nil
}

var memoryForm = regexp.MustCompile(`^([0-9]{1,15})([KMGTkmgt]?)B?$`)

// memory reads a size as Slurm writes it: MiB unless it says otherwise, and all units are binary.
func memory(s string, quantity *string) error {
	parts := memoryForm.FindStringSubmatch(s)
	switch {
	case parts == nil:
		return fmt.Errorf("%q is not %s", s, sizeHint)
	case strings.Trim(parts[1], "0") == "":
		return errors.New("a task cannot ask for all memory of a node; say how much")
	case parts[2] == "":
		*quantity = parts[1] + "Mi"
	default:
		*quantity = parts[1] + strings.ToUpper(parts[2]) + "i"
	}
	return nil
}

var timeForm = regexp.MustCompile(`^(?:([0-9]{1,4})-)?([0-9]{1,6})(?::([0-9]{1,6}))?(?::([0-9]{1,6}))?$`)

// timeLimit reads all forms of a time limit: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
// days-hours:minutes, days-hours:minutes:seconds.
func timeLimit(s string, r *dagbridgev1.Resources) error {
	parts := timeForm.FindStringSubmatch(s)
	if parts == nil {
		return fmt.Errorf(`%q is not a time limit: say minutes ("90"), "hours:minutes:seconds" or "days-hours"`, s)
	}
	part := func(i int) time.Duration {
		n, _ := strconv.Atoi(parts[i]) // digits, or nothing
		return time.Duration(n)
	}
	var d time.Duration
	switch {
	case parts[1] != "":
		d = part(1)*24*time.Hour + part(2)*time.Hour + part(3)*time.Minute + part(4)*time.Second
	case parts[4] != "":
		d = part(2)*time.Hour + part(3)*time.Minute + part(4)*time.Second
	default:
		d = part(2)*time.Minute + part(3)*time.Second
	}
	const year = 366 * 24 * time.Hour
	if d <= 0 || d > year {
		return fmt.Errorf("%q is not more than none and a year at most; leave the line out for the site's default", s)
	}
	r.TimeLimit = durationpb.New(d)
	return nil
}

// gres takes GPUs for the resources and everything else for the option.
func (p *parser) gres(s string) error {
	var others []string
	for term := range strings.SplitSeq(s, ",") {
		gpu, ok := strings.CutPrefix(term, "gpu")
		if !ok || gpu != "" && gpu[0] != ':' {
			others = append(others, term)
		} else if err := p.gpu(strings.TrimPrefix(gpu, ":")); err != nil {
			return err
		}
	}
	if len(others) > 0 {
		p.task.Slurm.Options["gres"] = strings.Join(others, ",")
	}
	return nil
}

// container puts the script into an image.
func (p *parser) container(runtime, image string) {
	p.task.Container, p.task.Slurm.Container = &dagbridgev1.Container{Image: image}, runtime
}

var (
	startedForm   = regexp.MustCompile(`^([0-9]+(?:_[0-9]+)?)(?:\+([0-9]{1,5}))?$`)
	dependentRule = map[string]string{"afterok": "all_success", "afterany": "all_done"}
)

// dependency reads what the script waits for: jobs that are not the gateway's, as far as it knows.
func (p *parser) dependency(expression string) error {
	if strings.Contains(expression, "?") {
		return errors.New("any one of several jobs cannot be waited for")
	}
	for term := range strings.SplitSeq(expression, ",") {
		kind, ids, _ := strings.Cut(term, ":")
		rule := dependentRule[kind]
		switch {
		case kind == "singleton" && ids == "":
			p.task.Upstream = append(p.task.Upstream, &dagbridgev1.Edge{Condition: dagbridgev1.Edge_SINGLETON})
			continue
		case kind != "after" && rule == "":
			return fmt.Errorf("%q cannot be waited for; afterok, afterany, after and singleton can", term)
		case rule != "" && p.task.TriggerRule != "" && p.task.TriggerRule != rule:
			return errors.New("a task waits for the success of all (afterok) or for the end of all (afterany)")
		case rule != "":
			p.task.TriggerRule = rule
		}
		for id := range strings.SplitSeq(ids, ":") {
			parts := startedForm.FindStringSubmatch(id)
			if parts == nil || parts[2] != "" && rule != "" {
				return fmt.Errorf("%q is no job id", id)
			}
			edge := &dagbridgev1.Edge{Native: &dagbridgev1.NativeJob{Id: parts[1]}}
			if rule == "" {
				edge.Condition = dagbridgev1.Edge_STARTED
			}
			if parts[2] != "" {
				edge.Delay = durationpb.New(time.Duration(integer(parts[2])) * time.Minute)
			}
			p.task.Upstream = append(p.task.Upstream, edge)
		}
	}
	return nil
}

var gpuForm = regexp.MustCompile(`^(?:([A-Za-z_][A-Za-z0-9._-]*)(?::([0-9]{1,4}))?|([0-9]{1,4}))?$`)

// gpu reads GPUs a node: "2", "a100", "a100:2", or nothing for one.
func (p *parser) gpu(s string) error {
	parts := gpuForm.FindStringSubmatch(s)
	if parts == nil {
		return fmt.Errorf("%q is not a number of GPUs, or a type and a number", s)
	}
	n := int32(1)
	if digits := parts[2] + parts[3]; digits != "" {
		if err := count(digits, &n); err != nil {
			return err
		}
	}
	p.task.Resources.Gpus = append(p.task.Resources.Gpus, &dagbridgev1.Gpu{Type: parts[1], Count: &n})
	return nil
}

// array takes indices from 0 on.
func (p *parser) array(s string) error {
	list, limit, limited := strings.Cut(s, "%")
	positions, err := ParsePositions(list)
	if err != nil {
		return err
	}
	n := len(positions)
	if positions[n-1] != n-1 {
		return fmt.Errorf("%q is not 0 to %d: a task's instances are counted from 0 without gaps; work out other numbers in the script", s, n-1)
	}
	if n > maxItems {
		return fmt.Errorf("%d instances are more than %d", n, maxItems)
	}
	p.task.Array = &dagbridgev1.Array{Items: make([]*dagbridgev1.Array_Item, n)}
	for i := range n {
		p.task.Array.Items[i] = &dagbridgev1.Array_Item{}
	}
	if limited {
		return count(limit, &p.task.Array.MaxParallel)
	}
	return nil
}

// export takes variables with a value; those without one are the submitter's, whose environment does not travel.
func (p *parser) export(d directive) {
	for term := range strings.SplitSeq(d.value, ",") {
		name, value, assigned := strings.Cut(term, "=")
		switch {
		case assigned && name != "":
			p.task.Env[name] = value
		case term != "NONE" && term != "NIL":
			p.notice(d.line, "--export=%s: nothing of the submitter's environment travels; say what the program needs in env", term)
		}
	}
}
