package slurm

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// fewToList is up to how many jobs squeue is asked for by id; more are cheaper in a listing of everything.
const fewToList = 50

func (c *cli) jobs(ctx context.Context, ids []string) ([]record, error) {
	layout := newQueueLayout()
	arguments := []string{"--noheader", "--all", "--states=all", "--Format=" + layout.format()}
	if 0 < len(ids) && len(ids) <= fewToList {
		arguments = append(arguments, "--jobs="+strings.Join(ids, ","))
	}
	o, err := c.look(ctx, 4*c.timeout, "squeue", arguments...)
	if err != nil {
		// of one id alone, or of none that it knows, squeue makes an error
		if strings.Contains(err.Error(), "Invalid job id specified") {
			return nil, nil
		}
		return nil, fmt.Errorf("squeue: %w", err)
	}
	return layout.parse(o.stdout), nil
}

// watch is jobs: squeue is cheap.
func (c *cli) watch(ctx context.Context, ids []string) ([]record, error) { return c.jobs(ctx, ids) }

// fieldEnd ends a field of squeue's and sacct's: a byte that is in no key of ours.
const fieldEnd = "\x1f"

// queueFields are squeue's names of what is asked for. The comment and the name come last, but nothing depends on it.
var queueFields = []string{
	"JobArrayID", "State", "Reason", "Exit_Code", "Dependency", "SubmitTime", "StartTime", "EndTime", "NodeList", "PriorityLong",
	"UserName", "Comment", "Name",
}

// queueLayout is how squeue is asked to print. Each line begins with a word that nobody can guess: else a stranger's job
// comment with a line break in it would be read as a line about one of our jobs.
type queueLayout struct{ begin string }

func newQueueLayout() queueLayout { return queueLayout{rand.Text() + fieldEnd} }

// format is the argument of --Format. A field without a width, but with an ending of its own, is printed in full.
func (l queueLayout) format() string {
	fields := make([]string, len(queueFields))
	for i, field := range queueFields {
		fields[i] = field + ":" + fieldEnd
	}
	fields[0] += l.begin
	return strings.Join(fields, ",")
}

// parse reads what squeue printed. A line that cannot be read is a record of its id, unread, or nothing when it has none.
func (l queueLayout) parse(text string) []record {
	var records []record
	for line := range strings.Lines(text) {
		id, rest, found := strings.Cut(strings.TrimSuffix(line, "\n"), fieldEnd+l.begin)
		if !found {
			continue
		}
		fields := strings.Split(rest, fieldEnd)
		r := placed(id)
		if len(fields) != len(queueFields) || fields[len(fields)-1] != "" { // each field has an end
			r.unread = true
			records = append(records, r)
			continue
		}
		r.words, r.reason = stateWords(fields[0]), fields[1]
		r.exit, r.signal = queueExit(fields[2])
		r.dependency = given(fields[3])
		r.submit, r.start, r.end = epoch(fields[4]), epoch(fields[5]), epoch(fields[6])
		r.node, r.held = given(fields[7]), fields[8] == "0"
		r.user, r.comment, r.name = fields[9], given(fields[10]), fields[11]
		records = append(records, r)
	}
	return records
}

// accountedIDs are how many ids sacct is asked for at once: 1,000 take it 0.65 s.
const accountedIDs = 500

func (c *cli) accountedByID(ctx context.Context, ids []string) ([]record, error) {
	var all []record
	for len(ids) > 0 {
		n := min(len(ids), accountedIDs)
		records, err := c.sacct(ctx, "--jobs="+strings.Join(ids[:n], ","))
		if err != nil {
			return nil, err
		}
		all, ids = append(all, records...), ids[n:]
	}
	return all, nil
}

func (c *cli) accountedByName(ctx context.Context, names []string, since time.Time) ([]record, error) {
	var all []record
	for len(names) > 0 {
		n := min(len(names), accountedIDs)
		// Without an explicit end, the end of what is looked for is not now in every case; and slurmctld's clock, by which jobs
		// are submitted, may be ahead.
		records, err := c.sacct(ctx, "--name="+strings.Join(names[:n], ","),
			fmt.Sprintf("--starttime=uts%d", since.Unix()), fmt.Sprintf("--endtime=now+%d", int(clockSkew.Seconds())))
		if err != nil {
			return nil, err
		}
		all, names = append(all, records...), names[n:]
	}
	return all, nil
}

// accountFields are sacct's names of what is asked for.
var accountFields = []string{"JobID", "State", "Reason", "ExitCode", "Submit", "Start", "End", "NodeList", "User", "Comment", "JobName"}

// sacct lists allocations, of all users (the account may be another's), each run of a requeued job by itself.
func (c *cli) sacct(ctx context.Context, arguments ...string) ([]record, error) {
	// as in queueLayout, a word that nobody can guess
	end := fieldEnd + rand.Text() + fieldEnd
	arguments = append([]string{
		"--allusers", "--allocations", "--duplicates", "--noheader", "--parsable", "--delimiter=" + end, "--format=" + strings.Join(accountFields, ","),
	}, arguments...)
	o, err := c.look(ctx, c.timeout, "sacct", arguments...)
	if strings.Contains(o.stderr, errNoAccounting.Error()) {
		return nil, errNoAccounting
	}
	if err != nil {
		return nil, fmt.Errorf("sacct: %w", err)
	}
	return parseAccounting(o.stdout, end), nil
}

func parseAccounting(text, end string) []record {
	var records []record
	for line := range strings.Lines(text) {
		id, rest, found := strings.Cut(strings.TrimSuffix(line, "\n"), end)
		if !found {
			continue
		}
		fields := strings.Split(rest, end)
		r := placed(id)
		if len(fields) != len(accountFields) || fields[len(fields)-1] != "" {
			r.unread = true
			records = append(records, r)
			continue
		}
		r.words, r.reason = stateWords(fields[0]), fields[1]
		_, r.killer, _ = strings.Cut(fields[0], " by ")
		r.exit, r.signal, _ = exitStatus(fields[2])
		r.submit, r.start, r.end = epoch(fields[3]), epoch(fields[4]), epoch(fields[5])
		r.node, r.user, r.comment, r.name = given(fields[6]), fields[7], given(fields[8]), fields[9]
		records = append(records, r)
	}
	return records
}
