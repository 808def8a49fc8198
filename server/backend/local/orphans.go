package local

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// killOrphans ends what a supervisor that was killed has left: its program died with it, but not what that had started. A
// process belongs to the job when its environment names the job's output file; also when it is of the supervisor's session,
// as long as the supervisor's corpse keeps that number from being used again. It returns when none is left.
func (p process) killOrphans(ctx context.Context, f folder) error {
	mark := []byte("DAGBRIDGE_OUTPUT=" + f.output() + "\x00")
	for delay := soon; ; delay = min(2*delay, pause) {
		list, err := processes()
		if err != nil {
			return err
		}
		corpse, err := readStat(p.PID)
		session := err == nil && corpse.start == p.Start
		killed := 0
		for _, st := range list {
			if st.start < p.Start || !(session && st.session == p.PID || hasEnv(st.pid, mark)) {
				continue
			}
			orphan := process{Boot: p.Boot, PID: st.pid, Start: st.start}
			if err := orphan.signal(unix.SIGKILL); err != nil {
				return err
			}
			killed++
		}
		if killed == 0 {
			return nil
		}
		if !sleep(ctx, delay) {
			return ctx.Err()
		}
	}
}

// hasEnv says whether a process was started with an entry of the environment.
func hasEnv(pid int, entry []byte) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && (bytes.HasPrefix(env, entry) || bytes.Contains(env, append([]byte{0}, entry...)))
}
