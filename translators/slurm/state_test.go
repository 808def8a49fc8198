package slurm_test

import (
	"testing"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/slurm"
	"github.com/stretchr/testify/require"
)

func TestState(t *testing.T) {
	t.Parallel()
	const (
		submitted = dagbridgev1.Job_SUBMITTED
		running   = dagbridgev1.Job_RUNNING
		succeeded = dagbridgev1.Job_SUCCEEDED
		failed    = dagbridgev1.Job_FAILED
		cancelled = dagbridgev1.Job_CANCELLED
	)
	infrastructure := func(reason string) slurm.Native {
		return slurm.Native{State: failed, Reason: reason, Infrastructure: true}
	}
	for _, c := range []struct {
		words []string
		want  slurm.Native
	}{
		{[]string{"PENDING"}, slurm.Native{State: submitted}},
		{[]string{"PD"}, slurm.Native{State: submitted}},
		{[]string{"RUNNING"}, slurm.Native{State: running}},
		{[]string{"R"}, slurm.Native{State: running}},
		{[]string{"COMPLETED"}, slurm.Native{State: succeeded}},
		{[]string{"CD"}, slurm.Native{State: succeeded}},
		{[]string{"COMPLETING"}, slurm.Native{State: running}},
		{[]string{"CG"}, slurm.Native{State: running}},
		{[]string{"COMPLETED", "COMPLETING"}, slurm.Native{State: running}},
		{[]string{"RUNNING", "COMPLETING"}, slurm.Native{State: running}},
		{[]string{"FAILED"}, slurm.Native{State: failed}},
		{[]string{"F"}, slurm.Native{State: failed}},
		{[]string{"CANCELLED"}, slurm.Native{State: cancelled}},
		{[]string{"CANCELLED by 500"}, slurm.Native{State: cancelled}},
		{[]string{"CA"}, slurm.Native{State: cancelled}},
		{[]string{"TIMEOUT"}, slurm.Native{State: failed, Reason: "TIMEOUT"}},
		{[]string{"TO"}, slurm.Native{State: failed, Reason: "TIMEOUT"}},
		{[]string{"DEADLINE"}, slurm.Native{State: failed, Reason: "DEADLINE"}},
		{[]string{"DL"}, slurm.Native{State: failed, Reason: "DEADLINE"}},
		{[]string{"OUT_OF_MEMORY"}, slurm.Native{State: failed, Reason: "OUT_OF_MEMORY"}},
		{[]string{"OOM"}, slurm.Native{State: failed, Reason: "OUT_OF_MEMORY"}},
		{[]string{"NODE_FAIL"}, infrastructure("NODE_FAIL")},
		{[]string{"NF"}, infrastructure("NODE_FAIL")},
		{[]string{"PREEMPTED"}, infrastructure("PREEMPTED")},
		{[]string{"PR"}, infrastructure("PREEMPTED")},
		{[]string{"BOOT_FAIL"}, infrastructure("BOOT_FAIL")},
		{[]string{"BF"}, infrastructure("BOOT_FAIL")},
		{[]string{"FAILED", "LAUNCH_FAILED"}, infrastructure("LAUNCH_FAILED")},
		{[]string{"FAILED", "RECONFIG_FAIL"}, infrastructure("RECONFIG_FAIL")},
		{[]string{"REVOKED"}, slurm.Native{State: cancelled, Reason: "REVOKED"}},
		{[]string{"RV"}, slurm.Native{State: cancelled, Reason: "REVOKED"}},
		{[]string{"REQUEUED"}, slurm.Native{State: submitted, Reason: "REQUEUED"}},
		{[]string{"RQ"}, slurm.Native{State: submitted, Reason: "REQUEUED"}},
		{[]string{"PENDING", "REQUEUED"}, slurm.Native{State: submitted, Reason: "REQUEUED"}},
		{[]string{"PREEMPTED", "REQUEUED"}, slurm.Native{State: submitted, Reason: "REQUEUED"}},
		{[]string{"NODE_FAIL", "REQUEUED", "COMPLETING"}, slurm.Native{State: submitted, Reason: "REQUEUED"}},
		{[]string{"REQUEUE_HOLD"}, slurm.Native{State: submitted, Reason: "REQUEUED"}},
		{[]string{"RH"}, slurm.Native{State: submitted, Reason: "REQUEUED"}},
		{[]string{"REQUEUE_FED"}, slurm.Native{State: submitted, Reason: "REQUEUED"}},
		{[]string{"RF"}, slurm.Native{State: submitted, Reason: "REQUEUED"}},
		{[]string{"PENDING", "EXPEDITING"}, slurm.Native{State: submitted, Reason: "REQUEUED"}},
		{[]string{"SPECIAL_EXIT"}, slurm.Native{State: submitted, Reason: "SPECIAL_EXIT"}},
		{[]string{"SE"}, slurm.Native{State: submitted, Reason: "SPECIAL_EXIT"}},
		{[]string{"RESV_DEL_HOLD"}, slurm.Native{State: submitted, Reason: "RESV_DEL_HOLD"}},
		{[]string{"RD"}, slurm.Native{State: submitted, Reason: "RESV_DEL_HOLD"}},
		{[]string{"SUSPENDED"}, slurm.Native{State: running, Reason: "SUSPENDED"}},
		{[]string{"S"}, slurm.Native{State: running, Reason: "SUSPENDED"}},
		{[]string{"STOPPED"}, slurm.Native{State: running, Reason: "STOPPED"}},
		{[]string{"ST"}, slurm.Native{State: running, Reason: "STOPPED"}},
		{[]string{"SIGNALING"}, slurm.Native{State: running}},
		{[]string{"SI"}, slurm.Native{State: running}},
		{[]string{"RESIZING"}, slurm.Native{State: running}},
		{[]string{"RS"}, slurm.Native{State: running}},
		{[]string{"STAGE_OUT"}, slurm.Native{State: running}},
		{[]string{"SO"}, slurm.Native{State: running}},
		{[]string{"COMPLETED", "STAGE_OUT"}, slurm.Native{State: running}},
		{[]string{"CONFIGURING"}, slurm.Native{State: submitted, Reason: "CONFIGURING"}},
		{[]string{"CF"}, slurm.Native{State: submitted, Reason: "CONFIGURING"}},
		{[]string{"RUNNING", "CONFIGURING", "POWER_UP_NODE"}, slurm.Native{State: submitted, Reason: "CONFIGURING"}},
		{[]string{"COMPLETED", "UPDATE_DB"}, slurm.Native{State: succeeded}},
	} {
		got, ok := slurm.State(c.words[0], c.words[1:]...)
		require.True(t, ok, c.words)
		require.Equal(t, c.want, got, c.words)
	}
	for _, words := range [][]string{{""}, {"WORKING"}, {"COMPLETED", "NEW_FLAG"}, {"completed"}, {"CANCELLED by"}, {"FAILED by 1"}} {
		got, ok := slurm.State(words[0], words[1:]...)
		require.False(t, ok, words)
		require.Zero(t, got, words)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	number := func(n int32) *int32 { return &n }
	for status, want := range map[string][2]*int32{
		"0:0":   {number(0), nil},
		"3:0":   {number(3), nil},
		"0:9":   {number(137), number(9)},
		"137:0": {number(137), nil},
		"0:15":  {number(143), number(15)},
		"1:11":  {number(139), number(11)},
		"300:0": {number(300), nil},
		"0:53":  {number(181), number(53)},
	} {
		exitCode, signal, err := slurm.Exit(status)
		require.NoError(t, err, status)
		require.Equal(t, want, [2]*int32{exitCode, signal}, status)
	}
	for _, status := range []string{"", "0", ":", "0:", ":9", "a:0", "-1:0", "0:-9", "99999999999:0", "0:2147483647", "1:2:3"} {
		_, _, err := slurm.Exit(status)
		require.ErrorContains(t, err, "is not an exit status", status)
	}
}

func FuzzExit(f *testing.F) {
	f.Add("0:9")
	f.Add("99999999999999999999:0")
	f.Fuzz(func(t *testing.T, status string) {
		exitCode, signal, err := slurm.Exit(status)
		if err != nil {
			require.Nil(t, exitCode)
			return
		}
		require.GreaterOrEqual(t, *exitCode, int32(0))
		if signal != nil {
			require.Equal(t, *signal+128, *exitCode)
		}
	})
}
