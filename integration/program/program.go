// Package program writes the scripts that tests then run.
package program

import (
	"os"
	"syscall"
)

// Write writes an executable file. A process that is started elsewhere while the file is open for writing has it open too, until
// it becomes its own program, and as long nobody can run the file ("text file busy"): so nobody starts one meanwhile.
func Write(path string, text []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, text, 0o755)
}
