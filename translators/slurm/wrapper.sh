
# end CODE SENTENCE is the last act: the exit marker, written whole or not at all, then the exit. Before it, of a success, the
# file that jobs after this one look for.
end() {
  [ "$1" -ne 0 ] || : >"$dir/succeeded${position:+_$position}"
  printf 'id=%s\nrestart=%s\nexit=%s\nsignalled=%s\nend=%s\nsentence=%s\n' \
    "$id" "$restart" "$1" "$signalled" "$(date +%s)" "$2" >"$dagbridge_base.exit.new" &&
    mv -f "$dagbridge_base.exit.new" "$dagbridge_base.exit"
  [ -z "$2" ] || printf 'dagbridge: %s\n' "$2" >&2
  exit "$1"
}

# late waits for a signal that may still be on its way. Slurm sends one to the processes of a job one after the other: what
# fails of its own may do so before the wrapper has been sent one too, and is no end of the job that is to be requeued.
late() { [ "$signalled" = yes ] || sleep 1; }

# ended says whether this very job, which Slurm has started once more, had come to its end unasked, and sets code to how.
# Whoever is sent a signal may have ended only to go on when it is requeued.
ended() {
  grep -qsx "id=$id" "$dagbridge_base.exit" && grep -qx signalled=no "$dagbridge_base.exit" &&
    code=$(sed -n 's/^exit=//p' "$dagbridge_base.exit")
}

# outputs_of FILE is what an upstream has left; nothing counts as {}.
outputs_of() { if [ -s "${1-}" ]; then cat "$1"; else printf '{}'; fi; }

# list_of FILE... is what the instances of a mapped upstream have left.
list_of() {
  local comma='' file
  printf '['
  for file; do printf '%s' "$comma"; outputs_of "$file"; comma=,; done
  printf ']'
}

# failing says whether one of the upstreams that must have succeeded has not.
failing() {
  local file
  for file in "${guard[@]}"; do [ -e "$file" ] || return 0; done
  return 1
}

position=${SLURM_ARRAY_TASK_ID-}
id=${SLURM_ARRAY_JOB_ID-${SLURM_JOB_ID-?}}${position:+_$position}
restart=${SLURM_RESTART_COUNT-0}
node=${SLURMD_NODENAME-${HOSTNAME-}}
dagbridge_base=$dir/$attempt${position:+_$position}
published=$dir/outputs${position:+_$position}.json
signalled=no
mask=$(umask)
umask 007

# A cancel leaves a mark as well as an order: Slurm may forget the order when it is killed, or take a request that is late.
if [ -e "$dagbridge_base.cancelled" ]; then
  printf 'dagbridge: not run: it was cancelled\n' >&2
  exit 124
fi

# Slurm takes a dependency on a job that it has lost, or purged, for satisfied. What has succeeded has left a file, which
# another node may see a little late.
patience=10
while [ "${#guard[@]}" -gt 0 ] && failing; do
  if [ "$patience" -eq 0 ]; then
    printf 'dagbridge: not run: Slurm started this too early, what it waits for has not succeeded\n' >&2
    exit 123
  fi
  patience=$((patience - 1))
  sleep 1
done

# The start marker comes before anything else: whoever finds it already there, and is not its owner requeued, is a second native job for
# the same try and must not run. On a file system that is full it is made and cannot be written: then it goes.
(set -o noclobber && { printf '%s %s\n' "$id" "$restart" || exit 3; } >"$dagbridge_base.start") 2>/dev/null
claimed=$?
[ "$claimed" -ne 3 ] || rm -f "$dagbridge_base.start"
if [ "$claimed" -eq 0 ]; then
  :
elif [ ! -e "$dagbridge_base.start" ]; then
  printf 'dagbridge: the folder %s cannot be written to on %s\n' "$dir" "$node" >&2
  exit 122
else
  # A slurmctld that is killed forgets its last seconds: it takes a job that has ended for one that vanished with its node, or
  # that has not started, and starts it again. The end is told once more. Of a failure only once: if Slurm then requeues it
  # all the same, the site wants that.
  if ended && { [ "$code" -eq 0 ] || (set -o noclobber && : >"$dagbridge_base.told") 2>/dev/null; }; then
    printf 'dagbridge: not run again: this had ended already, with %s, which Slurm has forgotten\n' "$code" >&2
    exit "$code"
  fi
  # Slurm requeues what it could not launch a second time even if it is not to requeue it.
  owner=$(tail -n 1 "$dagbridge_base.start")
  if [ "${owner% *}" != "$id" ] || [ "${owner##* }" -ge "$restart" ] || [ -n "${once-}" ]; then
    printf 'dagbridge: not run: this try was already started, as Slurm job %s\n' "${owner% *}" >&2
    exit 120
  fi
  printf '%s %s\n' "$id" "$restart" >>"$dagbridge_base.start"
fi
rm -f "$dagbridge_base.exit" "$dagbridge_base.told" "$published" "$dir/succeeded${position:+_$position}"

# sbatch leaves this behind; a later srun would take it for its own --export.
unset SLURM_EXPORT_ENV
export PATH=/usr/local/bin:/usr/bin:/bin
# Slurm sets none of these unless they were submitted; without HOME, ~ is what the system says.
export HOME=${HOME-~} USER=${USER-$(id -un)}
export LOGNAME=${LOGNAME-$USER} SHELL=${SHELL-/bin/bash}
export DAGBRIDGE_OUTPUT=$dagbridge_base.output DAGBRIDGE_INPUTS=$dagbridge_base.inputs

cd -- "$workdir" 2>/dev/null || end 1 "the working directory $workdir cannot be entered on $node"
payload && inputs >"$dagbridge_base.inputs" && : >"$dagbridge_base.output" || { late; end 1 "the folder $dir is full or cannot be written to on $node"; }

# Slurm ends a job by signalling all of its processes, the program included: the wrapper only has to outlive it. It runs the
# program in the foreground, since the wait of bash loses the exit code of a child that ends as a trapped signal arrives.
terminated=
trap 'signalled=yes terminated=yes' TERM
trap 'signalled=yes' INT HUP USR1 USR2
# Slurm's own warning goes to this script alone, or to what srun has started: the program has its from here.
if [ -n "${warn_signal-}" ]; then
  (
    sleep "$((SECONDS < warn_after ? warn_after - SECONDS : 0))"
    kill -s "$warn_signal" "$(cat "$dagbridge_base.pid")"
  ) >/dev/null 2>&1 &
  warner=$!
fi
# Meanwhile bash keeps silent: it would write the text of all this to the log when a signal ends the program.
exec 3>&2 2>/dev/null
(
  umask "$mask"
  [ -z "${warn_signal-}" ] || printf '%s' "$BASHPID" >"$dagbridge_base.pid"
  program
) 2>&3 3>&-
code=$?
[ "$code" -eq 0 ] || late
exec 2>&3 3>&-
[ -z "${warn_signal-}" ] || kill "$warner" 2>/dev/null
rm -f "$dagbridge_base.script" "$dagbridge_base.inputs" "$dagbridge_base.pid"

[ "$code" -eq 0 ] || end "$code" ''
[ -z "${by_srun-}" ] || [ -z "$terminated" ] || end 143 'srun was ended before the program, so that its 0 means nothing'
[ -e "$dagbridge_base.start" ] || end 1 "the folder $dir is not there any more on $node, and what the program left in it is lost"
[ -s "$dagbridge_base.output" ] || end 0 ''
size=$(wc -c <"$dagbridge_base.output")
[ "$size" -le 49152 ] || end 121 "the outputs are refused: $((size)) bytes were written to DAGBRIDGE_OUTPUT, 49152 are taken at most"
text=$(od -An -v -tu1 "$dagbridge_base.output" | LC_ALL=C awk "$outputs_awk")
case $? in
0) cp "$dagbridge_base.output" "$published.new" ;;
3) printf '%s' "$text" >"$published.new" ;;
4) end 0 '' ;;
*) end 121 "the outputs are refused: ${text:-awk failed on $node}" ;;
esac || end 1 "the folder $dir is full or cannot be written to on $node"
size=$(wc -c <"$published.new")
[ "$size" -le 49152 ] || end 121 "the outputs are refused: they are $((size)) bytes as JSON, 49152 are taken at most"
mv -f "$published.new" "$published"
end 0 ''
