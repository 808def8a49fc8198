package slurm

import "strings"

// errno is one of Slurm's errors (slurm_errno.h): slurmrestd tells its number, the commands its sentence.
type errno struct {
	number   int
	sentence string
}

// full are how slurmctld says that it has MaxJobCount jobs.
var full = []errno{
	{errnoAgain, "Resource temporarily unavailable"},
	{2007, "MaxJobCount limit reached"}, // since 26.05
	{2007, "Unable to create job record, try again"},
}

// passing are other refusals for now, which say nothing against the job.
var passing = []errno{
	{2019, "I/O error writing script/environment to file"},
	{2020, "Job can not be altered now, try again later"},
	{2027, "Slurm backup controller in standby mode"},
	{2070, "Required partition not available (inactive or drain)"},
	{2074, "Requested account has breached requested QOS usage threshold"},
	{2090, "Slurm internal error, contact system administrator"},
	{2103, "Job update not available right now"},
	{2105, "System submissions disabled"},
	{2131, "Controller is in standby mode"},
}

// limiting are slurmctld's words to a caller that asks too much of it, where its client does not wait and ask again by itself.
var limiting = []errno{
	{1804, "Rate limit exceeded, please retry momentarily"},
}

// over are complaints about a job that is not there any more, or not in the state any more that an order was about.
var over = []errno{
	{errnoInvalidJobID, "Invalid job id specified"},
	{2021, "Job/step already completing or completed"},
	{2073, "Job is no longer pending execution"},
	{2083, "Job has already started"},
	{2084, "Job has already finished"},
	{2085, "Job is not running"},
	{2086, "Job is not pending nor running"},
	{errnoFiltered, "Cannot signal job"}, // it is another user's by now
}

// Numbers that mean something of their own.
const (
	errnoNotPermitted = 1  // the system's EPERM, and what a bulk cancel says of a slurmctld that is down
	errnoAgain        = 11 // the system's EAGAIN
	errnoUnexpected   = 1000
	errnoAuth         = 1007
	errnoFirst        = 2000 // the first of slurmctld's own answers
	errnoInvalidJobID = 2017
	errnoPolicy       = 2050
	errnoFiltered     = 2172
	errnoLast         = 4999
	errnoZeroBytes    = 5005 // a token that slurmctld refuses, or a slurmctld that died
	errnoRestFirst    = 9000 // the first of slurmrestd's own answers
	errnoNothingFound = 9003
)

func isNumber(list []errno, number int) bool {
	for _, e := range list {
		if e.number == number {
			return true
		}
	}
	return false
}

func isSentence(list []errno, sentence string) bool {
	for _, e := range list {
		if strings.Contains(sentence, e.sentence) {
			return true
		}
	}
	return false
}
